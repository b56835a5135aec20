-- When the first so many runs of a class began.
SELECT "at" FROM "narrow" WHERE "outcome" = $place AND "at" IS NOT NULL ORDER BY "at" LIMIT $first
