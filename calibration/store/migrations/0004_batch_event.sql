-- What a lead calls a batch, and whom it is given to; the newest row of a batch counts. An empty
-- name is none, and without people it is given to everybody.
CREATE TABLE batch_event (
  seq BIGINT PRIMARY KEY DEFAULT nextval('event_seq'),
  batch_id VARCHAR NOT NULL,
  name VARCHAR NOT NULL,
  people VARCHAR[] NOT NULL,
  created_at TIMESTAMP NOT NULL
);
