-- `SELECT *` reads the view run_rows, which lists its columns (schema.sql).

-- name: lock_user: Let one transaction after the other change a user's queue
-- By hash: two users may share a lock, and then only wait for each other.
SELECT pg_advisory_xact_lock(hashtext('proctor queue'), hashtext(:username));

-- name: find_submitted_run: Return the run of an earlier call
SELECT run_id FROM runs WHERE run_id = :run_id OR request_id = :request_id;

-- name: read_repeated_run: Return the run of an earlier call that sent the same
SELECT * FROM run_rows
WHERE run_id = (SELECT run_id FROM runs WHERE request_id = :request_id AND request_digest = :request_digest);

-- name: count_pending_and_paused_runs: Count a user's pending and paused runs
-- Two counts and not IN: each state has an index of its own.
SELECT
    (SELECT count(*) FROM runs WHERE state = 'pending' AND username = :username)
    + (SELECT count(*) FROM runs WHERE state = 'paused' AND username = :username);

-- name: set_priority: Change the priority of a run
UPDATE runs SET priority = :priority WHERE run_id = :run_id;

-- name: set_max_cost: Change what a run may cost
UPDATE runs
SET ordered = jsonb_set(ordered, '{max_cost}', to_jsonb(:max_cost::double precision))
WHERE run_id = :run_id;

-- name: lock_dataset: Keep a data set from being deleted before this transaction ends; no row if it is gone
-- KEY SHARE: others may use and rename the data set meanwhile, only its deletion waits.
SELECT dataset_id FROM datasets WHERE dataset_id = :dataset_id FOR KEY SHARE;

-- name: lock_input_file: Keep a file from being deleted before this transaction ends; no row if it is gone
SELECT file_id FROM files WHERE file_id = :file_id AND (expires_at IS NULL OR expires_at > now()) FOR KEY SHARE;

-- name: add_run: Store a pending run
INSERT INTO runs (
    run_id, request_id, request_digest, username, project_id, benchmark, model, pool, priority, ordered,
    scoring_method, state, epoch, created_at, queued_at, environment, suite_version, price, dataset_id, dataset_name,
    expires_at, name, tags, note, has_judges_to_order
)
VALUES (
    :run_id, :request_id, :request_digest, :username, :project_id, :benchmark, :model, :pool, :priority, :ordered,
    :scoring_method, 'pending', 1, :created_at, :created_at, :environment, nullif(:suite_version, 0), :price,
    :dataset_id, :dataset_name, :expires_at, :name, :tags, :note, :has_judges_to_order
);

-- name: read_run: Return a run
SELECT * FROM run_rows WHERE run_id = :run_id;

-- name: list_driven_runs: Return those of some runs that are stored
SELECT * FROM run_rows WHERE run_id = ANY (:run_ids);

-- name: lock_run_labels: Return the name, tags and note of a run, and keep them before this transaction ends
SELECT name, tags, note, project_id FROM runs WHERE run_id = :run_id FOR NO KEY UPDATE;

-- name: set_run_labels: Change the name, tags and note of a run
UPDATE runs SET name = :name, tags = :tags, note = :note WHERE run_id = :run_id;

-- name: cancel_run: Cancel a run whose state allows it; repeatable with the same time
UPDATE runs
SET state = 'cancelled', finished_at = :finished_at, is_closing = false
WHERE run_id = :run_id
    -- The same time means the same call: its first commit was not answered.
    AND (state = ANY (:states) OR (state = 'cancelled' AND finished_at = :finished_at))
RETURNING run_id;

-- name: requeue_run: Make a closed run pending in a new epoch; repeatable with the same time
UPDATE runs
-- A repeated call finds the run pending with the same time, and must not open a second epoch.
SET state = 'pending', epoch = epoch + (state <> 'pending')::integer, queued_at = :queued_at, is_closed = false, phase = '',
    is_closing = false, started_at = NULL, admitted_at = NULL, ran_seconds = 0, finished_at = NULL, deadline = NULL,
    earlier_seconds = earlier_seconds + ran_seconds
        + greatest(coalesce(extract(epoch FROM finished_at - admitted_at)::double precision, 0), 0),
    error_reason = NULL, error_message = NULL, final_counts = NULL, decision = NULL,
    expires_at = :queued_at + make_interval(secs => (ordered ->> 'completion_window_seconds')::double precision)
