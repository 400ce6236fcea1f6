-- `SELECT *` reads the view batch_rows, which lists its columns (schema.sql).

-- name: add_batch: Store a batch and mark its run, unless the same request has stored one
-- In one statement: a run is never seen without the mark that keeps its files from being deleted under it.
WITH marked AS (
    UPDATE runs SET batch_id = :batch_id, has_unwritten_files = true WHERE run_id = :run_id
)
INSERT INTO batches (
    batch_id, username, input_file_id, endpoint, completion_window, metadata, created_at, total, run_id, errors,
    output_expires_after_seconds, request_id, project_id
)
VALUES (
    :batch_id, :username, :input_file_id, :endpoint, :completion_window, :metadata, :created_at, :total, :run_id,
    :errors, :output_expires_after_seconds, :request_id, :project_id
)
ON CONFLICT DO NOTHING;

-- name: read_batch: Return a batch with its run
SELECT * FROM batch_rows WHERE batch_id = :batch_id;

-- name: find_submitted_batch: Return the batch of an earlier call
SELECT batch_id FROM batches WHERE request_id = :request_id;

-- name: list_batches: Return a page of batches with their runs, newest first
SELECT *
FROM batch_rows
WHERE (batch_created_at, batch_id) < (:before_created_at, :before_batch_id)
ORDER BY batch_created_at DESC, batch_id DESC
LIMIT :limit;

-- name: list_batches_to_finalize: Return batches whose runs are closed and whose files are not written, earliest first
SELECT batches.batch_id
FROM batches
JOIN runs USING (run_id)
WHERE finalized_at IS NULL AND run_id IS NOT NULL AND is_closed AND state IN ('completed', 'failed', 'cancelled')
    AND batches.batch_id <> ALL (:left_out)
ORDER BY finished_at
LIMIT :limit;

-- name: finalize_batch: Store the files of a batch once; repeatable with the same time
WITH written AS (
    UPDATE batches
    SET finalized_at = :finalized_at, output_file_id = :output_file_id, error_file_id = :error_file_id
    -- The same time means the same call, whose commit was not answered.
    WHERE batch_id = :batch_id AND (finalized_at IS NULL OR finalized_at = :finalized_at)
    RETURNING batch_id, run_id
), released AS (
    UPDATE runs SET has_unwritten_files = false FROM written WHERE runs.run_id = written.run_id
)
SELECT batch_id FROM written;

-- name: find_batch_using_file: Return a batch over a file whose own files are not written
SELECT batch_id
FROM batches
WHERE input_file_id = :file_id AND run_id IS NOT NULL AND finalized_at IS NULL
LIMIT 1;
