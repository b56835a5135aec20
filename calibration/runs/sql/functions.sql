-- Functions of the statements in this folder. Texts are matched before they are cast: PostgreSQL has
-- no cast that gives nothing where a text is no number.

CREATE OR REPLACE TEMP MACRO text_of(given) AS nullif(given, '');

CREATE OR REPLACE TEMP MACRO ones_of(given) AS CASE WHEN given THEN 1 ELSE 0 END;

CREATE OR REPLACE TEMP MACRO stripped_of(given) AS
  trim(given, ' ' || chr(9) || chr(10) || chr(11) || chr(12) || chr(13));

CREATE OR REPLACE TEMP MACRO list_of(given) AS string_split(given, ';');

CREATE OR REPLACE TEMP MACRO once_of(given) AS list_distinct(given);

-- The place of a text in a list, from 1, null where it is not there: the lists begin with a text that
-- does not occur. And the number at such a place. DuckDB looks up each distinct text of a block once.

CREATE OR REPLACE TEMP MACRO number_at(numbers, place) AS list_extract(numbers, place + 1);

-- Numbers.

CREATE OR REPLACE TEMP MACRO fits_number(given) AS
  coalesce(regexp_matches(given, '^\s*[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,2})?\s*$'), FALSE)
  AND length(given) <= 300;

CREATE OR REPLACE TEMP MACRO endless_text(given) AS
  coalesce(regexp_matches(given, '^\s*[+-]?([nN][aA][nN]|[iI][nN][fF]([iI][nN][iI][tT][yY])?|[0-9.]+[eE]\+?[0-9]{3,})\s*$'), FALSE);

CREATE OR REPLACE TEMP MACRO number_of_text(given) AS
  TRY_CAST(CASE WHEN fits_number(given) THEN given END AS DOUBLE);

CREATE OR REPLACE TEMP MACRO no_number(given) AS
  given IS NOT NULL AND NOT fits_number(given) AND NOT endless_text(given);

-- NaN is larger than every number in all engines.
CREATE OR REPLACE TEMP MACRO endless_number(given) AS
  coalesce(given IS NOT NULL AND NOT (given BETWEEN -1e300 AND 1e300), FALSE);

-- Times, as moments; those without a zone are in UTC, or where one is named, in that.

CREATE OR REPLACE TEMP MACRO time_of_text(given) AS
  CASE
    WHEN regexp_matches(given, '^\s*[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])([T ]([01][0-9]|2[0-4]):[0-5][0-9](:[0-6][0-9](\.[0-9]{1,9})?)?(\s?([zZ]|[+-][01][0-9](:?[0-5][0-9])?))?)?\s*$')
    THEN given
  END;

CREATE OR REPLACE TEMP MACRO has_zone(given) AS
  regexp_matches(given, '[T ]([01][0-9]|2[0-4]):[0-5][0-9](:[0-6][0-9](\.[0-9]{1,9})?)?\s?([zZ]|[+-][01][0-9](:?[0-5][0-9])?)\s*$');

CREATE OR REPLACE TEMP MACRO moment_of_text(given) AS TRY_CAST(time_of_text(given) AS TIMESTAMPTZ);

CREATE OR REPLACE TEMP MACRO localised(given, place) AS timezone(place, given);

CREATE OR REPLACE TEMP MACRO moment_in_zone(given, place) AS
  CASE
    WHEN has_zone(time_of_text(given)) THEN moment_of_text(given)
    ELSE localised(TRY_CAST(time_of_text(given) AS TIMESTAMP), place)
  END;

-- The number of the week, from Monday on; `engines.week_labels` reads it.
CREATE OR REPLACE TEMP MACRO week_of(given) AS
  CAST(floor((CAST(epoch(given) AS DOUBLE) / 86400 - 4) / 7) AS INTEGER);

-- A number that stands for a text where only its being the same matters, and one of n from it.

CREATE OR REPLACE TEMP MACRO identity_of(given) AS hash(given);

CREATE OR REPLACE TEMP MACRO group_of(given, n) AS CAST((given & 2147483647) % n AS BIGINT);

-- Numbers that are written for people, in the plain form; any other text as it is. And times.

