-- name: hold_dataset_content stores a content, or finds that of the same file, and keeps it for this transaction ($1 digest, $2 format, $3 prefix, $4 bytes, $5 rows, $6 rows with a target, $7 models, $8 endpoint)
INSERT INTO dataset_contents (digest, format, prefix, size_bytes, row_count, target_count, models, endpoint)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
    ON CONFLICT (digest, format) DO UPDATE SET digest = excluded.digest;

-- name: add_dataset names a content; not a second time for the same request ($1 data set, $2 name, $3 user, $4 time, $5 digest, $6 format, $7 request)
INSERT INTO datasets (dataset_id, name, username, uploaded_at, digest, format, request_id)
VALUES ($1, $2, $3, $4, $5, $6, $7)
    ON CONFLICT DO NOTHING;

-- name: get_dataset gives one with its content ($1 data set)
SELECT dataset_id, name, username, uploaded_at, digest, format, prefix, size_bytes, row_count, target_count, models, endpoint
  FROM datasets JOIN dataset_contents USING (digest, format)
 WHERE dataset_id = $1;

-- name: get_named_content gives the rows of a data set, or of a file that has any ($1 data set or file)
SELECT name, digest, format, prefix, content.size_bytes, row_count, target_count, models, endpoint
  FROM (SELECT name, digest, format FROM datasets WHERE dataset_id = $1
        UNION ALL
        SELECT name, digest, format FROM files WHERE file_id = $1) AS named
  JOIN dataset_contents AS content USING (digest, format);

-- name: find_ordered_dataset gives what an earlier call with this id stored ($1 request)
SELECT dataset_id, name, username, uploaded_at, digest, format, prefix, size_bytes, row_count, target_count, models, endpoint
  FROM datasets JOIN dataset_contents USING (digest, format)
 WHERE request_id = $1;

-- name: list_datasets gives a page, newest first ($1 time and $2 data set behind which it begins, $3 size)
SELECT dataset_id, name, username, uploaded_at, digest, format, prefix, size_bytes, row_count, target_count, models, endpoint
  FROM datasets JOIN dataset_contents USING (digest, format)
 WHERE (uploaded_at, dataset_id) < ($1::timestamptz, $2::text)
 ORDER BY uploaded_at DESC, dataset_id DESC
 LIMIT $3;

-- name: count_datasets counts over all pages, for the first of them ()
SELECT count(*) FROM datasets;

-- name: run_using_dataset gives a run that goes on or waits, and is over this data set ($1 data set)
SELECT run_id FROM runs WHERE dataset_id = $1 AND state IN ('pending', 'running', 'paused') LIMIT 1;

-- name: hold_dataset lets no run over a data set be added before this transaction is over ($1 data set)
SELECT dataset_id FROM datasets WHERE dataset_id = $1 FOR UPDATE;

-- name: hold_content_of_dataset gives the content of a data set, to which none is added meanwhile ($1 data set)
SELECT dataset_contents.digest, dataset_contents.format, prefix, size_bytes, row_count, target_count, models, endpoint
  FROM datasets JOIN dataset_contents USING (digest, format)
 WHERE dataset_id = $1
   FOR UPDATE OF dataset_contents;

-- name: delete_dataset removes a data set ($1 data set)
DELETE FROM datasets WHERE dataset_id = $1;

-- name: delete_unused_content removes a content that no data set and no file has any more ($1 digest, $2 format)
DELETE FROM dataset_contents
 WHERE digest = $1 AND format = $2
   AND NOT EXISTS (SELECT FROM datasets WHERE datasets.digest = $1 AND datasets.format = $2)
   AND NOT EXISTS (SELECT FROM files WHERE files.digest = $1 AND files.format = $2)
RETURNING true;

-- name: add_loose_prefix says that objects may lie there that no content has ($1 prefix)
INSERT INTO unreferenced_prefixes (prefix) VALUES ($1) ON CONFLICT DO NOTHING;

-- name: loose_prefixes gives those that have been loose for long, the oldest first ($1 since before)
SELECT prefix FROM unreferenced_prefixes WHERE since < $1 ORDER BY since;

