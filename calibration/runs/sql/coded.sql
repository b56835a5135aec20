-- Rows in numbers: names as their places among those that occur, from 1, and 0 for none; ids as what
-- stands for them.
SELECT
  "week",
  "class" AS "outcome",
  "cost_known",
  "penalty",
  "@at", -- each factors
  "cost",
  "ceiling",
  "reason",
  "naive",
  "no_units",
  "bad_cost",
  "bad_time",
  "bad_latency",
  "units", -- if units
  "weight", -- if weight
  "latency", -- if latency_s
  "at", -- if started_at
  CASE WHEN "task" IS NOT NULL THEN identity_of("task") END AS "task", -- if task_id
  lower(stripped_of("tier")) = $edge AS "edge", -- if tier
  "difficulty", -- if difficulty
  "n_steps", -- if n_steps
  "total_tokens", -- if total_tokens
  "context_share", -- if context_tokens
  "bad_lengths", -- if lengths
  "@text", -- each texts
-- each named:
  coalesce(place_of("@name", [''
    , $own_name -- each names
  ]), 0) AS "@place",
-- end
  identity_of("trace_id") AS "id"
FROM "priced"
