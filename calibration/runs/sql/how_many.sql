-- Rows and traces.
SELECT count(*) AS "n", count(DISTINCT "trace_id") AS "traces" FROM "rows"
