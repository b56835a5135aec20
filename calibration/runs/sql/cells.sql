-- Runs that are equal in everything that enters a rate, counted. "place" holds week, workflow, agent version,
-- model, stratum, class, whether the cost is known, and the step of the penalty: 0 without one, else 1 and one
-- more for each credit of the class that it reaches.
SELECT
  "place",
  "workflow", -- if workflow_text
  "model", -- if model_text
  "agent_version", -- if agent_version_text
  "stratum", -- if stratum_text
  "weight", -- if weight
  "penalty" AS "exact_penalty", -- if exact
  count(*) AS "n",
  count("cost") AS "n_costed",
  sum("cost") AS "cost",
  sum("cost" * "cost") AS "cost_squared",
  sum(CASE WHEN "cost" IS NOT NULL THEN "units" ELSE 0.0 END) AS "units", -- if units
  sum("penalty") AS "penalty",
  sum("penalty" * "penalty") AS "penalty_squared"
FROM (
  SELECT
    *,
    ("head" * $head_below + CAST("tail" AS BIGINT)) * $steps -- unless by_workflow
    ("head" % $names * $head_below + CAST("tail" % $below_model AS BIGINT)) * $steps -- if by_workflow
      + ones_of("penalty" > 0)
      + ones_of("outcome" = $between_class AND "penalty" >= $between) -- each between
      AS "place"
  FROM "narrow"
) AS "placed"
GROUP BY
  "workflow", -- if workflow_text
  "model", -- if model_text
  "agent_version", -- if agent_version_text
  "stratum", -- if stratum_text
  "weight", -- if weight
  "penalty", -- if exact
  "place"
