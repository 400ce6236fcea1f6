-- `SELECT *` reads the view run_rows, which lists its columns (schema.sql).

-- name: add_rollouts_order: Store an order and return true, unless the same request has stored it with a run
INSERT INTO rollouts_orders (
    order_id, username, project_id, suite, suite_version, agent, rollouts, task_ids, models, run_ids, created_at
)
VALUES (
    :order_id, :username, :project_id, :suite, :suite_version, :agent, :rollouts, :task_ids, :models, :run_ids,
    :created_at
)
ON CONFLICT (order_id) DO UPDATE
SET username = excluded.username, project_id = excluded.project_id, suite = excluded.suite,
    suite_version = excluded.suite_version, agent = excluded.agent, rollouts = excluded.rollouts,
    task_ids = excluded.task_ids, models = excluded.models, run_ids = excluded.run_ids,
    created_at = excluded.created_at
WHERE NOT EXISTS (SELECT FROM runs WHERE run_id = ANY (rollouts_orders.run_ids))
RETURNING true;

-- name: read_rollouts_order: Return an order that still has a run
SELECT order_id, username, project_id, suite, suite_version, agent, rollouts, task_ids, models, run_ids, created_at
FROM rollouts_orders
WHERE order_id = :order_id AND EXISTS (SELECT FROM runs WHERE run_id = ANY (run_ids));

-- name: read_order_of_run: Return the order that submitted a run
SELECT order_id, username, project_id, suite, suite_version, agent, rollouts, task_ids, models, run_ids, created_at
FROM rollouts_orders
WHERE run_ids @> ARRAY[:run_id::uuid] AND EXISTS (SELECT FROM runs WHERE run_id = :run_id);

-- name: list_rollouts_orders: Return a page of orders that still have a run, newest first
SELECT order_id, username, project_id, suite, suite_version, agent, rollouts, task_ids, models, run_ids, created_at
FROM rollouts_orders
WHERE (:suite::text IS NULL OR suite = :suite)
    AND (:suite_version::integer IS NULL OR suite_version = :suite_version)
    AND (:model::text IS NULL OR :model = ANY (models))
    AND (:project_id::bigint IS NULL OR project_id = :project_id)
    AND EXISTS (SELECT FROM runs WHERE run_id = ANY (run_ids) AND (:state::text IS NULL OR state = :state))
    AND (created_at, order_id) < (:before_created_at, :before_order_id)
ORDER BY created_at DESC, order_id DESC
LIMIT :limit;

-- name: count_rollouts_orders: Count the orders of all pages, to a bound
SELECT count(*)
FROM (
    SELECT
    FROM rollouts_orders
    WHERE (:suite::text IS NULL OR suite = :suite)
        AND (:suite_version::integer IS NULL OR suite_version = :suite_version)
        AND (:model::text IS NULL OR :model = ANY (models))
        AND (:project_id::bigint IS NULL OR project_id = :project_id)
        AND EXISTS (SELECT FROM runs WHERE run_id = ANY (run_ids) AND (:state::text IS NULL OR state = :state))
    LIMIT :most
) AS counted;

-- name: list_runs_of_orders: Return the runs that are left of some
SELECT * FROM run_rows WHERE run_id = ANY (:run_ids);

-- name: read_run_owner: Return the user and the project of a run
SELECT username, project_id FROM runs WHERE run_id = :run_id;

-- name: add_artifact_part: Record a part of an artifact before its object is stored
-- No row where the run is of another epoch or finished, or where the rollout has begun too often.
INSERT INTO rollout_artifacts AS present (
    run_id, sample, rollout, execution, name, part, username, size_bytes, stored_at, is_stored
)
SELECT run_id, :sample, :rollout, :execution, :name, :part, :username, :size_bytes, :stored_at, false
FROM runs
WHERE run_id = :run_id AND epoch = :epoch AND state IN ('pending', 'running', 'paused')
    AND :max_executions > (
        SELECT count(DISTINCT execution) FROM rollout_artifacts
        WHERE run_id = :run_id AND sample = :sample AND rollout = :rollout AND execution <> :execution
    )
FOR SHARE OF runs
ON CONFLICT (run_id, sample, rollout, execution, name, part)
-- An object that is there can be read until the next one is stored.
DO UPDATE SET size_bytes = CASE WHEN present.is_stored THEN present.size_bytes ELSE excluded.size_bytes END,
    stored_at = excluded.stored_at
RETURNING true;

-- name: mark_artifact_part: Record that the object of a part is stored
UPDATE rollout_artifacts SET is_stored = true, size_bytes = :size_bytes
WHERE run_id = :run_id AND sample = :sample AND rollout = :rollout AND execution = :execution AND name = :name
    AND part = :part;

-- name: delete_artifacts: Delete the records of artifacts of the rollouts of a deleted run
DELETE FROM rollout_artifacts WHERE run_id = :run_id RETURNING true;

