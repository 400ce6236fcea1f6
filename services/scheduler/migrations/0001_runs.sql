-- Runs, their planned tasks and their shards; who leads.

CREATE TABLE runs (
    run_id          uuid PRIMARY KEY,
    request_id      uuid UNIQUE,
    username        text NOT NULL,
    project_id      bigint NOT NULL,
    suite           text NOT NULL,
    model           text NOT NULL,
    pool            text NOT NULL,
    priority        smallint NOT NULL,
    ordered         jsonb NOT NULL,
    scoring_method  text NOT NULL,
    state           text NOT NULL
        CHECK (state IN ('pending', 'running', 'paused', 'completed', 'failed', 'cancelled')),
    epoch           integer NOT NULL CHECK (epoch > 0),
    step            text NOT NULL DEFAULT '',
    -- The latest epoch whose shards are stored; 0 while there is none.
    planned_epoch   integer NOT NULL DEFAULT 0,
    is_closed       boolean NOT NULL DEFAULT false,
    total           bigint NOT NULL DEFAULT 0,
    created_at      timestamptz NOT NULL,
    -- When it last began to wait: a retry goes to the end of the queue.
    queued_at       timestamptz NOT NULL,
    started_at      timestamptz,
    finished_at     timestamptz,
    deadline        timestamptz,
    error_reason    text,
    error_message   text,
    environment     jsonb NOT NULL,
    -- What results counted when the run was closed.
    final_counts    jsonb
);

CREATE INDEX runs_newest ON runs (created_at DESC, run_id DESC);
CREATE INDEX runs_newest_of_state ON runs (state, created_at DESC, run_id DESC);
CREATE INDEX runs_newest_of_suite ON runs (suite, created_at DESC, run_id DESC);
CREATE INDEX runs_newest_of_model ON runs (model, created_at DESC, run_id DESC);
CREATE INDEX runs_newest_of_project ON runs (project_id, created_at DESC, run_id DESC);
CREATE INDEX runs_pending ON runs (priority, queued_at, run_id) WHERE state = 'pending';
CREATE INDEX runs_pending_of_user ON runs (username) WHERE state = 'pending';
CREATE INDEX runs_running ON runs (run_id) WHERE state = 'running';
CREATE INDEX runs_unclosed ON runs (run_id)
    WHERE state IN ('completed', 'failed', 'cancelled') AND NOT is_closed;
CREATE INDEX runs_history ON runs (suite, model, finished_at DESC) WHERE state = 'completed';

CREATE TABLE tasks (
    run_id            uuid NOT NULL REFERENCES runs ON DELETE CASCADE,
    task_index        integer NOT NULL,
    task              text NOT NULL,
    version           text NOT NULL,
    sample_set_id     text NOT NULL,
    first_sample      bigint NOT NULL,
    sample_count      integer NOT NULL,
    output_type       text NOT NULL,
    num_fewshot       integer NOT NULL,
    is_stand_in       boolean NOT NULL,
    dataset           text NOT NULL,
    dataset_revision  text NOT NULL,
    -- How a model generates, by the task; null for multiple choice.
    generation        jsonb,
    PRIMARY KEY (run_id, task_index)
);

CREATE TABLE shards (
    run_id      uuid NOT NULL REFERENCES runs ON DELETE CASCADE,
    shard       integer NOT NULL,
    epoch       integer NOT NULL,
    task_index  integer NOT NULL,
    rollout     integer NOT NULL,
    -- Run-global numbers still to be asked; size counts those it was cut with.
    samples     bigint[] NOT NULL,
    size        integer NOT NULL,
    state       text NOT NULL DEFAULT 'planned' CHECK (state IN ('planned', 'dispatched', 'done')),
    attempt     integer NOT NULL DEFAULT 0,
    PRIMARY KEY (run_id, shard)
);

CREATE INDEX shards_planned ON shards (run_id, epoch, shard) WHERE state = 'planned';
CREATE INDEX shards_dispatched ON shards (run_id, epoch, shard) WHERE state = 'dispatched';

-- One row. Each term of leadership raises the number; a write with an older one is refused.
CREATE TABLE leadership (
    is_only  boolean PRIMARY KEY DEFAULT true CHECK (is_only),
    fence    bigint NOT NULL
);
INSERT INTO leadership (fence) VALUES (0);