WHERE run_id = :run_id
    AND archive_state IS NULL
    AND ((state = ANY (:states) AND is_closed) OR (state = 'pending' AND queued_at = :queued_at))
RETURNING run_id;

-- name: pause_run: Take a run out of the queue or its slot; its outcomes stay
UPDATE runs
SET state = 'paused', queued_at = :queued_at, phase = '', is_closing = false, admitted_at = NULL, deadline = NULL,
    ran_seconds = ran_seconds + greatest(coalesce(extract(epoch FROM :queued_at - admitted_at)::double precision, 0), 0)
-- A run that is closing needs nothing more from workers: there is nothing to pause.
WHERE run_id = :run_id AND state = ANY (:states) AND NOT (state = 'running' AND is_closing)
RETURNING run_id;

-- name: resume_run: Make a paused run pending in the same epoch; repeatable with the same time
UPDATE runs
SET state = 'pending', queued_at = :queued_at
WHERE run_id = :run_id AND (state = 'paused' OR (state = 'pending' AND queued_at = :queued_at))
RETURNING run_id;

-- name: list_planned_tasks: Return the tasks of a run in order
SELECT
    task, version, sample_set_id, first_sample, sample_count, output_type, num_fewshot, is_stand_in, is_of_rollouts,
    row_source, row_source_revision, generation
FROM run_tasks
WHERE run_id = :run_id
ORDER BY task_index;

-- name: find_batch_of_run: Return the batch that a run was made for
SELECT batch_id FROM runs WHERE run_id = :run_id;

-- name: find_run_using_upload: Return an unfinished run over a data set or file
SELECT run_id, project_id FROM runs WHERE dataset_id = :upload_id AND state IN ('pending', 'running', 'paused') LIMIT 1;

-- name: lock_run_to_delete: Keep a run from changing before this transaction ends
SELECT state, is_closing, is_closed, batch_id, has_unwritten_files, project_id FROM runs WHERE run_id = :run_id FOR UPDATE;

-- name: delete_run: Delete a run with its tasks, shards and batch
DELETE FROM runs WHERE run_id = :run_id;

-- name: add_deleted_run: Record that results may still store a deleted run
INSERT INTO deleted_runs (run_id, deleted_at) VALUES (:run_id, :deleted_at) ON CONFLICT DO NOTHING;

-- name: find_deleted_run: Return a run that the same call has deleted already
SELECT run_id FROM deleted_runs WHERE run_id = :run_id AND deleted_at = :deleted_at;

-- name: list_deleted_runs: Return runs that results may still store, earliest first
SELECT run_id FROM deleted_runs WHERE deleted_at < :deleted_before ORDER BY deleted_at LIMIT :limit;

-- name: postpone_deleted_run: Put a run behind the others whose record could not be deleted
UPDATE deleted_runs SET deleted_at = :deleted_at WHERE run_id = :run_id;

-- name: delete_deleted_run: Delete the row of a deleted run that results no longer stores
DELETE FROM deleted_runs WHERE run_id = :run_id;

-- name: list_expired_runs: Return pending and paused runs whose completion window is over
SELECT *
FROM run_rows
WHERE expires_at <= :now AND state IN ('pending', 'paused')
ORDER BY expires_at
-- The leader asks every round, so what is left out waits a second.
LIMIT 100;

-- name: list_runs_to_drive: Return the runs that the leader has to drive
-- UNION ALL keeps each half on its own partial index.
SELECT run_id FROM runs WHERE state = 'running'
UNION ALL
SELECT run_id FROM runs WHERE state IN ('completed', 'failed', 'cancelled') AND NOT is_closed;

-- name: list_open_runs: Return those of some runs that are not yet closed in a final state
SELECT run_id
FROM runs
WHERE run_id = ANY (:run_ids) AND NOT is_closed;

