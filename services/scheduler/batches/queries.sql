-- `SELECT *` reads the view batch_rows, which lists its columns (migrations/0006_batches.sql).

-- name: add_batch: Store a batch and mark its run, unless the same request has stored one ($1 batch, $2 user, $3 input file, $4 endpoint, $5 completion window, $6 metadata, $7 time, $8 lines, $9 run or null, $10 errors, $11 lifetime of its files or null, $12 request)
-- In one statement: a run is never seen without the mark that keeps its files from being deleted under it.
WITH marked AS (
    UPDATE runs SET batch_id = $1, has_unwritten_files = true WHERE run_id = $9
)
INSERT INTO batches (
    batch_id, username, input_file_id, endpoint, completion_window, metadata, created_at, total, run_id, errors,
    output_expires_after_seconds, request_id
)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
ON CONFLICT DO NOTHING;

-- name: read_batch: Return a batch with its run ($1 batch)
SELECT * FROM batch_rows WHERE batch_id = $1;

-- name: find_submitted_batch: Return the batch of an earlier call ($1 request)
SELECT batch_id FROM batches WHERE request_id = $1;

-- name: list_batches: Return a page of batches with their runs, newest first ($1 time and $2 batch that it begins after, $3 size)
SELECT *
FROM batch_rows
WHERE (batch_created_at, batch_id) < ($1, $2)
ORDER BY batch_created_at DESC, batch_id DESC
LIMIT $3;

-- name: list_batches_to_finalize: Return batches whose runs are closed and whose files are not written, earliest first ($1 batches to leave out, $2 most)
SELECT batches.batch_id
FROM batches
JOIN runs USING (run_id)
WHERE finalized_at IS NULL AND run_id IS NOT NULL AND is_closed AND state IN ('completed', 'failed', 'cancelled')
    AND batches.batch_id <> ALL ($1)
ORDER BY finished_at
LIMIT $2;

-- name: finalize_batch: Store the files of a batch once; repeatable with the same time ($1 batch, $2 time, $3 output file or null, $4 error file or null)
WITH written AS (
    UPDATE batches
    SET finalized_at = $2, output_file_id = $3, error_file_id = $4
    -- The same time means the same call, whose commit was not answered.
    WHERE batch_id = $1 AND (finalized_at IS NULL OR finalized_at = $2)
    RETURNING batch_id, run_id
), released AS (
    UPDATE runs SET has_unwritten_files = false FROM written WHERE runs.run_id = written.run_id
)
SELECT batch_id FROM written;

-- name: find_batch_using_file: Return a batch over a file whose own files are not written ($1 file)
SELECT batch_id
FROM batches
WHERE input_file_id = $1 AND run_id IS NOT NULL AND finalized_at IS NULL
LIMIT 1;
