-- Runs of some classes in order of time, those without a time last; so many of each.
SELECT "outcome", "trace_id", "workflow", "model", "task", "week", "at", "cost", "latency"
FROM (
  SELECT
    *,
    row_number() OVER (PARTITION BY "outcome" ORDER BY "at" IS NULL, "at", "trace_id") AS "place" -- if several
  FROM "rows"
  WHERE
    FALSE
    OR "outcome" = $outcome -- each classes
) AS "placed"
WHERE
  TRUE
  AND "place" <= $first -- if several
ORDER BY "outcome", "at" IS NULL, "at", "trace_id"
LIMIT $first -- if single
