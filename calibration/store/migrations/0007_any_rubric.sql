-- A rubric has classes of its own: the store keeps the name, the taxonomy checks it. DuckDB cannot
-- drop a CHECK, so the table is made anew.
DROP VIEW label_current;

CREATE TABLE label_event_7 (
  event_id UUID PRIMARY KEY DEFAULT uuidv7(),
  seq BIGINT NOT NULL UNIQUE,
  client_token VARCHAR NOT NULL UNIQUE,
  kind VARCHAR NOT NULL CHECK (kind IN ('label', 'undo', 'skip')),
  trace_id VARCHAR NOT NULL,
  reviewer_id VARCHAR NOT NULL,
  batch_id VARCHAR NOT NULL,
  taxonomy_version VARCHAR NOT NULL,
  answers JSON,
  outcome VARCHAR,
  rationale VARCHAR,
  evidence JSON,
  confidence INTEGER CHECK (confidence BETWEEN 1 AND 3),
  tags JSON,
  sub_goals JSON,
  seconds_active DOUBLE,
  reason VARCHAR,
  supersedes UUID,
  simulated BOOLEAN NOT NULL,
  created_at TIMESTAMP NOT NULL,
  violations JSON,
  CHECK ((kind = 'label') = (outcome IS NOT NULL))
);
INSERT INTO label_event_7 BY NAME SELECT * FROM label_event ORDER BY seq;
DROP TABLE label_event;
ALTER TABLE label_event_7 RENAME TO label_event;

CREATE VIEW label_current AS
SELECT * EXCLUDE (recency) FROM (
  SELECT *, row_number() OVER (
    PARTITION BY reviewer_id, trace_id, batch_id, taxonomy_version ORDER BY seq DESC
  ) AS recency
  FROM label_event
) WHERE recency = 1 AND kind <> 'undo';
