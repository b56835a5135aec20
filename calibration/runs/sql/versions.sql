-- The versions of the traces that are there more than once; the first row of each stands for it.
-- Rows are of one version where every column that is read has the same value.
SELECT
  "trace_id", "workflow", "outcome", "class", "cost", "units", "weight", "stratum", "model",
  "agent_version", "task", "trial", "status", "latency", "at", "tier", "difficulty", "category", "loops",
  "data_corruption", "tags", "tool_calls", "tool_errors", "looped", "looped_in_a_row", "n_steps",
  "total_tokens", "context_share", "escalated", "feedback", "verdict", "bad_tools", "bad_loops",
  "bad_lengths", "bad_escalated", "bad_feedback", "bad_verdict",
  bool_or("naive") AS "naive",
  bool_or("no_units") AS "no_units",
  bool_or("bad_latency") AS "bad_latency",
  bool_or("bad_cost") AS "bad_cost",
  bool_or("bad_time") AS "bad_time",
  min("reason") AS "reason",
  min("value") AS "value",
  min("row") AS "row",
  min("file") AS "file"
FROM "rows"
WHERE "trace_id" IN (SELECT "trace_id" FROM "repeated")
GROUP BY
  1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26,
  27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37
