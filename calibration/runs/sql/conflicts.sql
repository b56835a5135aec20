-- The traces that say two things under one id.
SELECT "@trace_id" AS "asr_id"
FROM "rows"
GROUP BY 1
HAVING
  FALSE
  OR count(DISTINCT coalesce(CAST("@other" AS VARCHAR), '')) > 1 -- each others
