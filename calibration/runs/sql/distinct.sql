-- The number of distinct identities in a column, and how many of them are those of watched texts.
SELECT
  count(*) AS "n",
  coalesce(sum(ones_of("identity" IN (
    CAST(0 AS BIGINT)
    , identity_of($watched) -- each watch
  ))), 0) AS "seen"
FROM (SELECT DISTINCT "@column" AS "identity" FROM "rows") AS "identities"
