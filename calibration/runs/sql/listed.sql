-- The runs that may be listed.
SELECT "outcome", "trace_id", "workflow", "model", "task", week_of("at") AS "week", "at", "cost", "latency"
FROM "rows"
WHERE
  "reason" = 0
  AND "at" <= $latest -- if latest
