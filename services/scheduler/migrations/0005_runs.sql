-- Runs, their planned tasks and their shards.

CREATE TABLE runs (
    run_id          uuid PRIMARY KEY,
    -- Derived from the user and the request id, so that a repeated call finds the run of the first one.
    request_id      uuid UNIQUE,
    username        text NOT NULL,
    project_id      bigint NOT NULL,
    -- What the run's results are listed and compared under: a suite, or the id of a data set or file.
    suite           text NOT NULL,
    -- Version of a user's suite; null for a suite of the installation.
    suite_version   integer,
    -- A data set, or a file of a batch.
    dataset_id      text,
    dataset_name    text NOT NULL DEFAULT '',
    model           text NOT NULL,
    pool            text NOT NULL,
    -- 1 high, 2 normal, 3 low: smaller numbers start first.
    priority        smallint NOT NULL,
    -- The order as JSON, without its priority.
    ordered         jsonb NOT NULL,
    scoring_method  text NOT NULL,
    state           text NOT NULL
        CHECK (state IN ('pending', 'running', 'paused', 'completed', 'failed', 'cancelled')),
    epoch           integer NOT NULL CHECK (epoch > 0),
    step            text NOT NULL DEFAULT '',
    -- The latest epoch whose shards are stored; 0 before the first planning.
    planned_epoch   integer NOT NULL DEFAULT 0,
    -- Whether results has closed the run in its final state.
    is_closed       boolean NOT NULL DEFAULT false,
    total           bigint NOT NULL DEFAULT 0,
    reused_answers  bigint NOT NULL DEFAULT 0,
    created_at      timestamptz NOT NULL,
    -- When the run last became pending: a retry goes to the end of the queue.
    queued_at       timestamptz NOT NULL,
    started_at      timestamptz,
    -- When it got its present slot, and how long it had earlier slots in this epoch.
    admitted_at     timestamptz,
    ran_seconds     double precision NOT NULL DEFAULT 0,
    finished_at     timestamptz,
    deadline        timestamptz,
    -- End of the completion window, waiting included; null: the time limit of a running run applies.
    expires_at      timestamptz,
    error_reason    text,
    error_message   text,
    environment     jsonb NOT NULL,
    -- Price of its tokens at submission; null if unknown.
    price           jsonb,
    -- What results had counted when the run was closed.
    final_counts    jsonb,
    FOREIGN KEY (suite, suite_version) REFERENCES user_suite_versions (suite, version)
);

CREATE INDEX runs_newest ON runs (created_at DESC, run_id DESC);
CREATE INDEX runs_newest_of_state ON runs (state, created_at DESC, run_id DESC);
CREATE INDEX runs_newest_of_suite ON runs (suite, created_at DESC, run_id DESC);
CREATE INDEX runs_newest_of_model ON runs (model, created_at DESC, run_id DESC);
CREATE INDEX runs_newest_of_project ON runs (project_id, created_at DESC, run_id DESC);
CREATE INDEX runs_newest_of_datasets ON runs (created_at DESC, run_id DESC) WHERE dataset_id IS NOT NULL;
CREATE INDEX runs_newest_of_suites ON runs (created_at DESC, run_id DESC) WHERE dataset_id IS NULL;
CREATE INDEX runs_of_user_suite ON runs (suite, suite_version) WHERE suite_version IS NOT NULL;
CREATE INDEX runs_pending ON runs (priority, queued_at, run_id) WHERE state = 'pending';
CREATE INDEX runs_pending_of_user ON runs (username) WHERE state = 'pending';
CREATE INDEX runs_running ON runs (run_id) WHERE state = 'running';
CREATE INDEX runs_running_of_user ON runs (username) WHERE state = 'running';
CREATE INDEX runs_paused ON runs (queued_at DESC, run_id DESC) WHERE state = 'paused';
CREATE INDEX runs_unclosed ON runs (run_id)
    WHERE state IN ('completed', 'failed', 'cancelled') AND NOT is_closed;
CREATE INDEX runs_history ON runs (suite, model, finished_at DESC) WHERE state = 'completed';
CREATE INDEX runs_expiring ON runs (expires_at)
    WHERE expires_at IS NOT NULL AND state IN ('pending', 'running', 'paused');
-- Data sets that must be kept: planning reads them.
CREATE INDEX runs_using_dataset ON runs (dataset_id)
    WHERE dataset_id IS NOT NULL AND state IN ('pending', 'running', 'paused');

-- The columns from which a run is read, and those by which runs are filtered and ordered.
CREATE VIEW run_rows AS
SELECT run_id, username, project_id, suite, suite_version, dataset_id, dataset_name, model, pool, priority, ordered,
       scoring_method, state, epoch, step, planned_epoch, is_closed, total, reused_answers, created_at, queued_at,
       started_at, admitted_at, ran_seconds, finished_at, deadline, expires_at, error_reason, error_message, environment,
       price, final_counts
FROM runs;

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
    -- The task's own generation parameters; null for multiple choice.
    generation        jsonb,
    PRIMARY KEY (run_id, task_index)
);

CREATE TABLE shards (
    run_id      uuid NOT NULL REFERENCES runs ON DELETE CASCADE,
    shard       integer NOT NULL,
    epoch       integer NOT NULL,
    task_index  integer NOT NULL,
    rollout     integer NOT NULL,
    -- Numbers (unique in the run) of samples that still miss an outcome; `size` is how many there were at first.
    samples     bigint[] NOT NULL,
    size        integer NOT NULL,
    state       text NOT NULL DEFAULT 'planned' CHECK (state IN ('planned', 'dispatched', 'done')),
    attempt     integer NOT NULL DEFAULT 0,
    PRIMARY KEY (run_id, shard)
);

CREATE INDEX shards_planned ON shards (run_id, epoch, shard) WHERE state = 'planned';
CREATE INDEX shards_dispatched ON shards (run_id, epoch, shard) WHERE state = 'dispatched';

-- When a run of a user was last admitted: among equal shares, the user who has waited longest comes first.
CREATE TABLE user_admissions (
    username     text PRIMARY KEY,
    admitted_at  timestamptz NOT NULL
);

-- Runs that were deleted here and that results may still store.
CREATE TABLE deleted_runs (
    run_id      uuid PRIMARY KEY,
    deleted_at  timestamptz NOT NULL DEFAULT now()
);
