-- Totals of tasks, or of random groups of them, by the keys of cells. Scores are not additive in the
-- penalty: they are summed here.
SELECT
  "task", -- unless groups
  "alone", -- if alone
  "unit", -- if groups
  "week", -- if by_week
  "@key", -- each keys
  "outcome",
  "cost_known",
  "step",
  count(*) AS "n",
  count("cost") AS "n_costed",
  sum("cost") AS "cost",
  sum("cost" * "cost") AS "cost_squared",
  sum(CASE WHEN "cost" IS NOT NULL THEN "units" ELSE 0.0 END) AS "units", -- if units
-- each credits:
  sum(greatest(
    CAST(CASE
      WHEN FALSE THEN 0.0
      WHEN "@own_key" = $own_workflow AND "outcome" = $own_class THEN $own_credit -- each own
      WHEN "outcome" = $any_class THEN $any_credit -- each any
      ELSE 0.0
    END AS DOUBLE) - "penalty", 0.0
  )) AS "@score",
-- end
-- each whole:
  sum(CAST(CASE
    WHEN FALSE THEN 0.0
    WHEN "@own_key" = $own_workflow AND "outcome" = $own_class THEN $own_credit -- each own
    WHEN "outcome" = $any_class THEN $any_credit -- each any
    ELSE 0.0
  END AS DOUBLE)) AS "@score",
-- end
  sum("penalty") AS "penalty",
  sum("penalty" * "penalty") AS "penalty_squared"
FROM (
  SELECT
    *,
    CASE WHEN "task" IS NULL THEN "id" END AS "alone", -- if alone
    group_of(coalesce("task", "id"), $groups) AS "unit", -- if groups
    ones_of("penalty" > 0) AS "step"
  FROM "coded"
) AS "stepped"
GROUP BY
  "task", -- unless groups
  "alone", -- if alone
  "unit", -- if groups
  "week", -- if by_week
  "@key", -- each keys
  "outcome",
  "cost_known",
  "step"
