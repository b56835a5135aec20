-- What Spark does in its own way, in its own dialect.

CREATE FUNCTION localised(given, place) AS to_utc_timestamp(given, place);

CREATE FUNCTION group_of(given, n) AS CAST((hash(given) & 2147483647) % n AS BIGINT);