-- name: delete_artifacts_without_run: Delete the records of artifacts of runs that are gone, and return the runs
DELETE FROM rollout_artifacts
WHERE NOT EXISTS (SELECT FROM runs WHERE runs.run_id = rollout_artifacts.run_id)
RETURNING run_id;

-- name: sum_artifact_storage: Sum up what workers stored of the rollouts of a user
SELECT
    'artifacts' AS kind, count(DISTINCT run_id) AS files, coalesce(sum(size_bytes), 0)::bigint AS bytes,
    0::bigint AS rows
FROM rollout_artifacts
WHERE username = :username;

-- name: sum_project_artifacts: Sum up what workers stored of the rollouts of a project
SELECT coalesce(sum(size_bytes), 0)::bigint AS bytes
FROM rollout_artifacts
JOIN runs USING (run_id)
WHERE project_id = :project_id;

-- name: list_artifacts: Return the artifacts of a rollout
SELECT execution, name, sum(size_bytes)::bigint AS size_bytes, count(*)::integer AS parts, max(stored_at) AS stored_at
FROM rollout_artifacts
WHERE run_id = :run_id AND sample = :sample AND rollout = :rollout AND is_stored
    -- Who does not see the run does not see them.
    AND EXISTS (SELECT FROM runs WHERE run_id = :run_id)
GROUP BY execution, name
ORDER BY execution, name
LIMIT :limit;

-- name: find_artifact: Return an artifact
SELECT execution, name, sum(size_bytes)::bigint AS size_bytes, count(*)::integer AS parts, max(stored_at) AS stored_at
FROM rollout_artifacts
WHERE run_id = :run_id AND sample = :sample AND rollout = :rollout AND execution = :execution AND name = :name AND is_stored
    AND EXISTS (SELECT FROM runs WHERE run_id = :run_id)
GROUP BY execution, name;

-- name: record_budget_use: Record what an execution of a rollout used, and return what those before it used
-- No row where the run is of another epoch or finished; one without an execution where there was none before.
WITH others AS (
    SELECT execution, started_at, agent_steps, usage, seconds, is_left FROM rollout_budgets
    WHERE run_id = :run_id AND epoch = :epoch AND sample = :sample AND rollout = :rollout AND execution <> :execution
),
recorded AS (
    INSERT INTO rollout_budgets AS present (
        run_id, epoch, sample, rollout, execution, started_at, agent_steps, usage, seconds, is_left
    )
    SELECT run_id, epoch, :sample, :rollout, :execution, :started_at, :agent_steps, :usage, :seconds, :is_left
    FROM runs
    WHERE run_id = :run_id AND epoch = :epoch
        -- An execution that a finished run has ended says what it used until the run is closed.
        AND (state IN ('pending', 'running', 'paused') OR (:is_left AND NOT is_closed))
        AND (SELECT count(*) FROM others) < :max_executions
    ON CONFLICT (run_id, epoch, sample, rollout, execution) DO UPDATE
    -- A report that comes late takes nothing back: counts only grow.
    SET agent_steps = greatest(present.agent_steps, excluded.agent_steps),
        usage = CASE
            WHEN (excluded.agent_steps, excluded.seconds) >= (present.agent_steps, present.seconds) THEN excluded.usage
            ELSE present.usage
        END,
        seconds = greatest(present.seconds, excluded.seconds),
        is_left = present.is_left OR excluded.is_left
    RETURNING started_at
), resting AS (
    UPDATE shards SET is_resting = :is_resting
    WHERE run_id = :run_id AND shard = :shard AND epoch = :epoch AND is_resting <> :is_resting
        AND EXISTS (SELECT FROM recorded)
)
SELECT (SELECT price FROM runs WHERE run_id = :run_id) AS price,
    others.execution, others.agent_steps, others.usage, others.seconds, others.is_left
FROM recorded LEFT JOIN others ON (others.started_at, others.execution) < (recorded.started_at, :execution);

-- name: find_budget_use: Return whether any execution of an epoch has used a budget
SELECT EXISTS (SELECT FROM rollout_budgets WHERE run_id = :run_id AND epoch = :epoch);

-- name: settle_unscored_use: Mark the use by rollouts of an epoch that have no outcome, and no other
-- Returns whether workers have left all of their executions.
WITH settled AS (
    UPDATE rollout_budgets
    SET is_unscored = (sample, rollout) IN (SELECT * FROM unnest(:samples::bigint[], :rollouts::integer[]))
    WHERE run_id = :run_id AND epoch = :epoch
    RETURNING is_left OR NOT is_unscored AS is_over
)
SELECT coalesce(bool_and(is_over), true) FROM settled;

-- name: sum_unscored_use: Sum up tokens that no outcome counts, with those of some rollouts in flight
SELECT used.kind, sum(used.tokens::bigint)::bigint AS tokens
FROM rollout_budgets, jsonb_each_text(usage) AS used (kind, tokens)
WHERE run_id = :run_id
    AND (
        is_unscored
        OR (
            epoch = :epoch
            AND (sample, rollout) IN (SELECT * FROM unnest(:samples::bigint[], :rollouts::integer[]))
        )
    )
GROUP BY used.kind;
