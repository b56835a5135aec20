-- The weight of runs at or below a latency over that of all, as sums over independent tasks.
SELECT
  sum(ones_of("bottom" > 0)) AS "tasks",
  sum("top") AS "top",
  sum("bottom") AS "bottom",
  sum("top" * "top") AS "top_squared",
  sum("top" * "bottom") AS "product",
  sum("bottom" * "bottom") AS "bottom_squared"
FROM (
  SELECT
    "workflow",
    "unit",
    sum(CASE WHEN "latency" <= $limit THEN "weight" ELSE 0.0 END) AS "top",
    sum("weight") AS "bottom"
  FROM "clocked"
  GROUP BY 1, 2
) AS "by_task"
