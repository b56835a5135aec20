-- The tasks, or the traces without one, and what stands for them in the coded rows.
SELECT DISTINCT "@column" AS "text", identity_of("@column") AS "identity"
FROM "rows"
WHERE "task" IS NOT NULL -- unless alone
WHERE "task" IS NULL -- if alone
