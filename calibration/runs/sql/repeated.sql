-- The traces that are there more than once.
SELECT "trace_id" FROM "rows" GROUP BY 1 HAVING count(*) > 1
