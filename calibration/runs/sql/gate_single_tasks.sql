-- What gates need of each task, where each is one run.
SELECT
  "workflow",
  "unit",
  "weight",
  1 AS "n",
  "@text", -- each text
  "@text" AS "last_@text", -- each text
  ones_of("outcome" = $success) AS "successes",
  CASE
    WHEN FALSE THEN 0
    WHEN "outcome" = $partial_class THEN 1 -- each partial
    ELSE 0
  END AS "partial",
  "marked_@event" AS "@event", -- each events
  ones_of("marked_@event" IS NOT NULL) AS "looked_@event", -- each events
  CASE WHEN "cost" IS NOT NULL THEN "weight" * "cost" ELSE 0.0 END AS "cost",
  CASE WHEN "cost" IS NOT NULL THEN "weight" * "units" ELSE 0.0 END AS "units",
  ones_of("cost" IS NOT NULL) AS "n_known"
FROM "rows"
