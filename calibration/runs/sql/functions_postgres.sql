-- What PostgreSQL does in its own way, in its own dialect.

CREATE FUNCTION list_of(given) AS string_to_array(given, ';');

CREATE FUNCTION once_of(given) AS ARRAY(SELECT DISTINCT unnest(given));

CREATE FUNCTION group_of(given, n) AS
  CAST((hashtextextended(given, 0) & 2147483647) % n AS BIGINT);
