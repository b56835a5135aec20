-- Tasks and runs, tasks whose runs differ in what they say of it, and events.
SELECT
  sum("n") AS "n",
  sum(ones_of("@text" <> "last_@text")) AS "differing_@text", -- each text
  sum("@event") AS "@event", -- each events
  sum("looked_@event") AS "looked_@event", -- each events
  sum(ones_of("looked_@event" > 0)) AS "tasks_@event", -- each events
  count(*) AS "tasks"
FROM "tasks"
