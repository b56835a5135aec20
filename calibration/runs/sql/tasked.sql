-- The rows that have a task.
SELECT * FROM "rows" WHERE "task" IS NOT NULL
