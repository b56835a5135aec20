-- Times are UTC. VARCHAR with CHECK rather than ENUM, and no foreign keys: DuckDB cannot
-- extend an enum and rejects updates of referenced rows; references are checked on insert.
CREATE SEQUENCE event_seq;

CREATE TABLE taxonomy (
  fingerprint VARCHAR PRIMARY KEY,
  version VARCHAR NOT NULL UNIQUE,
  body JSON NOT NULL,
  created_at TIMESTAMP NOT NULL
);

CREATE TABLE workflow (
  name VARCHAR PRIMARY KEY,
  ceiling_usd DOUBLE CHECK (ceiling_usd > 0),
  unit VARCHAR NOT NULL,
  created_at TIMESTAMP NOT NULL
);

CREATE TABLE agent (
  model VARCHAR NOT NULL,
  agent_version VARCHAR NOT NULL,
  tag VARCHAR NOT NULL UNIQUE,
  PRIMARY KEY (model, agent_version)
);

-- The index of the traces; their text lies in immutable Parquet parts beside the store.
CREATE TABLE trace (
  trace_id VARCHAR PRIMARY KEY,
  seq BIGINT NOT NULL,
  source VARCHAR NOT NULL,
  source_id VARCHAR NOT NULL,
  trial INTEGER NOT NULL,
  content_hash VARCHAR NOT NULL,
  possible_duplicate_of VARCHAR,
  workflow VARCHAR NOT NULL,
  task_id VARCHAR NOT NULL,
  task_key VARCHAR NOT NULL,
  model VARCHAR,
  agent_version VARCHAR,
  agent_tag VARCHAR NOT NULL,
  status VARCHAR,
  started_at TIMESTAMP,
  latency_s DOUBLE,
  cost_usd DOUBLE CHECK (cost_usd >= 0),
  units DOUBLE NOT NULL CHECK (units > 0),
  total_tokens BIGINT,
  n_steps INTEGER NOT NULL,
  simulated BOOLEAN NOT NULL,
  part VARCHAR NOT NULL,
  created_at TIMESTAMP NOT NULL
);

-- Which tools a trace called, and how many of the calls ended in an error.
CREATE TABLE trace_tool (
  trace_id VARCHAR NOT NULL,
  tool VARCHAR NOT NULL,
  calls INTEGER NOT NULL CHECK (calls > 0),
  errors INTEGER NOT NULL CHECK (errors >= 0 AND errors <= calls),
  -- The simulated user called it, not the agent.
  by_user BOOLEAN NOT NULL
);

-- Append-only: the newest row of a name counts, one without filters takes the name back.
CREATE TABLE saved_query (
  seq BIGINT PRIMARY KEY DEFAULT nextval('event_seq'),
  name VARCHAR NOT NULL,
  filters JSON,
  created_at TIMESTAMP NOT NULL
);

CREATE TABLE reviewer (
  reviewer_id VARCHAR PRIMARY KEY,
  name VARCHAR NOT NULL,
  role VARCHAR NOT NULL CHECK (role IN ('reviewer', 'lead')),
  simulated BOOLEAN NOT NULL,
  created_at TIMESTAMP NOT NULL
);

CREATE TABLE batch (
  batch_id VARCHAR PRIMARY KEY,
  purpose VARCHAR NOT NULL CHECK (purpose IN ('practice', 'exam', 'production', 'repeat')),
  labels_wanted INTEGER NOT NULL CHECK (labels_wanted >= 1),
  design JSON NOT NULL,
  token VARCHAR UNIQUE,
  created_at TIMESTAMP NOT NULL
);

CREATE TABLE batch_item (
  batch_id VARCHAR NOT NULL,
  trace_id VARCHAR NOT NULL,
  position INTEGER NOT NULL,
  inclusion_probability DOUBLE CHECK (inclusion_probability > 0 AND inclusion_probability <= 1),
  labels_wanted INTEGER NOT NULL CHECK (labels_wanted >= 1),
  stratum INTEGER CHECK (stratum >= 0),
  PRIMARY KEY (batch_id, trace_id)
);

CREATE TABLE lease (
  batch_id VARCHAR NOT NULL,
  trace_id VARCHAR NOT NULL,
  reviewer_id VARCHAR NOT NULL,
  expires_at TIMESTAMP NOT NULL,
  PRIMARY KEY (batch_id, trace_id, reviewer_id)
);

