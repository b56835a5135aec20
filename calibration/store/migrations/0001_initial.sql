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
  role VARCHAR NOT NULL CHECK (role IN ('reviewer', 'lead', 'admin')),
  simulated BOOLEAN NOT NULL,
  created_at TIMESTAMP NOT NULL
);

-- How people sign in, and what a store demands; the newest row of a name counts.
CREATE TABLE setting (
  seq BIGINT PRIMARY KEY DEFAULT nextval('event_seq'),
  name VARCHAR NOT NULL,
  value JSON NOT NULL,
  created_at TIMESTAMP NOT NULL
);

-- Secrets stay in the store: the snapshot that others read has none of the next three tables.
CREATE TABLE credential (
  reviewer_id VARCHAR PRIMARY KEY,
  hash VARCHAR NOT NULL,
  created_at TIMESTAMP NOT NULL
);

CREATE TABLE sign_in (
  seq BIGINT PRIMARY KEY DEFAULT nextval('event_seq'),
  reviewer_id VARCHAR NOT NULL,
  address VARCHAR NOT NULL,
  succeeded BOOLEAN NOT NULL,
  created_at TIMESTAMP NOT NULL
);

CREATE TABLE session (
  token_hash VARCHAR PRIMARY KEY,
  reviewer_id VARCHAR NOT NULL,
  created_at TIMESTAMP NOT NULL,
  expires_at TIMESTAMP NOT NULL
);

CREATE TABLE batch (
  batch_id VARCHAR PRIMARY KEY,
  purpose VARCHAR NOT NULL CHECK (
    purpose IN ('practice', 'exam', 'production', 'repeat', 'adjudication')
  ),
  labels_wanted INTEGER NOT NULL CHECK (labels_wanted >= 1),
  design JSON NOT NULL,
  -- The only person it is served to; missing: everybody.
  reviewer_id VARCHAR,
  -- The certificate that it demands: of any form, or of a private one; missing: none.
  certificate VARCHAR CHECK (certificate IN ('any', 'private')),
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

-- An examination is a batch of one person: the form, or the traces that top up a class.
CREATE TABLE exam (
  batch_id VARCHAR PRIMARY KEY,
  seq BIGINT NOT NULL UNIQUE,
  reviewer_id VARCHAR NOT NULL,
  taxonomy_version VARCHAR NOT NULL,
  form VARCHAR NOT NULL,
  private BOOLEAN NOT NULL,
  attempt INTEGER NOT NULL CHECK (attempt >= 1),
  -- The form that this tops up; missing: it is the form.
  tops_up VARCHAR,
  created_at TIMESTAMP NOT NULL
);

-- How an examination ended, once, when its last trace was labelled.
CREATE TABLE exam_result (
  batch_id VARCHAR PRIMARY KEY,
  status VARCHAR NOT NULL CHECK (status IN ('passed', 'failed', 'top_up')),
  body JSON NOT NULL,
  created_at TIMESTAMP NOT NULL
);

CREATE TABLE certificate (
  seq BIGINT PRIMARY KEY,
  batch_id VARCHAR NOT NULL UNIQUE,
  reviewer_id VARCHAR NOT NULL,
  taxonomy_version VARCHAR NOT NULL,
  form VARCHAR NOT NULL,
  private BOOLEAN NOT NULL,
  simulated BOOLEAN NOT NULL,
  issued_at TIMESTAMP NOT NULL,
  expires_at TIMESTAMP NOT NULL
);

-- A lead lets somebody try once more than the rules allow.
CREATE TABLE attempt_allowed (
  seq BIGINT PRIMARY KEY,
  client_token VARCHAR NOT NULL UNIQUE,
  reviewer_id VARCHAR NOT NULL,
  taxonomy_version VARCHAR NOT NULL,
  allowed_by VARCHAR NOT NULL,
  reason VARCHAR NOT NULL,
  created_at TIMESTAMP NOT NULL
);

-- What is put between a reviewer's traces of a batch: silent gold and own repeats. Their labels
-- lie in a batch of their own (purpose repeat) that no number is drawn from.
CREATE TABLE inserted (
  batch_id VARCHAR NOT NULL,
  reviewer_id VARCHAR NOT NULL,
  trace_id VARCHAR NOT NULL,
  taxonomy_version VARCHAR NOT NULL,
  kind VARCHAR NOT NULL CHECK (kind IN ('gold', 'repeat')),
  slot INTEGER NOT NULL CHECK (slot >= 0),
  -- The consensus, or the own label, that it is held against: later events do not move it.
  against UUID NOT NULL,
  outcome VARCHAR NOT NULL,
  seq BIGINT NOT NULL UNIQUE,
  created_at TIMESTAMP NOT NULL,
  PRIMARY KEY (batch_id, reviewer_id, trace_id, taxonomy_version)
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

-- Append-only, and the only source of consensus; a withdrawal makes the trace open again.
CREATE TABLE adjudication_event (
  event_id UUID PRIMARY KEY DEFAULT uuidv7(),
  seq BIGINT NOT NULL UNIQUE,
  client_token VARCHAR NOT NULL UNIQUE,
  kind VARCHAR NOT NULL CHECK (kind IN ('consensus', 'withdrawal')),
  trace_id VARCHAR NOT NULL,
  taxonomy_version VARCHAR NOT NULL,
  -- The batch whose labels it settles; missing: consensus that came from elsewhere.
  batch_id VARCHAR,
  answers JSON,
  outcome VARCHAR,
  rationale VARCHAR,
  adjudicator VARCHAR NOT NULL,
  cause VARCHAR CHECK (
    cause IN ('trace_unclear', 'rubric_unclear', 'slip', 'real_judgement')
  ),
  -- The question at which the labels part first, and the adjudicator's class before seeing them.
  question VARCHAR,
  blind_outcome VARCHAR,
  -- Nothing that others said had been shown to the adjudicator before that.
  blind BOOLEAN,
  -- The labels that were settled, by event.
  label_events UUID[],
  -- The adjudicator had labelled the trace in the batch.
  own_label BOOLEAN,
  simulated BOOLEAN NOT NULL,
  created_at TIMESTAMP NOT NULL,
  CHECK ((kind = 'consensus') = (outcome IS NOT NULL))
);

CREATE VIEW consensus AS
SELECT * EXCLUDE (recency) FROM (
  SELECT *, row_number() OVER (
    PARTITION BY trace_id, taxonomy_version ORDER BY seq DESC
  ) AS recency
  FROM adjudication_event
) WHERE recency = 1 AND kind = 'consensus';

-- What keeps coming back in adjudication, as a sentence for the handbook; the newest row counts.
CREATE TABLE proposal_event (
  seq BIGINT PRIMARY KEY,
  client_token VARCHAR NOT NULL UNIQUE,
  proposal_id VARCHAR NOT NULL,
  taxonomy_version VARCHAR NOT NULL,
  question VARCHAR NOT NULL,
  text VARCHAR NOT NULL,
  trace_ids VARCHAR[] NOT NULL,
  status VARCHAR NOT NULL CHECK (status IN ('open', 'accepted', 'declined')),
  reason VARCHAR,
  reviewer_id VARCHAR NOT NULL,
  created_at TIMESTAMP NOT NULL
);

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
