-- The runs of a class in order of time, those without a time last.
SELECT *
FROM "rows"
WHERE
  "outcome" = $outcome
  AND "at" <= $before -- if before
ORDER BY "at" IS NULL, "at", "trace_id"
LIMIT $first -- if first
