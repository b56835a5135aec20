-- How many rows have one of these identities.
SELECT count(*) AS "n" FROM "rows" WHERE "@column" IN (SELECT unnest(CAST($watched AS VARCHAR[])))
