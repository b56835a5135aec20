-- Runs of some classes by what a unit of them cost.
SELECT "workflow", "cost" / "units" AS "amount", count(*) AS "n"
FROM "rows"
WHERE
  "cost" IS NOT NULL
  AND CASE
    WHEN FALSE THEN 0
    WHEN "outcome" = $accepted THEN 1 -- each outcomes
    ELSE 0
  END = 1
GROUP BY 1, 2
