-- `SELECT *` reads the view run_rows, which lists its columns (migrations/0005_runs.sql).

-- name: lock_user: Let one transaction after the other change a user's queue ($1 user)
-- By hash: two users may share a lock, and then only wait for each other.
SELECT pg_advisory_xact_lock(hashtext('proctor queue'), hashtext($1));

-- name: find_submitted_run: Return the run of an earlier call ($1 run, $2 request)
SELECT run_id FROM runs WHERE run_id = $1 OR request_id = $2;

-- name: count_pending_and_paused_runs: Count a user's pending and paused runs ($1 user)
-- Two counts and not IN: each state has an index of its own.
SELECT
    (SELECT count(*) FROM runs WHERE state = 'pending' AND username = $1)
    + (SELECT count(*) FROM runs WHERE state = 'paused' AND username = $1);

-- name: set_priority: Change the priority of a run ($1 run, $2 priority)
UPDATE runs SET priority = $2 WHERE run_id = $1;

-- name: lock_dataset: Keep a data set from being deleted before this transaction ends; no row if it is gone ($1 data set)
-- KEY SHARE: others may use and rename the data set meanwhile, only its deletion waits.
SELECT dataset_id FROM datasets WHERE dataset_id = $1 FOR KEY SHARE;

-- name: lock_input_file: Keep a file from being deleted before this transaction ends; no row if it is gone ($1 file)
SELECT file_id FROM files WHERE file_id = $1 AND (expires_at IS NULL OR expires_at > now()) FOR KEY SHARE;

