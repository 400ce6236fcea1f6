-- `SELECT *` reads the views dataset_rows and file_rows, which list their columns (migrations/0003_uploads.sql).

-- name: store_content: Store a content, or find that of the same file, and lock it ($1 digest, $2 format, $3 prefix, $4 bytes, $5 rows, $6 rows with a target, $7 models, $8 endpoint, $9 bytes of the rows as stored)
INSERT INTO dataset_contents (
    digest, format, prefix, size_bytes, row_count, target_count, models, endpoint, stored_bytes
)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
ON CONFLICT (digest, format) DO UPDATE SET digest = excluded.digest;

-- name: add_dataset: Store a data set, unless the same request has stored one ($1 data set, $2 name, $3 user, $4 time, $5 digest, $6 format, $7 project, $8 request)
INSERT INTO datasets (dataset_id, name, username, uploaded_at, digest, format, project_id, request_id)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
ON CONFLICT DO NOTHING;

-- name: read_dataset: Return a data set with its content ($1 data set)
SELECT * FROM dataset_rows WHERE dataset_id = $1;

-- name: read_named_content: Return the rows of a data set, or of a file that has any ($1 data set or file)
SELECT
    name, digest, format, prefix, content.size_bytes, row_count, target_count, models, endpoint,
    stored_bytes
FROM (
    SELECT name, digest, format FROM datasets WHERE dataset_id = $1
    UNION ALL
    SELECT name, digest, format FROM files WHERE file_id = $1
) AS named
JOIN dataset_contents AS content USING (digest, format);

-- name: find_submitted_dataset: Return the data set of an earlier call ($1 request)
SELECT * FROM dataset_rows WHERE request_id = $1;

-- name: list_datasets: Return a page of data sets, newest first ($1 time and $2 data set that it begins after, $3 size)
SELECT *
FROM dataset_rows
WHERE (uploaded_at, dataset_id) < ($1, $2)
ORDER BY uploaded_at DESC, dataset_id DESC
LIMIT $3;

-- name: count_datasets: Count all data sets, for the first page ()
SELECT count(*) FROM datasets;

-- name: lock_dataset_to_delete: Lock a data set, so that no run over it is added meanwhile ($1 data set)
SELECT dataset_id FROM datasets WHERE dataset_id = $1 FOR UPDATE;

-- name: lock_dataset_content: Return the content of a data set and lock it, so that nothing else refers to it meanwhile ($1 data set)
SELECT
    name, dataset_contents.digest, dataset_contents.format, prefix, size_bytes, row_count, target_count, models,
    endpoint, stored_bytes
FROM datasets
JOIN dataset_contents USING (digest, format)
WHERE dataset_id = $1
FOR UPDATE OF dataset_contents;

-- name: delete_dataset: Delete a data set ($1 data set)
DELETE FROM datasets WHERE dataset_id = $1;

-- name: delete_unused_content: Delete a content that no data set and no file refers to ($1 digest, $2 format)
DELETE FROM dataset_contents
WHERE digest = $1 AND format = $2
    AND NOT EXISTS (SELECT FROM datasets WHERE datasets.digest = $1 AND datasets.format = $2)
    AND NOT EXISTS (SELECT FROM files WHERE files.digest = $1 AND files.format = $2)
RETURNING true;

-- name: add_unreferenced_prefix: Record a prefix whose objects no content and no file refers to ($1 prefix)
INSERT INTO unreferenced_prefixes (prefix) VALUES ($1) ON CONFLICT DO NOTHING;

-- name: list_unreferenced_prefixes: Return prefixes that have been unreferenced for long, oldest first ($1 since before)
SELECT prefix FROM unreferenced_prefixes WHERE since < $1 ORDER BY since;

-- name: delete_unreferenced_prefix: Delete the record of a prefix that is empty or referenced now ($1 prefix)
DELETE FROM unreferenced_prefixes WHERE prefix = $1;

-- name: add_file: Store a file, unless the same request has stored one ($1 file, $2 name, $3 user, $4 purpose, $5 bytes, $6 time, $7 expiry or null, $8 prefix, $9 digest of the content or null, $10 its format or null, $11 first faults, $12 number of faults, $13 project, $14 request)
INSERT INTO files (
    file_id, name, username, purpose, size_bytes, created_at, expires_at, prefix, digest, format, faults, fault_count,
    project_id, request_id
)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)
ON CONFLICT DO NOTHING;

-- name: read_file: Return a file with its faults, and with its content if it has one ($1 file)
SELECT file_rows.*, faults FROM file_rows JOIN files USING (file_id) WHERE file_id = $1;

