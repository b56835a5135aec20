-- Latencies with the weight of their runs.
SELECT "latency", sum("weight") AS "weight", count(*) AS "n" FROM "clocked" GROUP BY 1 ORDER BY 1
