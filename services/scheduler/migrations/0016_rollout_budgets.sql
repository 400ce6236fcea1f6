-- compatible-from: 0011_run_traces.sql
-- What each execution of a rollout used of its budgets; a rollout that begins anew in the epoch has the rest of them.
CREATE TABLE rollout_budgets (
    run_id            uuid NOT NULL REFERENCES runs ON DELETE CASCADE,
    epoch             integer NOT NULL,
    sample            bigint NOT NULL,
    rollout           integer NOT NULL,
    execution         text NOT NULL,
    began_at          timestamptz NOT NULL,
    steps             integer NOT NULL,
    prompt_tokens     bigint NOT NULL,
    completion_tokens bigint NOT NULL,
    cached_tokens     bigint NOT NULL,
    reasoning_tokens  bigint NOT NULL,
    seconds           double precision NOT NULL,
    PRIMARY KEY (run_id, epoch, sample, rollout, execution)
);
