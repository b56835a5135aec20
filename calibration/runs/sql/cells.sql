-- Runs that are equal in everything that enters a rate, counted. "place" holds week, workflow, agent version,
-- model, stratum, class, whether the cost is known, and the step of the penalty.
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
  sum("penalty") AS "penalty"
FROM (
  SELECT
    *,
    ("head" * $head_below + CAST("tail" AS BIGINT)) * $steps
      + CAST(ceil("penalty" * $grid) AS BIGINT)
      -- A credit inside a step divides its traces into those that keep some of it and others.
      + CASE WHEN "penalty" >= $inside THEN 1 ELSE 0 END -- each inside
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
