-- Who made each change, and by which command or page.
ALTER TABLE audit ADD COLUMN actor VARCHAR;
ALTER TABLE audit ADD COLUMN origin VARCHAR;

-- One row. `commits` counts the changes; a file beside the store keeps the number too, so that a
-- store that lost its last changes is noticed.
CREATE TABLE store_state (
  store_id UUID NOT NULL,
  commits BIGINT NOT NULL
);
INSERT INTO store_state VALUES (uuidv7(), 0);
