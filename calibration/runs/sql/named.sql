-- How many rows have one of these pairs of workflow and trace id.
SELECT count(*) AS "n"
FROM "given"
WHERE "workflow" || $apart || "trace_id" IN (SELECT unnest(CAST($pairs AS VARCHAR[])))
