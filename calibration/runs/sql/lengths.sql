-- Runs and successes by bin of a length and unit: a task, a run without one, or a random group.
SELECT
  "place",
  "unit",
  "@key", -- each keys
  count(*) AS "n",
  sum("weight") AS "of", -- if weight
  CAST(count(*) AS DOUBLE) AS "of", -- unless weight
  sum(CASE WHEN "outcome" = $success THEN "weight" ELSE 0.0 END) AS "hits", -- if weight
  CAST(sum(ones_of("outcome" = $success)) AS DOUBLE) AS "hits", -- unless weight
  sum("value") AS "total",
  min("value") AS "low",
  max("value") AS "high"
FROM (
  SELECT
    *,
    CASE
      WHEN FALSE THEN 0
      WHEN "value" <= $edge THEN $edge_place -- each edges
      ELSE $last
    END AS "place",
    group_of( -- if groups
    coalesce("task", "id") -- if tasks
    "id" -- unless tasks
    , $groups) -- if groups
    AS "unit"
  FROM (
    SELECT *, CAST("@column" AS DOUBLE) AS "value" FROM "coded"
  ) AS "valued"
  WHERE "value" IS NOT NULL
) AS "placed"
GROUP BY
  "place",
  "@key", -- each keys
  "unit"
