-- The values of a column by week, workflow and bin of 1/128 of a factor e.
SELECT
  "place",
  "workflow", -- if workflow_text
  count(*) AS "n",
  min("value") AS "low",
  max("value") AS "high",
  sum("value") AS "total"
FROM (
  SELECT
    *,
    "head" * $width - $missing + coalesce(
      CASE
        WHEN "value" = 0 THEN $zero
        WHEN "value" > 0 AND "value" <= 1e300 THEN CAST(floor(ln("value") * $bins) AS BIGINT)
      END, $missing
    ) AS "place"
  FROM (
    SELECT
      "head",
      "workflow", -- if workflow_text
      CAST("@column" AS DOUBLE) AS "value" -- if column
      CAST(NULL AS DOUBLE) AS "value" -- unless column
    FROM "narrow"
  ) AS "valued"
) AS "binned"
GROUP BY
  "workflow", -- if workflow_text
  "place"
