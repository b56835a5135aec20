-- Marks that are neither yes nor no: a run whose mark cannot be read is not one without it.
SELECT
  sum(ones_of("bad_loops")) AS "loops",
  min(CASE WHEN "bad_loops" THEN "loops" END) AS "first_loops",
  sum(ones_of("bad_data_corruption")) AS "data_corruption",
  min(CASE WHEN "bad_data_corruption" THEN "data_corruption" END) AS "first_data_corruption"
FROM (
  SELECT
    "loops", "data_corruption",
    stripped_of("loops") <> '' AND "looped" IS NULL AS "bad_loops",
    stripped_of("data_corruption") <> '' AND "given_data_corruption" IS NULL AS "bad_data_corruption"
  FROM "rows"
) AS "marks"