-- name: forget_loose_prefix says that nothing lies there, or that a content has it ($1 prefix)
DELETE FROM unreferenced_prefixes WHERE prefix = $1;

-- name: add_file names stored bytes and their content; not a second time for the same request ($1 file, $2 name, $3 user, $4 purpose, $5 bytes, $6 time, $7 when it goes or null, $8 prefix, $9 digest of the content or null, $10 its format or null, $11 first faults, $12 all faults, $13 request)
INSERT INTO files (file_id, name, username, purpose, size_bytes, created_at, expires_at, prefix, digest, format, faults, fault_count, request_id)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11::jsonb, $12, $13)
    ON CONFLICT DO NOTHING;

-- name: get_file gives one with its faults, and with its content where it has one ($1 file)
SELECT file_id, name, username, purpose, files.size_bytes AS file_bytes, created_at, expires_at, files.prefix AS file_prefix, faults, fault_count,
       digest, format, dataset_contents.prefix, dataset_contents.size_bytes, row_count, target_count, models, endpoint
  FROM files LEFT JOIN dataset_contents USING (digest, format)
 WHERE file_id = $1;

-- name: find_ordered_file gives what an earlier call with this id stored ($1 request)
SELECT file_id, name, username, purpose, files.size_bytes AS file_bytes, created_at, expires_at, files.prefix AS file_prefix, faults, fault_count,
       digest, format, dataset_contents.prefix, dataset_contents.size_bytes, row_count, target_count, models, endpoint
  FROM files LEFT JOIN dataset_contents USING (digest, format)
 WHERE request_id = $1;

-- name: list_files gives a page without the faults, newest first ($1 purpose or null, $2 time and $3 file behind which it begins, $4 size)
SELECT file_id, name, username, purpose, files.size_bytes AS file_bytes, created_at, expires_at, files.prefix AS file_prefix, '[]' AS faults, fault_count,
       digest, format, dataset_contents.prefix, dataset_contents.size_bytes, row_count, target_count, models, endpoint
  FROM files LEFT JOIN dataset_contents USING (digest, format)
 WHERE ($1::text IS NULL OR purpose = $1) AND (created_at, file_id) < ($2::timestamptz, $3::text)
 ORDER BY created_at DESC, file_id DESC
 LIMIT $4;

-- name: list_oldest_files gives a page without the faults, oldest first ($1 purpose or null, $2 time and $3 file behind which it begins, $4 size)
SELECT file_id, name, username, purpose, files.size_bytes AS file_bytes, created_at, expires_at, files.prefix AS file_prefix, '[]' AS faults, fault_count,
       digest, format, dataset_contents.prefix, dataset_contents.size_bytes, row_count, target_count, models, endpoint
  FROM files LEFT JOIN dataset_contents USING (digest, format)
 WHERE ($1::text IS NULL OR purpose = $1) AND (created_at, file_id) > ($2::timestamptz, $3::text)
 ORDER BY created_at, file_id
 LIMIT $4;

-- name: hold_file lets nothing begin to use a file before this transaction is over ($1 file)
SELECT prefix, digest, format FROM files WHERE file_id = $1 FOR UPDATE;

-- name: batch_using_file gives a batch over a file whose own files are still to be written ($1 file)
SELECT batch_id FROM batches
 WHERE input_file_id = $1 AND run_id IS NOT NULL AND finalized_at IS NULL
 LIMIT 1;

-- name: hold_content lets no other use of a content begin before this transaction is over ($1 digest, $2 format)
SELECT prefix FROM dataset_contents WHERE digest = $1 AND format = $2 FOR UPDATE;

-- name: delete_file removes a file ($1 file)
DELETE FROM files WHERE file_id = $1;

-- name: expired_files gives those whose time is over and that nothing uses, the first first ($1 time, $2 most)
SELECT file_id FROM files
 WHERE expires_at <= $1
   AND NOT EXISTS (SELECT FROM batches WHERE input_file_id = file_id AND run_id IS NOT NULL AND finalized_at IS NULL)
   AND NOT EXISTS (SELECT FROM runs WHERE dataset_id = file_id AND state IN ('pending', 'running', 'paused'))
 ORDER BY expires_at
 LIMIT $2;