CREATE OR REPLACE TEMP MACRO bare_number(given) AS
  regexp_replace(
    regexp_replace(
      stripped_of(regexp_replace(stripped_of(given), '^(US\$|USD|\$)\s*|\s*(US\$|USD|\$)$', '', 'gi')),
      '\s*%$', ''
    ),
    '([0-9])[  '']([0-9])', '\1\2', 'g'
  );

CREATE OR REPLACE TEMP MACRO percent_of(plain, given) AS
  CASE
    WHEN regexp_matches(given, '%\s*$') THEN CAST(number_of_text(plain) / 100 AS VARCHAR)
    ELSE plain
  END;

CREATE OR REPLACE TEMP MACRO plain_of_point(given) AS
  CASE
    WHEN regexp_matches(bare_number(given), '^[+-]?([0-9]{1,3}(,[0-9]{3})+|[0-9]*)(\.[0-9]*)?([eE][+-]?[0-9]{1,3})?$')
    THEN percent_of(replace(bare_number(given), ',', ''), given)
    ELSE given
  END;

CREATE OR REPLACE TEMP MACRO plain_of_comma(given) AS
  CASE
    WHEN regexp_matches(bare_number(given), '^[+-]?([0-9]{1,3}(\.[0-9]{3})+|[0-9]*)(,[0-9]*)?([eE][+-]?[0-9]{1,3})?$')
    THEN percent_of(replace(replace(bare_number(given), '.', ''), ',', '.'), given)
    ELSE 'no number: ' || given
  END;

CREATE OR REPLACE TEMP MACRO moment_of_seconds(given) AS to_timestamp(given);

-- Days and months in two figures, for a date such as 3/4/2026.
CREATE OR REPLACE TEMP MACRO padded_date(given) AS
  regexp_replace(regexp_replace(given, '^([0-9])([/.-])', '0\1\2'), '^([0-9]{2}[/.-])([0-9][/.-])', '\10\2');

CREATE OR REPLACE TEMP MACRO iso_of_dmy(given) AS
  regexp_replace(padded_date(given), '^([0-9]{2})[/.-]([0-9]{2})[/.-]([0-9]{4})', '\3-\2-\1');

CREATE OR REPLACE TEMP MACRO iso_of_mdy(given) AS
  regexp_replace(padded_date(given), '^([0-9]{2})[/.-]([0-9]{2})[/.-]([0-9]{4})', '\3-\1-\2');

-- Whole numbers from 0 up, of a number, where it could not be read and where it is not finite.

CREATE OR REPLACE TEMP MACRO no_whole(given, unreadable, endless) AS
  unreadable OR endless
  OR (given IS NOT NULL AND NOT coalesce(given >= 0 AND given = floor(given), FALSE));

CREATE OR REPLACE TEMP MACRO whole_of(given, unreadable, endless) AS
  CASE WHEN NOT no_whole(given, unreadable, endless) THEN given END;

-- A mark for gates: 1, 0, or nothing where the text is neither.
CREATE OR REPLACE TEMP MACRO mark_of(given) AS
  CASE
    WHEN truth_of_word(given) THEN 1
    WHEN NOT truth_of_word(given) THEN 0
    WHEN regexp_matches(stripped_of(given), '^[0-9]{1,9}(\.[0-9]{1,9})?$')
    THEN ones_of(TRY_CAST(CASE WHEN regexp_matches(stripped_of(given), '^[0-9]{1,9}(\.[0-9]{1,9})?$') THEN stripped_of(given) END AS DOUBLE) > 0)
  END;

-- Tags of a text. A JSON list is parted at its quotes, so that a tag of it may hold a comma.

CREATE OR REPLACE TEMP MACRO parted_tags(given) AS
  CASE
    WHEN regexp_matches(given, '^\[\s*"')
    THEN regexp_replace(regexp_replace(given, '^\[\s*"|"\s*\]$', '', 'g'), '"\s*,\s*"', ';', 'g')
    ELSE regexp_replace(regexp_replace(given, '^\[|\]$', '', 'g'), ',', ';', 'g')
  END;

CREATE OR REPLACE TEMP MACRO tags_of(given) AS
  list_of(stripped_of(regexp_replace(parted_tags(stripped_of(given)), '\s*;\s*', ';', 'g')));
