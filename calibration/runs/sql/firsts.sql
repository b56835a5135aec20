-- The number of the first row of each file.
SELECT "file", min("row") AS "first" FROM "rows" GROUP BY 1
