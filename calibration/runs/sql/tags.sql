-- Tags by how many rows have them.
SELECT "asr_tag", count(*) AS "n" FROM "rows" GROUP BY 1 ORDER BY 2 DESC, 1
