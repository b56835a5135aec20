-- The runs of some tags.
SELECT *
FROM "rows"
WHERE
  FALSE
  OR "asr_tag" = $tag -- each tags
