-- The rows without those of a trace that has a later one.
SELECT *
FROM "rows"
WHERE
  "reason" <> 0
  OR "at" IS NULL
  OR "at" = (
    SELECT max("others"."at") FROM "others" WHERE "others"."trace_id" = "rows"."trace_id"
  )
