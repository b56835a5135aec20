-- The first task whose runs differ in what they say of it, and two things said.
SELECT "unit", "@said" AS "one", "last_@said" AS "other"
FROM "tasks"
WHERE "@said" <> "last_@said"
ORDER BY "workflow", "unit"
LIMIT 1
