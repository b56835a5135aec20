-- The rows of a source in our own columns, each with the first reason against it (0: it counts) and
-- the value that is bad; "class" is the place of its class. "given": the columns as they could be
-- read, null where there is none.
SELECT
  "trace_id", "workflow", "class", "cost", "units", "weight", "stratum", "model", "agent_version",
  CASE
    WHEN "listed_class" IS NOT NULL THEN "outcome"
    WHEN "class" = $place THEN $class -- each classes
  END AS "outcome",
  -- Ids of tasks collide between workflows.
  "workflow" || $apart || "task_id" AS "task",
  "trial", "status",
  CASE WHEN NOT "bad_latency" THEN "latency" END AS "latency",
  CASE WHEN NOT "bad_time" THEN "at" END AS "at",
  "naive", "no_units", "bad_latency", "bad_cost", "bad_time",
  CAST("reason" AS TINYINT) AS "reason",
  -- Written out inside of the cases: few rows need it, and a time takes long to write.
  CASE "reason"
    WHEN $unknown_workflow THEN left(CAST("given_workflow" AS VARCHAR), $shown)
    WHEN $unknown_outcome THEN left(CAST("given_outcome" AS VARCHAR), $shown)
    WHEN $not_run THEN left(CAST("given_outcome" AS VARCHAR), $shown)
    WHEN $off_scale THEN left(CAST("given_outcome" AS VARCHAR), $shown)
    WHEN $partial_score THEN left(CAST("given_outcome" AS VARCHAR), $shown)
    WHEN $bad_weight THEN left(CAST("given_weight" AS VARCHAR), $shown)
    WHEN $unreadable_time THEN left(CAST("given_started_at" AS VARCHAR), $shown)
    WHEN $unknown_perturbation THEN left("perturbation", $shown)
    WHEN $perturbed_arm THEN "perturbation"
  END AS "value",
  "row", "file",
  "tier", "difficulty", "category", "loops", "data_corruption", "tags",
  CASE WHEN NOT "bad_tools" AND "errors_whole" IS NOT NULL THEN "calls_whole" END AS "tool_calls",
  CASE WHEN NOT "bad_tools" AND "calls_whole" IS NOT NULL THEN "errors_whole" END AS "tool_errors",
  coalesce("loops_truth", "loops_whole" > 0, "repeats_whole" >= $loop_from) AS "looped",
  coalesce("loops_in_a_row_truth", "in_a_row_whole" > 0) AS "looped_in_a_row",
  coalesce("escalated_truth", "escalated_whole" > 0) AS "escalated",
  CASE
    WHEN "feedback_worth" IS NOT NULL THEN "feedback_worth"
    WHEN NOT "bad_feedback" THEN "feedback"
  END AS "feedback",
  "known_verdict" AS "verdict",
  "steps_whole" AS "n_steps", "tokens_whole" AS "total_tokens",
  "context_whole" / nullif(coalesce("window_whole", $window), 0) AS "context_share", -- if window
  "context_whole" / nullif("window_whole", 0) AS "context_share", -- unless window
  "bad_lengths", "bad_tools", "bad_loops", "bad_escalated", "bad_feedback",
  "verdict" IS NOT NULL AND "known_verdict" IS NULL AS "bad_verdict"
