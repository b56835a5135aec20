-- So many of the names in a column of the source: of few different texts, each is cleaned once.
SELECT DISTINCT present_of("written") AS "name"
FROM (SELECT DISTINCT CAST("@column" AS VARCHAR) AS "written" FROM "source") AS "texts"
LIMIT $most
