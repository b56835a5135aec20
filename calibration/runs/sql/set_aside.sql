-- The rows that do not count.
SELECT * FROM "rows" WHERE "reason" <> 0
