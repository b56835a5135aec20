-- Cost over units by workflow, as sums over independent tasks.
SELECT
  "workflow",
  sum("n") AS "runs",
  sum("n_known") AS "known",
  sum(ones_of("units" > 0)) AS "tasks",
  sum("cost") AS "top",
  sum("units") AS "bottom",
  sum("cost" * "cost") AS "top_squared",
  sum("cost" * "units") AS "product",
  sum("units" * "units") AS "bottom_squared"
FROM "tasks"
GROUP BY 1
ORDER BY 1
