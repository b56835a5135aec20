-- Runs once for each of their tags.
SELECT *, "asr_id" || $apart || "asr_tag" AS "asr_run"
FROM (
  SELECT *, CAST("@trace_id" AS VARCHAR) AS "asr_id", unnest(once_of("@tags")) AS "asr_tag" -- if listed
  SELECT *, CAST("@trace_id" AS VARCHAR) AS "asr_id", unnest(once_of(tags_of("@tags"))) AS "asr_tag" -- unless listed
  FROM "rows"
  WHERE NOT EXISTS ( -- if conflicts
    SELECT 1 FROM "conflicts" WHERE "conflicts"."asr_id" = "rows"."@trace_id" -- if conflicts
  ) -- if conflicts
) AS "each"
WHERE "asr_tag" <> ''
