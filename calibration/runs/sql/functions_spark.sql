-- What Spark does in its own way, in its own dialect.

CREATE FUNCTION localised(given, place) AS to_utc_timestamp(given, place);

CREATE FUNCTION identity_of(given) AS xxhash64(given);

CREATE FUNCTION place_of(given, names) AS nullif(array_position(names, given), 0) - 1;

CREATE FUNCTION number_at(numbers, place) AS element_at(numbers, CAST(place + 1 AS INTEGER));

-- Nearly all texts are ASCII without blanks around: to see that costs less than cleaning them.
CREATE FUNCTION present_of(given) AS
  CASE
    WHEN octet_length(given) = length(given) AND ascii(given) > 32 AND ascii(right(given, 1)) > 32
    THEN CASE WHEN length(given) > 9 OR NOT missing_word(given) THEN given END
    ELSE written_of(given)
  END;
