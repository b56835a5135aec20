-- The traces of one version.
SELECT "trace_id" FROM "versions" GROUP BY 1 HAVING count(*) = 1
