-- The rows that count.
SELECT * FROM "rows" WHERE "reason" = 0
