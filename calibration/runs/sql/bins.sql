-- The values of a column by week, workflow and bin of 1/128 of a factor e.
SELECT
  "week",
  "@key", -- each keys
  "bin",
  count(*) AS "n",
  min("value") AS "low",
  max("value") AS "high",
  sum("value") AS "total"
FROM (
  SELECT
    *,
    CASE
      WHEN "value" > 0 AND "value" <= 1e300 THEN CAST(floor(ln("value") * $bins) AS INTEGER)
      WHEN "value" = 0 THEN $zero
      ELSE $missing
    END AS "bin"
  FROM (
    SELECT
      *,
      CAST("@column" AS DOUBLE) AS "value" -- if column
      CAST(NULL AS DOUBLE) AS "value" -- unless column
    FROM "coded"
  ) AS "valued"
) AS "binned"
GROUP BY
  "week",
  "@key", -- each keys
  "bin"
