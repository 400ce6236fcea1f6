-- compatible-from: 0005_rollouts.sql
-- Samples that agents work on. Code before it writes whole rows of samples, without the new column.

-- The message Rollout as it is sent to a worker, which nothing here reads; empty where a model is asked once.
ALTER TABLE samples ADD COLUMN rollout bytea NOT NULL DEFAULT '';

ALTER TYPE failure_class ADD VALUE 'verifier';
