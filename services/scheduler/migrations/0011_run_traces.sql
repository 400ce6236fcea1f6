-- compatible-from: 0009_runs_of_batches.sql
-- The trace that a run was ordered in (W3C traceparent), where it is traced: whichever scheduler leads continues it.
CREATE TABLE run_traces (
    run_id       uuid PRIMARY KEY REFERENCES runs ON DELETE CASCADE,
    traceparent  text NOT NULL
);
