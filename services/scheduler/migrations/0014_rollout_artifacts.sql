-- compatible-from: 0011_run_traces.sql
-- What workers stored of rollouts, in parts. The objects are under runs/<run>; a row is here before its object is.
CREATE TABLE rollout_artifacts (
    run_id      uuid NOT NULL,
    sample      bigint NOT NULL,
    rollout     integer NOT NULL,
    -- A rollout that began anew, after its worker ended, has several.
    execution   text NOT NULL,
    name        text NOT NULL,
    part        integer NOT NULL,
    -- Owner of the run, whose storage it counts towards.
    username    text NOT NULL,
    size_bytes  bigint NOT NULL,
    stored_at   timestamptz NOT NULL,
    PRIMARY KEY (run_id, sample, rollout, execution, name, part)
);

CREATE INDEX rollout_artifacts_of_user ON rollout_artifacts (username) INCLUDE (run_id, size_bytes);
