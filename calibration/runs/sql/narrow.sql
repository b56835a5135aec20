-- Rows in numbers: "head" is week and workflow, "tail" agent version, model, stratum, class and
-- whether the cost is known, each as its place among the names that occur.
SELECT
  CASE WHEN "week" IS NULL THEN 0 ELSE CAST("week" AS BIGINT) + $week_0 END * $names + "workflow_place" AS "head",
  CAST(
    ((("version_place" * $names + "model_place") * $names + "stratum_place") * $most_classes + "class") * 2
    + ones_of("cost_known") AS INTEGER
  ) AS "tail",
  CAST("class" AS TINYINT) AS "outcome",
  "penalty",
  "cost",
  identity_of("trace_id") AS "id",
  "reason",
  "naive",
  "no_units",
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
  "workflow", -- if workflow_text
  "model", -- if model_text
  "agent_version", -- if agent_version_text
  "stratum", -- if stratum_text
  "bad_latency",
  "in_words"
FROM (
  SELECT
    *,
    CAST(CASE
      WHEN FALSE THEN 0
      WHEN "workflow" = $workflow THEN $workflow_place -- each workflows
      ELSE 0
    END AS BIGINT) AS "workflow_place",
    CAST(CASE
      WHEN FALSE THEN 0
      WHEN "model" = $model_name THEN $model_place -- each models
      ELSE 0
    END AS BIGINT) AS "model_place",
    CAST(CASE
      WHEN FALSE THEN 0
      WHEN "agent_version" = $version_name THEN $version_place -- each versions
      ELSE 0
    END AS BIGINT) AS "version_place",
    CAST(CASE
      WHEN FALSE THEN 0
      WHEN "stratum" = $stratum THEN $stratum_place -- each strata
      ELSE 0
    END AS BIGINT) AS "stratum_place",
    CAST(CASE
      WHEN FALSE THEN 0
      WHEN "outcome" = $class_name THEN $class_place -- each places
      ELSE $most_classes - 1
    END AS BIGINT) AS "class"
  FROM "priced"
) AS "placed"
