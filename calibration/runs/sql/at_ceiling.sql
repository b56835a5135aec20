-- The narrow table with the penalties at other ceilings.
SELECT
  "head", "tail", "outcome", "cost",
  "@at" AS "penalty",
  "units", -- if units
  "weight", -- if weight
  "task", -- if task_id
  "workflow", -- if workflow_text
  "model", -- if model_text
  "stratum", -- if stratum_text
  "id"
FROM "narrow"
