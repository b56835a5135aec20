-- So many of the names in a column of the source, as written and clean: each is cleaned once.
SELECT "written", present_of("written") AS "name"
FROM (SELECT DISTINCT CAST("@column" AS VARCHAR) AS "written" FROM "source") AS "texts"
LIMIT $most
