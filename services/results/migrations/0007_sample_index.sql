-- Begins with the set, so that those of one set lie side by side.
CREATE FUNCTION sample_key(set_id uuid, digest bytea) RETURNS bytea
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN uuid_send(set_id) || digest;

-- As long as Postgres has not counted a new set, it takes an index that begins with the set for one that leads to few rows,
-- and reads all of the set for some of its positions: this one can only be entered with a digest. The position is an expression
-- here, so that no look-up by position takes it either.
-- Made before the other one goes (some three seconds for a million samples): until then samples are read, and none is stored.
CREATE INDEX samples_of_key ON samples (sample_key(set_id, digest), (position::bigint));
DROP INDEX samples_of_digest;
