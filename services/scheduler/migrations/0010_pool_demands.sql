-- compatible-from: 0009_runs_of_batches.sql
-- What each pool needs, as the leader has computed it: every replica answers autoscalers from here.
CREATE TABLE pool_demands (
    pool          text PRIMARY KEY,
    workers       integer NOT NULL CHECK (workers >= 0),
    -- Outstanding samples, and samples per second of one worker, by model.
    samples       jsonb NOT NULL,
    speeds        jsonb NOT NULL,
    -- How long the last worker took to load its model; null while none has been seen to.
    load_seconds  double precision,
    computed_at   timestamptz NOT NULL
);
