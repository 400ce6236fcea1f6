-- compatible-from: 0011_run_traces.sql
-- Whether the object of a part is stored, so that it can be read. Code that does not set it stores as before.
ALTER TABLE rollout_artifacts ADD COLUMN is_stored boolean NOT NULL DEFAULT true;
