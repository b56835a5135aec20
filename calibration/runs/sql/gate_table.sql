-- Tasks, or kinds of equal tasks.
SELECT
  "workflow", "tier", "category", "n", "successes", "partial", "weight",
  "unit" AS "task", -- if named
  1 AS "like" -- if named
  count(*) AS "like" -- unless named
FROM "tasks"
GROUP BY 1, 2, 3, 4, 5, 6, 7 -- unless named
