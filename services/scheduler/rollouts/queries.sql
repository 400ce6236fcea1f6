-- `SELECT *` reads the view run_rows, which lists its columns (migrations/0005_runs.sql).

-- name: add_rollouts_order: Store an order, unless the same request has stored it with a run ($1 order, $2 user, $3 project, $4 suite, $5 version, $6 agent, $7 rollouts, $8 tasks, $9 models, $10 runs, $11 time)
INSERT INTO rollouts_orders (
    order_id, username, project_id, suite, suite_version, agent, rollouts, task_ids, models, run_ids, created_at
)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
ON CONFLICT (order_id) DO UPDATE
SET username = excluded.username, project_id = excluded.project_id, suite = excluded.suite,
    suite_version = excluded.suite_version, agent = excluded.agent, rollouts = excluded.rollouts,
    task_ids = excluded.task_ids, models = excluded.models, run_ids = excluded.run_ids,
    created_at = excluded.created_at
WHERE NOT EXISTS (SELECT FROM runs WHERE run_id = ANY (rollouts_orders.run_ids));

-- name: read_rollouts_order: Return an order that still has a run ($1 order)
SELECT order_id, username, project_id, suite, suite_version, agent, rollouts, task_ids, models, run_ids, created_at
FROM rollouts_orders
WHERE order_id = $1 AND EXISTS (SELECT FROM runs WHERE run_id = ANY (run_ids));

-- name: read_order_of_run: Return the order that submitted a run ($1 run)
SELECT order_id, username, project_id, suite, suite_version, agent, rollouts, task_ids, models, run_ids, created_at
FROM rollouts_orders
WHERE run_ids @> ARRAY[$1::uuid] AND EXISTS (SELECT FROM runs WHERE run_id = $1);

-- name: list_rollouts_orders: Return a page of orders that still have a run, newest first ($1 suite, $2 version, $3 model, $4 project, $5 state of a run, $6 time and $7 order that it begins after, $8 size)
SELECT order_id, username, project_id, suite, suite_version, agent, rollouts, task_ids, models, run_ids, created_at
FROM rollouts_orders
WHERE ($1::text IS NULL OR suite = $1)
    AND ($2::integer IS NULL OR suite_version = $2)
    AND ($3::text IS NULL OR $3 = ANY (models))
    AND ($4::bigint IS NULL OR project_id = $4)
    AND EXISTS (SELECT FROM runs WHERE run_id = ANY (run_ids) AND ($5::text IS NULL OR state = $5))
    AND (created_at, order_id) < ($6, $7)
ORDER BY created_at DESC, order_id DESC
LIMIT $8;

-- name: count_rollouts_orders: Count the orders of all pages ($1 suite, $2 version, $3 model, $4 project, $5 state of a run)
SELECT count(*)
FROM rollouts_orders
WHERE ($1::text IS NULL OR suite = $1)
    AND ($2::integer IS NULL OR suite_version = $2)
    AND ($3::text IS NULL OR $3 = ANY (models))
    AND ($4::bigint IS NULL OR project_id = $4)
    AND EXISTS (SELECT FROM runs WHERE run_id = ANY (run_ids) AND ($5::text IS NULL OR state = $5));

-- name: list_runs_of_orders: Return the runs that are left of some ($1 runs)
SELECT * FROM run_rows WHERE run_id = ANY ($1);

-- name: read_run_owner: Return the user and the project of a run ($1 run)
SELECT username, project_id FROM runs WHERE run_id = $1;

-- name: add_artifact_part: Record a part of an artifact before its object is stored, where its run is of this epoch and not finished, and its rollout has not begun too often ($1 run, $2 sample, $3 rollout, $4 execution, $5 name, $6 part, $7 user, $8 bytes, $9 time, $10 epoch, $11 most executions)
INSERT INTO rollout_artifacts AS present (
    run_id, sample, rollout, execution, name, part, username, size_bytes, stored_at, is_stored
)
SELECT run_id, $2, $3, $4, $5, $6, $7, $8, $9, false
FROM runs
WHERE run_id = $1 AND epoch = $10 AND state IN ('pending', 'running', 'paused')
    AND $11 > (
        SELECT count(DISTINCT execution) FROM rollout_artifacts
        WHERE run_id = $1 AND sample = $2 AND rollout = $3 AND execution <> $4
    )
