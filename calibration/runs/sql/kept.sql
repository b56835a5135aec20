-- The rows without duplicates: those of a trace of their own, and one of those that are identical.
SELECT
  "trace_id", "workflow", "outcome", "class", "cost", "units", "weight", "stratum", "model",
  "agent_version", "task", "trial", "status", "latency", "at", "tier", "difficulty", "category", "loops",
  "data_corruption", "tags", "tool_calls", "tool_errors", "looped", "looped_in_a_row", "n_steps",
  "total_tokens", "context_share", "escalated", "feedback", "verdict", "bad_tools", "bad_loops",
  "bad_lengths", "bad_escalated", "bad_feedback", "bad_verdict", "naive", "no_units",
  "bad_latency", "bad_cost", "bad_time", "reason", "value", "row", "file"
FROM "rows"
WHERE NOT EXISTS (
  SELECT 1 FROM "repeated" WHERE "repeated"."trace_id" = "rows"."trace_id"
)
UNION ALL
SELECT *
FROM "versions"
WHERE "trace_id" IN (SELECT "trace_id" FROM "identical")
