-- Rows by reason, and the facts about those that count, in one pass.
SELECT
  "reason",
  count(*) AS "n",
  sum(ones_of("naive")) AS "naive_times",
  sum(ones_of("in_words")) AS "in_words",
  count("cost") AS "costed",
  sum(ones_of("bad_latency")) AS "bad_latency",
  count("at") AS "timed", -- if started_at
  count("latency") AS "clocked", -- if latency_s
  count("task") AS "tasked", -- if task_id
  min("at") AS "first", -- if started_at
  max("at") AS "last", -- if started_at
  count("edge") AS "tiered", -- if tier
  sum(ones_of("edge")) AS "edge", -- if tier
  count(DISTINCT "difficulty") AS "levels", -- if difficulty
  sum(ones_of("bad_lengths")) AS "bad_lengths", -- if lengths
  sum(ones_of("no_units")) AS "no_units"
FROM "narrow"
GROUP BY 1
