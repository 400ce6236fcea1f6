-- `SELECT *` reads the views dataset_rows and file_rows, which list their columns (schema.sql).

-- name: store_content: Store a content, or find that of the same file, and lock it
INSERT INTO dataset_contents (
    content_project_id, digest, format, prefix, size_bytes, row_count, target_count, models, endpoint, stored_bytes
)
VALUES (
    :content_project_id, :digest, :format, :prefix, :size_bytes, :row_count, :target_count, :models, :endpoint,
    :stored_bytes
)
ON CONFLICT (content_project_id, digest, format) DO UPDATE SET digest = excluded.digest;

-- name: add_dataset: Store a data set, unless the same request has stored one
INSERT INTO datasets (dataset_id, name, username, uploaded_at, digest, format, project_id, request_id)
VALUES (:dataset_id, :name, :username, :uploaded_at, :digest, :format, :project_id, :request_id)
ON CONFLICT DO NOTHING;

-- name: read_dataset: Return a data set with its content
SELECT * FROM dataset_rows WHERE dataset_id = :dataset_id;

-- name: read_named_content: Return the rows of a data set, or of a file that has any
SELECT
    name, project_id, digest, format, prefix, content.size_bytes, row_count, target_count, models, endpoint,
    stored_bytes
FROM (
    SELECT name, project_id, content_project_id, digest, format FROM datasets WHERE dataset_id = :upload_id
    UNION ALL
    SELECT name, project_id, content_project_id, digest, format FROM files WHERE file_id = :upload_id
) AS named
JOIN dataset_contents AS content USING (content_project_id, digest, format);

-- name: find_submitted_dataset: Return the data set of an earlier call
SELECT * FROM dataset_rows WHERE request_id = :request_id;

-- name: list_datasets: Return a page of data sets, newest first
SELECT *
FROM dataset_rows
WHERE (uploaded_at, dataset_id) < (:before_uploaded_at, :before_dataset_id)
ORDER BY uploaded_at DESC, dataset_id DESC
LIMIT :limit;

-- name: count_datasets: Count all data sets, for the first page, to a bound
SELECT count(*) FROM (SELECT FROM datasets LIMIT :most) AS counted;

-- name: lock_dataset_to_delete: Lock a data set, so that no run over it is added meanwhile
SELECT dataset_id FROM datasets WHERE dataset_id = :dataset_id FOR UPDATE;

-- name: lock_dataset_content: Return the content of a data set and lock it, so that nothing else refers to it meanwhile
SELECT
    name, project_id, content_project_id, dataset_contents.digest, dataset_contents.format, prefix, size_bytes, row_count,
    target_count, models, endpoint, stored_bytes
FROM datasets
JOIN dataset_contents USING (content_project_id, digest, format)
WHERE dataset_id = :dataset_id
FOR UPDATE OF dataset_contents;

-- name: delete_dataset: Delete a data set
DELETE FROM datasets WHERE dataset_id = :dataset_id;

-- name: delete_unused_content: Delete a content that no data set and no file refers to
DELETE FROM dataset_contents
WHERE content_project_id = :content_project_id AND digest = :digest AND format = :format
    AND NOT EXISTS (
        SELECT FROM datasets AS one
        WHERE one.content_project_id = :content_project_id AND one.digest = :digest AND one.format = :format
    )
    AND NOT EXISTS (
        SELECT FROM files AS one
        WHERE one.content_project_id = :content_project_id AND one.digest = :digest AND one.format = :format
    )
RETURNING true;

-- name: add_unreferenced_prefix: Record a prefix whose objects no content and no file refers to
INSERT INTO unreferenced_prefixes (prefix) VALUES (:prefix) ON CONFLICT DO NOTHING;

-- name: list_unreferenced_prefixes: Return prefixes that have been unreferenced for long, oldest first
SELECT prefix FROM unreferenced_prefixes WHERE since < :before ORDER BY since;

-- name: delete_unreferenced_prefix: Delete the record of a prefix that is empty or referenced now
DELETE FROM unreferenced_prefixes WHERE prefix = :prefix;

-- name: is_backup_running: Return whether a backup holds its lock
-- Taken as shared and released with the statement; the backup waits that long.
SELECT NOT pg_try_advisory_xact_lock_shared(hashtext('proctor backup'), hashtext(current_schema()));

-- name: add_file: Store a file, unless the same request has stored one
INSERT INTO files (
    file_id, name, username, purpose, size_bytes, created_at, expires_at, prefix, digest, format, faults, fault_count,
    project_id, request_id
)
VALUES (
    :file_id, :name, :username, :purpose, :size_bytes, :created_at, :expires_at, :prefix, :digest, :format, :faults,
    :fault_count, :project_id, :request_id
)
ON CONFLICT DO NOTHING;