CREATE TABLE label_event (
  event_id UUID PRIMARY KEY DEFAULT uuidv7(),
  seq BIGINT NOT NULL UNIQUE,
  client_token VARCHAR NOT NULL UNIQUE,
  kind VARCHAR NOT NULL CHECK (kind IN ('label', 'undo', 'skip')),
  trace_id VARCHAR NOT NULL,
  reviewer_id VARCHAR NOT NULL,
  batch_id VARCHAR NOT NULL,
  taxonomy_version VARCHAR NOT NULL,
  answers JSON,
  outcome VARCHAR CHECK (
    outcome IN ('complete', 'partial_plus', 'partial_minus', 'hallucinated', 'abandoned')
  ),
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
  CHECK ((kind = 'label') = (outcome IS NOT NULL))
);

CREATE VIEW label_current AS
SELECT * EXCLUDE (recency) FROM (
  SELECT *, row_number() OVER (
    PARTITION BY reviewer_id, trace_id, batch_id, taxonomy_version ORDER BY seq DESC
  ) AS recency
  FROM label_event
) WHERE recency = 1 AND kind <> 'undo';

CREATE TABLE draft (
  batch_id VARCHAR NOT NULL,
  trace_id VARCHAR NOT NULL,
  reviewer_id VARCHAR NOT NULL,
  body JSON NOT NULL,
  updated_at TIMESTAMP NOT NULL,
  PRIMARY KEY (batch_id, trace_id, reviewer_id)
);

-- What a person was shown of what others said; a label given after that is not blind.
CREATE TABLE exposure (
  reviewer_id VARCHAR NOT NULL,
  trace_id VARCHAR NOT NULL,
  what VARCHAR NOT NULL CHECK (what IN ('labels', 'verdicts', 'canonical')),
  seq BIGINT NOT NULL,
  created_at TIMESTAMP NOT NULL,
  PRIMARY KEY (reviewer_id, trace_id, what)
);

-- "Look at this trace", from a reviewer to the lead; no label, and not for other reviewers.
CREATE TABLE flag_event (
  event_id UUID PRIMARY KEY DEFAULT uuidv7(),
  seq BIGINT NOT NULL UNIQUE,
  client_token VARCHAR NOT NULL UNIQUE,
  kind VARCHAR NOT NULL CHECK (kind IN ('flag', 'unflag')),
  trace_id VARCHAR NOT NULL,
  reviewer_id VARCHAR NOT NULL,
  batch_id VARCHAR NOT NULL,
  reason VARCHAR,
  simulated BOOLEAN NOT NULL,
  created_at TIMESTAMP NOT NULL
);

CREATE VIEW flag_current AS
SELECT * EXCLUDE (recency) FROM (
  SELECT *, row_number() OVER (
    PARTITION BY reviewer_id, trace_id, batch_id ORDER BY seq DESC
  ) AS recency
  FROM flag_event
) WHERE recency = 1 AND kind = 'flag';

CREATE TABLE adjudication_event (
  event_id UUID PRIMARY KEY DEFAULT uuidv7(),
  seq BIGINT NOT NULL UNIQUE,
  client_token VARCHAR NOT NULL UNIQUE,
  trace_id VARCHAR NOT NULL,
  taxonomy_version VARCHAR NOT NULL,
  answers JSON NOT NULL,
  outcome VARCHAR NOT NULL,
  rationale VARCHAR,
  adjudicator VARCHAR NOT NULL,
  simulated BOOLEAN NOT NULL,
  created_at TIMESTAMP NOT NULL
);

CREATE VIEW consensus AS
SELECT * EXCLUDE (recency) FROM (
  SELECT *, row_number() OVER (
    PARTITION BY trace_id, taxonomy_version ORDER BY seq DESC
  ) AS recency
  FROM adjudication_event
) WHERE recency = 1;

CREATE TABLE judge (
  judge_id VARCHAR PRIMARY KEY,
  simulated BOOLEAN NOT NULL,
  created_at TIMESTAMP NOT NULL
);

CREATE TABLE verdict (
  judge_id VARCHAR NOT NULL,
  trace_id VARCHAR NOT NULL,
  sample INTEGER NOT NULL,
  outcome VARCHAR NOT NULL,
  reason VARCHAR,
  evidence JSON,
  proposed BOOLEAN NOT NULL,
  grade INTEGER CHECK (grade BETWEEN 1 AND 5),
  cost_usd DOUBLE,
  created_at TIMESTAMP NOT NULL,
  PRIMARY KEY (judge_id, trace_id, sample)
);

CREATE TABLE audit (
  seq BIGINT PRIMARY KEY DEFAULT nextval('event_seq'),
  what VARCHAR NOT NULL,
  detail JSON NOT NULL,
  created_at TIMESTAMP NOT NULL
);