FROM (
  SELECT
    *,
    "bad_calls" OR "bad_errors" OR coalesce("errors_whole" > "calls_whole", FALSE) AS "bad_tools",
    CASE
      WHEN "nothing" THEN $unreadable_row
      WHEN "trace_id" IS NULL AND "class" IS NULL THEN $total_row -- if without_ids
      WHEN "trace_id" IS NULL THEN $missing_trace_id -- if without_ids
      WHEN NOT "known_workflow" THEN $unknown_workflow
      WHEN "class" IS NULL AND "outcome" IS NULL THEN $missing_outcome
      WHEN "class" IS NULL THEN coalesce(
        number_at(
          [CAST(NULL AS INTEGER)
            , $gone_code -- each gone
          ],
          place_of("outcome", [''
            , $gone_word -- each gone
          ])
        ),
        $unknown_outcome
      )
      WHEN NOT coalesce("weight" > 0 AND "weight" <= $max_weight, FALSE) THEN $bad_weight
      WHEN "bad_time" THEN $unreadable_time -- if windowed
      WHEN NOT "known_arm" THEN $unknown_perturbation
      WHEN "perturbation" <> $not_perturbed THEN $perturbed_arm
      ELSE 0
    END AS "reason"
  FROM (
    SELECT
      *,
      CASE
        WHEN "cost_unreadable" OR "bad_units" THEN NULL
        WHEN "cost_read" BETWEEN 0 AND $max_usd * "units" THEN "cost_read"
      END AS "cost",
      "latency_unreadable" OR "latency_endless" OR coalesce("latency" < 0, FALSE) AS "bad_latency",
      CASE
        WHEN "perturbation" IS NULL THEN TRUE
        WHEN "perturbation" = $arm THEN TRUE -- each arms
        ELSE FALSE
      END AS "known_arm",
      CASE
        WHEN FALSE THEN NULL
        WHEN "verdict" = $verdict THEN "verdict" -- each verdicts
      END AS "known_verdict",
      whole_of("tool_calls_read", "tool_calls_unreadable", "tool_calls_endless") AS "calls_whole",
      no_whole("tool_calls_read", "tool_calls_unreadable", "tool_calls_endless") AS "bad_calls",
      whole_of("tool_errors_read", "tool_errors_unreadable", "tool_errors_endless") AS "errors_whole",
      no_whole("tool_errors_read", "tool_errors_unreadable", "tool_errors_endless") AS "bad_errors",
      whole_of("loops_read", "loops_unreadable", "loops_endless") AS "loops_whole",
      whole_of("loops_in_a_row_read", "loops_in_a_row_unreadable", "loops_in_a_row_endless")
        AS "in_a_row_whole",
      whole_of("max_repeats_read", "max_repeats_unreadable", "max_repeats_endless") AS "repeats_whole",
      no_whole("loops_read", "loops_unreadable", "loops_endless")
        OR no_whole("loops_in_a_row_read", "loops_in_a_row_unreadable", "loops_in_a_row_endless")
        OR no_whole("max_repeats_read", "max_repeats_unreadable", "max_repeats_endless") AS "bad_loops",
      whole_of("n_steps_read", "n_steps_unreadable", "n_steps_endless") AS "steps_whole",
      whole_of("total_tokens_read", "total_tokens_unreadable", "total_tokens_endless") AS "tokens_whole",
      whole_of("context_tokens_read", "context_tokens_unreadable", "context_tokens_endless") AS "context_whole",
      whole_of("context_window_read", "context_window_unreadable", "context_window_endless") AS "window_whole",
      no_whole("n_steps_read", "n_steps_unreadable", "n_steps_endless")
        OR no_whole("total_tokens_read", "total_tokens_unreadable", "total_tokens_endless")
        OR no_whole("context_tokens_read", "context_tokens_unreadable", "context_tokens_endless")
        OR no_whole("context_window_read", "context_window_unreadable", "context_window_endless") AS "bad_lengths",
      whole_of("escalated_read", "escalated_unreadable", "escalated_endless") AS "escalated_whole",
      no_whole("escalated_read", "escalated_unreadable", "escalated_endless") AS "bad_escalated",
      "feedback_unreadable" OR "feedback_endless"
        OR ("feedback" IS NOT NULL AND NOT ("feedback" BETWEEN -1 AND 1)) AS "bad_feedback"
    FROM (
      SELECT
        *,
        "cost_unreadable" OR "bad_units"
          OR coalesce("cost_read" < 0 OR "cost_read" > $max_usd * "units", FALSE) AS "bad_cost",
        "time_unreadable"
          OR coalesce("at" < CAST($first_day AS TIMESTAMP) OR "at" >= CAST($day_after AS TIMESTAMP), FALSE)
          AS "bad_time",
        coalesce(
          "listed_class",
          -- Used once, so that it is evaluated for the rows alone that need it.
          number_at(
            [CAST(NULL AS INTEGER)
              , $word_place -- each words
            ],
            place_of("outcome", [''
              , $word -- each words
            ])
          )
        ) AS "class"
      FROM (
        SELECT
          *,
          CASE WHEN NOT "bad_units" AND "units_read" IS NOT NULL THEN "units_read" ELSE 1.0 END AS "units",
          "units_read" IS NULL OR "bad_units" AS "no_units",
          CASE
            WHEN $any_workflow THEN TRUE
            ELSE place_of("workflow", [''
              , $known -- each known
            ]) IS NOT NULL
          END AS "known_workflow",
          place_of("outcome", [''
            , $class -- each classes
          ]) - 1 AS "listed_class"
        FROM (
          SELECT
            *,
            "units_unreadable" OR "units_endless"
              OR coalesce("units_read" <= 0 OR "units_read" > $max_units, FALSE) AS "bad_units"
          FROM "given"
        ) AS "named"
      ) AS "placed"
    ) AS "classed"
  ) AS "read"
) AS "judged"
