-- The checked rows of one model, and from one time to before another. Rows without a time are in no
-- window, but those that could not be read stay to be counted.
SELECT *
FROM "rows"
WHERE
  (
    coalesce(
      TRUE
      AND "at" >= $since -- if since
      AND "at" < $until -- if until
      , FALSE
    )
    OR ("at" IS NULL AND "reason" <> 0) -- if window
  )
  AND (coalesce("model" = $model, FALSE) OR "reason" <> 0) -- if model
