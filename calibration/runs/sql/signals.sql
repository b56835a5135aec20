-- What runs say of operation, by week and unit: for each KEY the runs, or calls, that say something
-- ("n_KEY"), the same weighted ("of_KEY"), and weighted hits or scores ("KEY").
SELECT
  "week",
  "unit",
  "stratum", -- if stratum
  coalesce(sum("of_@key"), 0) AS "n_@key", -- each keys
  coalesce(sum("of_@key" * "weight"), 0) AS "of_@key", -- each keys
  coalesce(sum("@key" * "weight"), 0) AS "@key", -- each keys
  sum(ones_of("bad_@bad")) AS "bad_@bad", -- each wrong
  count(*) AS "n"
FROM (
  SELECT
    *,
    week_of("at") AS "week",
    group_of(identity_of("name"), $groups) AS "unit", -- if groups
    "name" AS "unit", -- unless groups
    CASE WHEN "word" IS NOT NULL THEN CAST(1 AS DOUBLE) END AS "of_errors",
    CASE WHEN "word" IS NOT NULL THEN CAST(ones_of("failed" AND NOT "late") AS DOUBLE) END AS "errors",
    CASE WHEN "word" IS NOT NULL THEN CAST(1 AS DOUBLE) END AS "of_timeouts",
    CASE WHEN "word" IS NOT NULL THEN CAST(ones_of("late") AS DOUBLE) END AS "timeouts",
    "tool_calls" AS "of_tool_errors",
    CASE WHEN "looped" IS NOT NULL THEN CAST(1 AS DOUBLE) END AS "of_loops",
    CASE WHEN "looped" IS NOT NULL THEN CAST(ones_of("looped") AS DOUBLE) END AS "loops",
    CASE WHEN "looped_in_a_row" IS NOT NULL THEN CAST(1 AS DOUBLE) END AS "of_loops_in_a_row",
    CASE WHEN "looped_in_a_row" IS NOT NULL THEN CAST(ones_of("looped_in_a_row") AS DOUBLE) END AS "loops_in_a_row",
    CASE WHEN "escalation" IS NOT NULL THEN CAST(1 AS DOUBLE) END AS "of_escalated",
    CASE WHEN "escalation" IS NOT NULL THEN CAST(ones_of("escalation") AS DOUBLE) END AS "escalated",
    CAST(ones_of("feedback" IS NOT NULL) AS DOUBLE) AS "feedback_given",
    CASE WHEN "feedback" IS NOT NULL THEN CAST(1 AS DOUBLE) END AS "of_feedback",
    CASE WHEN "feedback" IS NOT NULL THEN CAST(1 AS DOUBLE) END AS "of_feedback_negative",
    CASE WHEN "feedback" IS NOT NULL THEN CAST(ones_of("feedback" < 0) AS DOUBLE) END AS "feedback_negative",
    CASE WHEN "verdict" IS NOT NULL THEN CAST(1 AS DOUBLE) END AS "of_verdict_@verdict", -- each verdicts
    CASE WHEN "verdict" IS NOT NULL THEN CAST(ones_of("verdict" = $verdict) AS DOUBLE) END AS "verdict_@verdict", -- each verdicts
    CAST(1 AS DOUBLE) AS "of_feedback_given"
  FROM (
    SELECT
      "at", "stratum", "weight", "tool_calls", "tool_errors", "feedback", "verdict",
      "looped", "looped_in_a_row",
      "escalated" AS "escalation",
      "bad_tools", "bad_loops", "bad_escalated", "bad_feedback", "bad_verdict",
      lower("status") AS "word",
      regexp_matches(lower("status"), $failed) AS "failed",
      regexp_matches(lower("status"), $late) AS "late",
      "trace_id" AS "name" -- unless tasks
      CASE WHEN "task" IS NULL THEN 'r' || "trace_id" ELSE 't' || "task" END AS "name" -- if tasks
    FROM "rows"
  ) AS "runs"
) AS "signals"
GROUP BY
  "week",
  "stratum", -- if stratum
  "unit"