FOR SHARE OF runs
ON CONFLICT (run_id, sample, rollout, execution, name, part)
-- An object that is there can be read until the next one is stored.
DO UPDATE SET size_bytes = CASE WHEN present.is_stored THEN present.size_bytes ELSE excluded.size_bytes END,
    stored_at = excluded.stored_at
RETURNING true;

-- name: mark_artifact_part: Record that the object of a part is stored ($1 run, $2 sample, $3 rollout, $4 execution, $5 name, $6 part, $7 bytes)
UPDATE rollout_artifacts SET is_stored = true, size_bytes = $7
WHERE run_id = $1 AND sample = $2 AND rollout = $3 AND execution = $4 AND name = $5 AND part = $6;

-- name: delete_artifacts: Delete the records of artifacts of the rollouts of a deleted run ($1 run)
DELETE FROM rollout_artifacts WHERE run_id = $1 RETURNING true;

-- name: delete_artifacts_without_run: Delete the records of artifacts of runs that are gone, and return the runs
DELETE FROM rollout_artifacts
WHERE NOT EXISTS (SELECT FROM runs WHERE runs.run_id = rollout_artifacts.run_id)
RETURNING run_id;

-- name: sum_artifact_storage: Sum up what workers stored of the rollouts of a user ($1 user)
SELECT
    'artifacts' AS kind, count(DISTINCT run_id) AS files, coalesce(sum(size_bytes), 0)::bigint AS bytes,
    0::bigint AS rows
FROM rollout_artifacts
WHERE username = $1;

-- name: sum_project_artifacts: Sum up what workers stored of the rollouts of a project ($1 project)
SELECT coalesce(sum(size_bytes), 0)::bigint AS bytes
FROM rollout_artifacts
JOIN runs USING (run_id)
WHERE project_id = $1;

-- name: list_artifacts: Return the artifacts of a rollout ($1 run, $2 sample, $3 rollout, $4 most)
SELECT execution, name, sum(size_bytes)::bigint AS size_bytes, count(*)::integer AS parts, max(stored_at) AS stored_at
FROM rollout_artifacts
WHERE run_id = $1 AND sample = $2 AND rollout = $3 AND is_stored
GROUP BY execution, name
ORDER BY execution, name
LIMIT $4;

-- name: find_artifact: Return an artifact ($1 run, $2 sample, $3 rollout, $4 execution, $5 name)
SELECT execution, name, sum(size_bytes)::bigint AS size_bytes, count(*)::integer AS parts, max(stored_at) AS stored_at
FROM rollout_artifacts
WHERE run_id = $1 AND sample = $2 AND rollout = $3 AND execution = $4 AND name = $5 AND is_stored
GROUP BY execution, name;

-- name: record_budget_use: Record what an execution of a rollout used, where its run is of this epoch and not finished, and return what those before it used, or one row without an execution ($1 run, $2 epoch, $3 sample, $4 rollout, $5 execution, $6 time, $7 agent steps, $8 tokens, $9 seconds, $10 most executions)
WITH others AS (
    SELECT execution, started_at, agent_steps, usage, seconds FROM rollout_budgets
    WHERE run_id = $1 AND epoch = $2 AND sample = $3 AND rollout = $4 AND execution <> $5
),
recorded AS (
    INSERT INTO rollout_budgets AS present (
        run_id, epoch, sample, rollout, execution, started_at, agent_steps, usage, seconds
    )
    SELECT run_id, epoch, $3, $4, $5, $6, $7, $8, $9
    FROM runs
    WHERE run_id = $1 AND epoch = $2 AND state IN ('pending', 'running', 'paused')
        AND (SELECT count(*) FROM others) < $10
    ON CONFLICT (run_id, epoch, sample, rollout, execution) DO UPDATE
    -- A report that comes late takes nothing back: counts only grow.
    SET agent_steps = greatest(present.agent_steps, excluded.agent_steps),
        usage = CASE
            WHEN (excluded.agent_steps, excluded.seconds) >= (present.agent_steps, present.seconds) THEN excluded.usage
            ELSE present.usage
        END,
        seconds = greatest(present.seconds, excluded.seconds)
    RETURNING started_at
)
SELECT (SELECT price FROM runs WHERE run_id = $1) AS price,
    others.execution, others.agent_steps, others.usage, others.seconds
FROM recorded LEFT JOIN others ON (others.started_at, others.execution) < (recorded.started_at, $5);
