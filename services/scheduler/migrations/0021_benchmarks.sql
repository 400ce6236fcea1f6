-- compatible-from: 0021_benchmarks.sql
-- What a run evaluates is a benchmark: a suite, or the data set or file with this id. No code before it can use the schema.

ALTER TABLE runs RENAME COLUMN suite TO benchmark;
ALTER TABLE runs RENAME CONSTRAINT runs_suite_suite_version_fkey TO runs_benchmark_suite_version_fkey;
ALTER INDEX runs_newest_of_suite RENAME TO runs_newest_of_benchmark;
ALTER VIEW run_rows RENAME COLUMN suite TO benchmark;
ALTER VIEW batch_rows RENAME COLUMN suite TO benchmark;