-- name: find_submitted_file: Return the file of an earlier call ($1 request)
SELECT file_rows.*, faults FROM file_rows JOIN files USING (file_id) WHERE files.request_id = $1;

-- name: list_files: Return a page of files that have not expired, without their faults, newest first ($1 purpose or null, $2 time and $3 file that it begins after, $4 size)
SELECT *, '[]' AS faults
FROM file_rows
WHERE ($1::text IS NULL OR purpose = $1) AND (expires_at IS NULL OR expires_at > now())
    AND (created_at, file_id) < ($2, $3)
ORDER BY created_at DESC, file_id DESC
LIMIT $4;

-- name: list_oldest_files: Return a page of files that have not expired, without their faults, oldest first ($1 purpose or null, $2 time and $3 file that it begins after, $4 size)
SELECT *, '[]' AS faults
FROM file_rows
WHERE ($1::text IS NULL OR purpose = $1) AND (expires_at IS NULL OR expires_at > now())
    AND (created_at, file_id) > ($2, $3)
ORDER BY created_at, file_id
LIMIT $4;

-- name: lock_file_to_delete: Return the key of a file's content and lock the file, so that nothing begins to use it meanwhile ($1 file)
SELECT name, prefix, digest, format FROM files WHERE file_id = $1 FOR UPDATE;

-- name: lock_content: Lock a content, so that nothing else refers to it meanwhile ($1 digest, $2 format)
SELECT prefix FROM dataset_contents WHERE digest = $1 AND format = $2 FOR UPDATE;

-- name: delete_file: Delete a file ($1 file)
DELETE FROM files WHERE file_id = $1;

-- name: list_expired_files: Return expired files, earliest expiry first ($1 time, $2 most, $3 how many to leave out at the beginning)
SELECT file_id FROM files WHERE expires_at <= $1 ORDER BY expires_at, file_id LIMIT $2 OFFSET $3;

-- name: lock_storage: Let one transaction after the other check what a user stores ($1 user)
SELECT pg_advisory_xact_lock(hashtext('proctor storage'), hashtext($1));

-- name: read_storage: Sum up what a user stores; a file that has expired counts no more ($1 user)
SELECT
    'datasets' AS kind, count(*) AS files, coalesce(sum(stored_bytes), 0)::bigint AS bytes,
    coalesce(sum(row_count), 0)::bigint AS rows
FROM dataset_rows
WHERE username = $1
UNION ALL
SELECT
    CASE purpose WHEN 'batch' THEN 'files' ELSE purpose END, count(*),
    sum(file_bytes + coalesce(stored_bytes, 0))::bigint, coalesce(sum(row_count), 0)::bigint
FROM file_rows
WHERE username = $1 AND (expires_at IS NULL OR expires_at > now())
GROUP BY purpose
UNION ALL
SELECT 'suites', count(*), coalesce(sum(octet_length(document) + files.bytes), 0)::bigint, 0
FROM user_suite_versions AS version
CROSS JOIN LATERAL (
    SELECT coalesce(sum(octet_length(content)), 0) AS bytes
    FROM user_suite_files AS file
    WHERE file.suite = version.suite AND file.version = version.version
) AS files
WHERE username = $1
UNION ALL
SELECT 'tasks', count(*), coalesce(sum(size_bytes), 0)::bigint, 0
FROM task_sets
WHERE digest IN (SELECT tasks_digest FROM task_set_uses WHERE username = $1);

-- name: lock_project_storage: Let one transaction after the other check what a project stores ($1 project)
SELECT pg_advisory_xact_lock(hashtext('proctor project storage'), hashint8($1));

-- name: sum_project_storage: Sum up the bytes that a project stores; a file that has expired counts no more ($1 project)
SELECT coalesce(sum(stored_bytes), 0)::bigint AS bytes
FROM dataset_rows
WHERE project_id = $1
UNION ALL
SELECT coalesce(sum(file_bytes + coalesce(stored_bytes, 0)), 0)::bigint
FROM file_rows
WHERE project_id = $1 AND (expires_at IS NULL OR expires_at > now())
UNION ALL
SELECT coalesce(sum(octet_length(document) + files.bytes), 0)::bigint
FROM user_suite_versions AS version
CROSS JOIN LATERAL (
    SELECT coalesce(sum(octet_length(content)), 0) AS bytes
    FROM user_suite_files AS file
    WHERE file.suite = version.suite AND file.version = version.version
) AS files
WHERE project_id = $1;
