
-- Judges that we run. A verdict's judge_id is the name of one; body is JSON: its version, what the
-- probe found, address and prices. `line` is the first of the versions that it was made from.
CREATE TABLE judge_version (
  judge_id VARCHAR PRIMARY KEY,
  version_id VARCHAR NOT NULL UNIQUE,
  line VARCHAR NOT NULL,
  body JSON NOT NULL,
  created_by VARCHAR,
  created_at TIMESTAMP NOT NULL
);

-- Each time verdicts were joined with locked labels: what was asked for, and what was found.
CREATE TABLE judge_look (
  seq BIGINT PRIMARY KEY DEFAULT nextval('event_seq'),
  line VARCHAR NOT NULL,
  judge_id VARCHAR NOT NULL,
  form VARCHAR NOT NULL,
  number INTEGER NOT NULL,
  body JSON NOT NULL,
  created_by VARCHAR,
  created_at TIMESTAMP NOT NULL,
  UNIQUE (line, form, number)
);

-- Why there is no verdict; and as JSON how it came about: answers, quotes, samples, replies.
ALTER TABLE verdict ADD COLUMN cause VARCHAR;
ALTER TABLE verdict ADD COLUMN detail JSON;
