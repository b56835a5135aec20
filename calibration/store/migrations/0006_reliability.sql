-- What reliability is computed from; missing: not known. Expected calls and violations lie in the
-- Parquet parts, with the metadata; here is their number.
ALTER TABLE trace ADD COLUMN perturbation VARCHAR;
ALTER TABLE trace ADD COLUMN confidence DOUBLE;
ALTER TABLE trace ADD COLUMN context_tokens BIGINT;
ALTER TABLE trace ADD COLUMN n_expected_calls INTEGER;
ALTER TABLE trace ADD COLUMN n_violations INTEGER;
-- Steps name the specialist that took them; missing: the trace was stored before all this was read.
ALTER TABLE trace ADD COLUMN specialists BOOLEAN;

-- Safety violations that the reviewer marked: a JSON list; missing: the batch did not ask.
ALTER TABLE label_event ADD COLUMN violations JSON;

DROP VIEW label_current;
CREATE VIEW label_current AS
SELECT * EXCLUDE (recency) FROM (
  SELECT *, row_number() OVER (
    PARTITION BY reviewer_id, trace_id, batch_id, taxonomy_version ORDER BY seq DESC
  ) AS recency
  FROM label_event
) WHERE recency = 1 AND kind <> 'undo';
