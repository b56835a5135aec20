-- The first few rows of each reason.
SELECT "reason", "trace_id", "file", "row", "value"
FROM (
  SELECT
    *,
    row_number() OVER (PARTITION BY "reason" ORDER BY "file", "row", "trace_id") AS "place"
  FROM "bad"
) AS "numbered"
WHERE "place" <= $most
ORDER BY "reason", "place"
