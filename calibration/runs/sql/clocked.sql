-- Runs with a latency; many are rounded up to 1/4096 of a factor e.
SELECT
  "workflow", "unit", "weight",
  "latency" -- unless bins
  CASE WHEN "latency" > 0 THEN exp(ceil(ln("latency") * $bins) / $bins) ELSE 0.0 END AS "latency" -- if bins
FROM "rows"
WHERE "latency" IS NOT NULL
