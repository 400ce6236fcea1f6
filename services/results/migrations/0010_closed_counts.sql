-- compatible-from: 0005_rollouts.sql
-- The counts of a closed run beside its result: a history sums them over thousands of runs. Code before it writes the result only.

ALTER TABLE closed_runs
ADD COLUMN answered bigint GENERATED ALWAYS AS ((result ->> 'answered')::bigint) STORED,
ADD COLUMN failed bigint GENERATED ALWAYS AS ((result ->> 'failed')::bigint) STORED;
