-- So many of the names that occur.
SELECT DISTINCT "@column" AS "name" FROM "rows" WHERE "@column" IS NOT NULL LIMIT $most
