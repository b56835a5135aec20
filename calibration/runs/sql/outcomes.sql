-- The classes of some runs.
SELECT "trace_id", "outcome"
FROM "rows"
WHERE "trace_id" IN (SELECT unnest(CAST($trace_ids AS VARCHAR[])))
