-- compatible-from: 0009_runs_of_batches.sql
-- How much a user may store. A null limit has the value of the settings.
ALTER TABLE limits
    ADD COLUMN max_stored_bytes_per_user bigint CHECK (max_stored_bytes_per_user > 0),
    ADD COLUMN max_stored_files_per_user bigint CHECK (max_stored_files_per_user > 0),
    ADD COLUMN max_stored_rows_per_user bigint CHECK (max_stored_rows_per_user > 0);

-- Bytes of the rows as stored, packed. Null for contents that were stored before; their size as uploaded counts then.
ALTER TABLE dataset_contents ADD COLUMN stored_bytes bigint;

-- What a user stores is summed up in the transaction that adds to it.
CREATE INDEX datasets_of_user ON datasets (username);
CREATE INDEX files_of_user ON files (username);
CREATE INDEX user_suite_versions_of_user ON user_suite_versions (username);

CREATE OR REPLACE VIEW dataset_rows AS
SELECT dataset_id, name, username, uploaded_at, request_id, digest, format, prefix, size_bytes, row_count, target_count,
       models, endpoint, coalesce(stored_bytes, size_bytes) AS stored_bytes
FROM datasets
JOIN dataset_contents USING (digest, format);

CREATE OR REPLACE VIEW file_rows AS
SELECT file_id, name, username, purpose, files.size_bytes AS file_bytes, created_at, expires_at,
       files.prefix AS file_prefix, fault_count, digest, format, dataset_contents.prefix, dataset_contents.size_bytes,
       row_count, target_count, models, endpoint, coalesce(stored_bytes, dataset_contents.size_bytes) AS stored_bytes
FROM files
LEFT JOIN dataset_contents USING (digest, format);
