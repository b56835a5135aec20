-- Runs that are equal in everything that enters a rate, counted, with the facts about them. "step" is 0
-- where cost or ceiling is not known, else the place of the first multiple of the ceiling that the
-- cost does not exceed; some of them count for one class only.
SELECT
  "reason",
  "week",
  "@key", -- each keys
  "outcome",
  "step",
  "exact_ratio", -- if exact
  count(*) AS "n",
  count("cost") AS "n_costed",
  sum("cost") AS "cost",
  sum("cost" * "cost") AS "cost_squared",
  sum(CASE WHEN "cost" IS NOT NULL THEN "units" ELSE 0.0 END) AS "units", -- if units
  sum("ratio") AS "ratio",
  sum("ratio" * "ratio") AS "ratio_squared",
  count(CASE WHEN "naive" THEN 1 END) AS "naive_times",
  count(CASE WHEN "bad_cost" THEN 1 END) AS "bad_cost",
  count(CASE WHEN "bad_time" THEN 1 END) AS "bad_time",
  count(CASE WHEN "no_units" THEN 1 END) AS "no_units",
  count("task") AS "tasked", -- if task_id
  min("at") AS "first", -- if started_at
  max("at") AS "last", -- if started_at
  count("edge") AS "tiered", -- if tier
  count(CASE WHEN "edge" THEN 1 END) AS "edge", -- if tier
  count(CASE WHEN "bad_lengths" THEN 1 END) AS "bad_lengths", -- if lengths
  count(CASE WHEN "bad_latency" THEN 1 END) AS "bad_latency"
FROM (
  SELECT
    *,
    "cost" / "ceiling" AS "ratio",
    "cost" / "ceiling" AS "exact_ratio", -- if exact
    CASE
      WHEN NOT "cost_known" THEN 0
-- each cuts:
      WHEN "cost" <= "ceiling" * $cut
        AND "outcome" = $cut_class -- if of_class
      THEN $cut_place
-- end
      ELSE $last
    END AS "step"
  FROM "coded"
) AS "stepped"
GROUP BY
  "reason",
  "week",
  "@key", -- each keys
  "outcome",
  "exact_ratio", -- if exact
  "step"
