-- What Spark does in its own way, in its own dialect.

CREATE FUNCTION localised(given, place) AS to_utc_timestamp(given, place);

CREATE FUNCTION identity_of(given) AS xxhash64(given);

CREATE FUNCTION place_of(given, names) AS nullif(array_position(names, given), 0) - 1;

CREATE FUNCTION number_at(numbers, place) AS element_at(numbers, CAST(place + 1 AS INTEGER));
