-- What PostgreSQL does in its own way, in its own dialect.

CREATE FUNCTION list_of(given) AS string_to_array(given, ';');

CREATE FUNCTION once_of(given) AS ARRAY(SELECT DISTINCT unnest(given));

CREATE FUNCTION identity_of(given) AS hashtextextended(given, 0);

CREATE FUNCTION place_of(given, names) AS array_position(names, given) - 1;

CREATE FUNCTION number_at(numbers, place) AS numbers[place + 1];

-- Nearly all texts are ASCII without blanks around: to see that costs less than cleaning them.
CREATE FUNCTION present_of(given) AS
  CASE
    WHEN octet_length(given) = length(given) AND ascii(given) > 32 AND ascii(right(given, 1)) > 32
    THEN CASE WHEN length(given) > 9 OR NOT missing_word(given) THEN given END
    ELSE written_of(given)
  END;
