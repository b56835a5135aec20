-- The first task whose runs differ in a text column, and two of its values.
SELECT "unit", "@text" AS "one", "last_@text" AS "other"
FROM "tasks"
WHERE "@text" <> "last_@text"
ORDER BY "workflow", "unit"
LIMIT 1