-- name: read_file: Return a file with its faults, and with its content if it has one
SELECT file_rows.*, faults FROM file_rows JOIN files USING (file_id) WHERE file_id = :file_id;

-- name: find_submitted_file: Return the file of an earlier call
SELECT file_rows.*, faults FROM file_rows JOIN files USING (file_id) WHERE files.request_id = :request_id;

-- name: list_files: Return a page of files that have not expired, without their faults, newest first
SELECT *, '[]' AS faults
FROM file_rows
WHERE (:purpose::text IS NULL OR purpose = :purpose) AND (expires_at IS NULL OR expires_at > now())
    AND (created_at, file_id) < (:from_created_at, :from_file_id)
ORDER BY created_at DESC, file_id DESC
LIMIT :limit;

-- name: list_oldest_files: Return a page of files that have not expired, without their faults, oldest first
SELECT *, '[]' AS faults
FROM file_rows
WHERE (:purpose::text IS NULL OR purpose = :purpose) AND (expires_at IS NULL OR expires_at > now())
    AND (created_at, file_id) > (:from_created_at, :from_file_id)
ORDER BY created_at, file_id
LIMIT :limit;

-- name: lock_file_to_delete: Return the key of a file's content, and lock the file so that nothing begins to use it
SELECT name, project_id, prefix, content_project_id, digest, format FROM files WHERE file_id = :file_id FOR UPDATE;

-- name: lock_content: Lock a content, so that nothing else refers to it meanwhile
SELECT prefix
FROM dataset_contents
WHERE content_project_id = :content_project_id AND digest = :digest AND format = :format
FOR UPDATE;

-- name: delete_file: Delete a file
DELETE FROM files WHERE file_id = :file_id;

-- name: list_expired_files: Return expired files, earliest expiry first
SELECT file_id FROM files WHERE expires_at <= :now ORDER BY expires_at, file_id LIMIT :limit OFFSET :offset;

-- name: lock_storage: Let one transaction after the other check what a user stores
SELECT pg_advisory_xact_lock(hashtext('proctor storage'), hashtext(:username));

-- name: read_storage: Sum up what a user stores; a file that has expired counts no more
SELECT
    'datasets' AS kind, count(*) AS files, coalesce(sum(stored_bytes), 0)::bigint AS bytes,
    coalesce(sum(row_count), 0)::bigint AS rows
FROM dataset_rows
WHERE username = :username
UNION ALL
SELECT
    CASE purpose WHEN 'batch' THEN 'files' ELSE purpose END, count(*),
    sum(file_bytes + coalesce(stored_bytes, 0))::bigint, coalesce(sum(row_count), 0)::bigint
FROM file_rows
WHERE username = :username AND (expires_at IS NULL OR expires_at > now())
GROUP BY purpose
UNION ALL
SELECT 'suites', count(*), coalesce(sum(octet_length(document) + files.bytes), 0)::bigint, 0
FROM user_suite_versions AS version
CROSS JOIN LATERAL (
    SELECT coalesce(sum(octet_length(content)), 0) AS bytes
    FROM user_suite_files AS file
    WHERE file.suite = version.suite AND file.version = version.version
) AS files
WHERE username = :username
UNION ALL
SELECT 'tasks', count(*), coalesce(sum(size_bytes), 0)::bigint, 0
FROM task_sets
WHERE digest IN (SELECT tasks_digest FROM task_set_uses WHERE username = :username);

-- name: lock_project_storage: Let one transaction after the other check what a project stores
SELECT pg_advisory_xact_lock(hashtext('proctor project storage'), hashint8(:project_id));

-- name: sum_project_storage: Sum up the bytes that a project stores; a file that has expired counts no more
SELECT coalesce(sum(stored_bytes), 0)::bigint AS bytes
FROM dataset_rows
WHERE project_id = :project_id
UNION ALL
SELECT coalesce(sum(file_bytes + coalesce(stored_bytes, 0)), 0)::bigint
FROM file_rows
WHERE project_id = :project_id AND (expires_at IS NULL OR expires_at > now())
UNION ALL
SELECT coalesce(sum(octet_length(document) + files.bytes), 0)::bigint
FROM user_suite_versions AS version
CROSS JOIN LATERAL (
    SELECT coalesce(sum(octet_length(content)), 0) AS bytes
    FROM user_suite_files AS file
    WHERE file.suite = version.suite AND file.version = version.version
) AS files
WHERE project_id = :project_id;
