-- compatible-from: 0009_runs_of_batches.sql
-- Orders of rollouts: a set of tasks, an agent, and one run per model.
CREATE TABLE rollouts_orders (
    order_id       uuid PRIMARY KEY,
    username       text NOT NULL,
    project_id     bigint NOT NULL,
    suite          text NOT NULL,
    suite_version  integer NOT NULL,
    agent          jsonb NOT NULL,
    rollouts       integer NOT NULL,
    -- The place of a task is the row of its samples.
    task_ids       text[] NOT NULL,
    -- One run per model, in the same order. A run is stored after its order, and may be deleted.
    models         text[] NOT NULL,
    run_ids        uuid[] NOT NULL,
    created_at     timestamptz NOT NULL,
    -- A version without a run can be deleted; its orders go with it.
    FOREIGN KEY (suite, suite_version) REFERENCES user_suite_versions (suite, version) ON DELETE CASCADE
);

CREATE INDEX rollouts_orders_newest ON rollouts_orders (created_at DESC, order_id DESC);
CREATE INDEX rollouts_orders_of_suite ON rollouts_orders (suite, suite_version, created_at DESC, order_id DESC);
