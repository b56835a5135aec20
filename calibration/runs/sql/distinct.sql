-- The number of distinct identities in a column.
SELECT count(DISTINCT "@column") AS "n" FROM "rows"