-- name: list_runs_to_judge: Return completed runs whose judges are still to be ordered
SELECT *
FROM run_rows
WHERE run_id IN (
    SELECT run_id
    FROM (
        -- User by user: the judges of one may wait for days for room in its queue.
        SELECT run_id, finished_at, row_number() OVER (PARTITION BY username ORDER BY finished_at) AS place
        FROM runs
        WHERE has_judges_to_order AND state = 'completed' AND is_closed
    ) AS waiting
    ORDER BY place, finished_at
    -- The leader asks every second.
    LIMIT 100
);

-- name: set_judges_ordered: Record that the judges of a run are ordered
UPDATE runs SET has_judges_to_order = false WHERE run_id = :run_id RETURNING run_id;

-- name: set_phase: Record the phase of a running run, and whether it only waits for its figures
UPDATE runs
SET phase = :phase, is_closing = :is_closing
WHERE run_id = :run_id AND epoch = :epoch AND state = 'running'
RETURNING run_id;

-- name: stop_run: Let a running run wait for its figures, because what it was ordered for is decided
UPDATE runs
SET phase = :phase, is_closing = true, decision = :decision
WHERE run_id = :run_id AND epoch = :epoch AND state = 'running' AND NOT is_closing
RETURNING run_id;

-- name: finish_run: Bring a run into a final state; with counts it is closed as well
UPDATE runs
-- One statement: state and counts appear together, so no reader sees a completed run without its summary.
SET state = :state, phase = '', is_closing = false, finished_at = :finished_at, error_reason = :error_reason,
    error_message = :error_message, final_counts = :final_counts::jsonb, is_closed = :final_counts IS NOT NULL,
    environment = environment || :environment
WHERE run_id = :run_id AND epoch = :epoch AND state = ANY (:states_before)
RETURNING run_id;

-- name: close_run: Record that results has closed a run that is finished
UPDATE runs
SET is_closed = true, final_counts = :final_counts, environment = environment || :environment
WHERE run_id = :run_id AND epoch = :epoch AND state IN ('completed', 'failed', 'cancelled')
RETURNING run_id;

-- name: count_cost: Count what a closed run of a declared project has cost, beyond what was counted of it before
WITH counted AS (
    UPDATE runs
    SET counted_cost = :cost
    WHERE run_id = :run_id AND epoch = :epoch AND is_closed AND project_id >= 9000000000000000
    RETURNING project_id, finished_at, new.counted_cost - old.counted_cost AS cost
)
INSERT INTO project_costs AS present (project_id, month, cost)
SELECT project_id, date_trunc('month', finished_at AT TIME ZONE 'UTC'), cost
FROM counted
ON CONFLICT (project_id, month) DO UPDATE SET cost = present.cost + excluded.cost;

-- name: read_open_runs: Return how many runs of a declared project are not closed, and what they may still cost
SELECT count(*) AS open_runs, coalesce(sum(greatest((ordered ->> 'max_cost')::double precision - counted_cost, 0)), 0) AS reserved
FROM runs
-- The condition of an index.
WHERE project_id = :project_id AND NOT is_closed AND project_id >= 9000000000000000
    AND run_id IS DISTINCT FROM :leaving_out;

-- name: read_counted_cost: Return what of the cost of a run is counted already
SELECT counted_cost FROM runs WHERE run_id = :run_id;

-- name: add_run_trace: Store the trace that a run was ordered in
INSERT INTO run_traces (run_id, traceparent) VALUES (:run_id, :traceparent);

-- name: add_run_gate: Store what a run is compared to once both have completed; nothing where it is stored
INSERT INTO run_gates (run_id, base_run_id, margin_points, alpha) VALUES (:run_id, :base_run_id, :margin_points, :alpha)
ON CONFLICT (run_id, base_run_id, margin_points) DO NOTHING;

-- name: read_run_trace: Return the trace that a run was ordered in
SELECT traceparent FROM run_traces WHERE run_id = :run_id;
