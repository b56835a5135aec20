-- Week, ceiling, whether cost and ceiling are known, and the penalty. Step by step: a column that is
-- used twice is computed once, one that is not used not at all.
SELECT
  *,
-- each factors:
  CASE
    WHEN "cost_known" AND "cost" > "ceiling" * $factor
      THEN least(("cost" - "ceiling" * $factor) / ("ceiling" * $factor), 1.0)
    ELSE 0.0
  END AS "@at",
-- end
  CASE
    WHEN "cost_known" AND "cost" > "ceiling" THEN least(("cost" - "ceiling") / "ceiling", 1.0)
    ELSE 0.0
  END AS "penalty"
FROM (
  SELECT *, "cost" IS NOT NULL AND "ceiling" IS NOT NULL AS "cost_known"
  FROM (
    SELECT
      *,
      week_of("at") AS "week",
      number_at(
        [CAST(NULL AS DOUBLE)
          , $limit -- each ceilings
        ],
        place_of("workflow", [''
          , $limited -- each ceilings
        ])
      ) * "units" AS "ceiling"
    FROM "rows"
  ) AS "held"
) AS "known"
