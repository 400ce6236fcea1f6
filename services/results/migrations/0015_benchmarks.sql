-- compatible-from: 0015_benchmarks.sql
-- What a run evaluates is a benchmark: a suite, or the data set with this id. No code before it can use the schema.

ALTER TABLE run_records RENAME COLUMN suite TO benchmark;
ALTER TABLE closed_runs RENAME COLUMN suite TO benchmark;
-- The history of all runs of a kind keeps its key: *suite or *dataset.
ALTER TABLE history_entries RENAME COLUMN suite TO benchmark;
ALTER TABLE leaderboard_entries RENAME COLUMN suite TO benchmark;
