-- What gates need of each task, whose runs are counted together.
SELECT
  "workflow",
  "unit",
  avg("weight") AS "weight",
  count(*) AS "n",
  min("@text") AS "@text", -- each text
  max("@text") AS "last_@text", -- each text
  sum(ones_of("outcome" = $success)) AS "successes",
  sum(CASE
    WHEN FALSE THEN 0
    WHEN "outcome" = $partial_class THEN 1 -- each partial
    ELSE 0
  END) AS "partial",
  sum("marked_@event") AS "@event", -- each events
  count("marked_@event") AS "looked_@event", -- each events
  sum(CASE WHEN "cost" IS NOT NULL THEN "weight" * "cost" ELSE 0.0 END) AS "cost",
  sum(CASE WHEN "cost" IS NOT NULL THEN "weight" * "units" ELSE 0.0 END) AS "units",
  count("cost") AS "n_known"
FROM "rows"
GROUP BY 1, 2
