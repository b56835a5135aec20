-- The coded rows with the penalties at other ceilings.
SELECT
  "week",
  "outcome",
  "cost_known",
  "cost",
  "@at" AS "penalty",
  "units", -- if units
  "task", -- if task_id
  "@key", -- each keys
  "id"
FROM "coded"
