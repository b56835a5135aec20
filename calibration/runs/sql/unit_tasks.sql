-- Tasks with a run of some classes whose cost is known; a run without a task is one of its own.
SELECT "workflow", count(DISTINCT coalesce("task", "trace_id")) AS "n"
FROM "rows"
WHERE
  "cost" IS NOT NULL
  AND CASE
    WHEN FALSE THEN 0
    WHEN "outcome" = $accepted THEN 1 -- each outcomes
    ELSE 0
  END = 1
GROUP BY 1