-- name: add_run: Store a pending run ($1 run, $2 request, $3 user, $4 project, $5 benchmark, $6 model, $7 pool, $8 priority, $9 order, $10 scoring method, $11 time, $12 environment, $13 version of a user's suite or 0, $14 price, $15 data set or null, $16 name of the data set, $17 end of the completion window or null)
INSERT INTO runs (
    run_id, request_id, username, project_id, benchmark, model, pool, priority, ordered, scoring_method, state, epoch,
    created_at, queued_at, environment, suite_version, price, dataset_id, dataset_name, expires_at
)
VALUES (
    $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, 'pending', 1,
    $11, $11, $12, nullif($13, 0), $14, $15, $16, $17
);

-- name: read_run: Return a run ($1 run)
SELECT * FROM run_rows WHERE run_id = $1;

-- name: cancel_run: Cancel a run whose state allows it; repeatable with the same time ($1 run, $2 states, $3 time)
UPDATE runs
SET state = 'cancelled', finished_at = $3, is_closing = false
WHERE run_id = $1
    -- The same time means the same call: its first commit was not answered.
    AND (state = ANY ($2) OR (state = 'cancelled' AND finished_at = $3))
RETURNING run_id;

-- name: requeue_run: Make a closed run pending in a new epoch, with a new completion window if it had one; repeatable with the same time ($1 run, $2 states, $3 time)
UPDATE runs
-- A repeated call finds the run pending with the same time, and must not open a second epoch.
SET state = 'pending', epoch = epoch + (state <> 'pending')::integer, queued_at = $3, is_closed = false, phase = '',
    is_closing = false, started_at = NULL, admitted_at = NULL, ran_seconds = 0, finished_at = NULL, deadline = NULL,
    error_reason = NULL, error_message = NULL, final_counts = NULL,
    expires_at = $3 + make_interval(secs => (ordered ->> 'completion_window_seconds')::double precision)
WHERE run_id = $1
    AND ((state = ANY ($2) AND is_closed) OR (state = 'pending' AND queued_at = $3))
RETURNING run_id;

-- name: pause_run: Take a run out of the queue or its slot; its outcomes stay ($1 run, $2 states, $3 time)
UPDATE runs
SET state = 'paused', queued_at = $3, phase = '', is_closing = false, admitted_at = NULL, deadline = NULL,
    ran_seconds = ran_seconds + greatest(coalesce(extract(epoch FROM $3 - admitted_at)::double precision, 0), 0)
-- A run that is closing needs nothing more from workers: there is nothing to pause.
WHERE run_id = $1 AND state = ANY ($2) AND NOT (state = 'running' AND is_closing)
RETURNING run_id;

-- name: resume_run: Make a paused run pending in the same epoch; repeatable with the same time ($1 run, $2 time)
UPDATE runs
SET state = 'pending', queued_at = $2
WHERE run_id = $1 AND (state = 'paused' OR (state = 'pending' AND queued_at = $2))
RETURNING run_id;

-- name: list_planned_tasks: Return the tasks of a run in order ($1 run)
SELECT
    task, version, sample_set_id, first_sample, sample_count, output_type, num_fewshot, is_stand_in, row_source,
    row_source_revision, generation
FROM run_tasks
WHERE run_id = $1
ORDER BY task_index;

-- name: find_batch_of_run: Return the batch that a run was made for ($1 run)
SELECT batch_id FROM runs WHERE run_id = $1;

-- name: find_run_using_upload: Return an unfinished run over a data set or file ($1 data set or file)
SELECT run_id FROM runs WHERE dataset_id = $1 AND state IN ('pending', 'running', 'paused') LIMIT 1;

-- name: lock_run_to_delete: Keep a run from changing before this transaction ends ($1 run)
SELECT state, is_closing, is_closed, batch_id, has_unwritten_files FROM runs WHERE run_id = $1 FOR UPDATE;

-- name: delete_run: Delete a run with its tasks, shards and batch ($1 run)
DELETE FROM runs WHERE run_id = $1;

-- name: add_deleted_run: Record that results may still store a deleted run ($1 run, $2 time)
INSERT INTO deleted_runs (run_id, deleted_at) VALUES ($1, $2) ON CONFLICT DO NOTHING;

-- name: find_deleted_run: Return a run that the same call has deleted already ($1 run, $2 time)
SELECT run_id FROM deleted_runs WHERE run_id = $1 AND deleted_at = $2;

-- name: list_deleted_runs: Return runs that results may still store, earliest first ($1 deleted before, $2 most)
SELECT run_id FROM deleted_runs WHERE deleted_at < $1 ORDER BY deleted_at LIMIT $2;

-- name: postpone_deleted_run: Put a run behind the others whose record could not be deleted ($1 run, $2 time)
UPDATE deleted_runs SET deleted_at = $2 WHERE run_id = $1;

-- name: delete_deleted_run: Delete the row of a deleted run that results no longer stores ($1 run)
DELETE FROM deleted_runs WHERE run_id = $1;

-- name: list_expired_runs: Return pending and paused runs whose completion window is over ($1 time)
SELECT *
FROM run_rows
WHERE expires_at <= $1 AND state IN ('pending', 'paused')
ORDER BY expires_at
-- The leader asks every round, so what is left out waits a second.
LIMIT 100;

-- name: list_runs_to_drive: Return the runs that the leader has to drive ()
-- UNION ALL keeps each half on its own partial index.
SELECT run_id FROM runs WHERE state = 'running'
UNION ALL
SELECT run_id FROM runs WHERE state IN ('completed', 'failed', 'cancelled') AND NOT is_closed;

-- name: list_open_runs: Return those of some runs that are not yet closed in a final state ($1 runs)
SELECT run_id
FROM runs
WHERE run_id = ANY ($1) AND NOT is_closed;

-- name: set_phase: Record the phase of a running run, and whether it only waits for its figures ($1 run, $2 epoch, $3 phase, $4 whether it is closing)
UPDATE runs SET phase = $3, is_closing = $4 WHERE run_id = $1 AND epoch = $2 AND state = 'running' RETURNING run_id;

-- name: finish_run: Bring a run into a final state; with counts it is closed as well ($1 run, $2 epoch, $3 state, $4 states before, $5 time, $6 reason, $7 message, $8 counts, $9 environment)
UPDATE runs
-- One statement: state and counts appear together, so no reader sees a completed run without its summary.
SET state = $3, phase = '', is_closing = false, finished_at = $5, error_reason = $6, error_message = $7,
    final_counts = $8::jsonb, is_closed = $8 IS NOT NULL, environment = environment || $9
WHERE run_id = $1 AND epoch = $2 AND state = ANY ($4)
RETURNING run_id;

-- name: close_run: Record that results has closed a run that is finished ($1 run, $2 epoch, $3 counts, $4 environment)
UPDATE runs
SET is_closed = true, final_counts = $3, environment = environment || $4
WHERE run_id = $1 AND epoch = $2 AND state IN ('completed', 'failed', 'cancelled');

-- name: add_run_trace: Store the trace that a run was ordered in ($1 run, $2 traceparent)
INSERT INTO run_traces (run_id, traceparent) VALUES ($1, $2);

-- name: read_run_trace: Return the trace that a run was ordered in ($1 run)
SELECT traceparent FROM run_traces WHERE run_id = $1;
