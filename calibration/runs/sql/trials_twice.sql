-- A trial of a task that is there more than once.
SELECT "workflow", "task", "model", "trial", count(*) AS "times"
FROM "rows"
WHERE "task" IS NOT NULL AND "trial" IS NOT NULL
GROUP BY 1, 2, 3, 4
HAVING count(*) > 1
ORDER BY 1, 2, 3, 4
LIMIT 1
