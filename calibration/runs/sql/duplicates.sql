-- The rows of traces that are there more than once: those of one version, or of several.
SELECT *
FROM "rows"
WHERE
  "trace_id" IN (SELECT "trace_id" FROM "repeated")
  AND EXISTS ( -- if identical
  AND NOT EXISTS ( -- unless identical
    SELECT 1 FROM "same" WHERE "same"."trace_id" = "rows"."trace_id"
  )
