-- Totals of tasks, or of random groups of them, by the keys of cells. Scores are not additive in the
-- penalty: they are summed here.
SELECT
  "place",
  "task", -- unless groups
  "alone", -- if alone
  "unit", -- if groups
  "workflow", -- if workflow_text
  "model", -- if model_text
  "agent_version", -- if agent_version_text
  "stratum", -- if stratum_text
  "weight", -- if weight
  count(*) AS "n",
  count("cost") AS "n_costed",
  sum("cost") AS "cost",
  sum("cost" * "cost") AS "cost_squared",
  sum(CASE WHEN "cost" IS NOT NULL THEN "units" ELSE 0.0 END) AS "units", -- if units
-- each credits:
  sum(greatest(
    CAST(CASE
      WHEN FALSE THEN 0.0
      WHEN "workflow_place" = $own_workflow AND "outcome" = $own_class THEN $own_credit -- each own
      WHEN "workflow" = $own_name AND "outcome" = $own_class THEN $own_credit -- each own_named
      WHEN "outcome" = $any_class THEN $any_credit -- each any
      ELSE 0.0
    END AS DOUBLE) - "penalty", 0.0
  )) AS "@score",
-- end
-- each whole:
  sum(CAST(CASE
    WHEN FALSE THEN 0.0
    WHEN "workflow_place" = $own_workflow AND "outcome" = $own_class THEN $own_credit -- each own
    WHEN "workflow" = $own_name AND "outcome" = $own_class THEN $own_credit -- each own_named
    WHEN "outcome" = $any_class THEN $any_credit -- each any
    ELSE 0.0
  END AS DOUBLE)) AS "@score",
-- end
  sum("penalty") AS "penalty",
  sum("penalty" * "penalty") AS "penalty_squared"
FROM (
  SELECT
    *,
    "head" % $names AS "workflow_place",
    CASE WHEN "task" IS NULL THEN "id" END AS "alone", -- if alone
    group_of(coalesce("task", "id"), $groups) AS "unit", -- if groups
    (
      CAST("head" AS BIGINT) -- unless groups
      "head" - "head" % $names -- if by_week
      "head" % $names -- if by_workflow
      CAST(0 AS BIGINT) -- if without_head
    ) * $head_below * $steps
    + CAST(
      "tail" -- if whole_tail
      "tail" % $below_model -- if by_week
      "tail" % $below_model -- if by_workflow
      "tail" % $below_version -- if by_model
      "tail" - "tail" % $below_version + "tail" % $below_model -- if by_agent_version
    AS BIGINT) * $steps
    + ones_of("penalty" > 0) AS "place"
  FROM "narrow"
) AS "placed"
GROUP BY
  "task", -- unless groups
  "alone", -- if alone
  "unit", -- if groups
  "workflow", -- if workflow_text
  "model", -- if model_text
  "agent_version", -- if agent_version_text
  "stratum", -- if stratum_text
  "weight", -- if weight
  "place"
