-- Who people are at the identity provider; the newest row of a person counts. Before they first
-- sign in there is no issuer. A row without email and subject takes the link away.
CREATE TABLE provider_link (
  seq BIGINT PRIMARY KEY DEFAULT nextval('event_seq'),
  reviewer_id VARCHAR NOT NULL,
  issuer VARCHAR,
  subject VARCHAR,
  email VARCHAR,
  created_at TIMESTAMP NOT NULL
);
