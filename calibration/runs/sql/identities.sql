-- What stands for the texts of a column, a part of it at a time.
SELECT "@column" AS "identity"
FROM "rows"
WHERE "@column" % $parts = $part -- if parts
