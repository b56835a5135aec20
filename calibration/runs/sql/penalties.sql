-- How many combinations of workflow, class and penalty there are.
SELECT count(*) AS "n"
FROM (
  SELECT DISTINCT
    "workflow", -- if workflow_text
    "head" % $names AS "workflow_place",
    "outcome",
    "penalty"
  FROM (
    SELECT *
    FROM "narrow"
    WHERE "penalty" > 0 -- if penalised
    WHERE "penalty" = 0 -- unless penalised
    LIMIT $probed -- if probed
  ) AS "those"
) AS "combinations"
