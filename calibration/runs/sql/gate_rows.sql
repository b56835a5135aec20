-- The rows that count with their task, and a mark for each event: 1, 0, or null where nobody looked.
SELECT
  "trace_id", "workflow", "task", "trial", "outcome", "weight", "cost", "units", "latency", "loops",
  "data_corruption", "looped",
  CASE WHEN "task" IS NOT NULL THEN 't' || "task" ELSE 'r' || "trace_id" END AS "unit",
  coalesce("tier", $core) AS "tier",
  coalesce("category", '') AS "category",
  coalesce("model", '') AS "model",
  CASE WHEN "looped" IS NOT NULL THEN ones_of("looped") END AS "marked_loops",
  CASE WHEN "looped_in_a_row" IS NOT NULL THEN ones_of("looped_in_a_row") END AS "marked_loops_in_a_row",
  coalesce(
    mark_of("data_corruption"),
    CASE WHEN "tags" IS NOT NULL THEN ones_of(regexp_matches(lower("tags"), $corrupted)) END
  ) AS "marked_data_corruption",
  mark_of("data_corruption") AS "given_data_corruption"
FROM "rows"
