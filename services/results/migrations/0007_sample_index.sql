-- The position is an expression here, so that no look-up by position takes this index: Postgres would read all of a set's.
DROP INDEX samples_of_digest;
CREATE INDEX samples_of_digest ON samples (set_id, digest, (position::bigint));
