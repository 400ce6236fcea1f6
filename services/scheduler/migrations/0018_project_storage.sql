-- compatible-from: 0011_run_traces.sql
-- What a project stores. 0 is no project; a batch and its files are of the project of its input file.
ALTER TABLE datasets ADD COLUMN project_id bigint NOT NULL DEFAULT 0;
ALTER TABLE files ADD COLUMN project_id bigint NOT NULL DEFAULT 0;
ALTER TABLE user_suite_versions ADD COLUMN project_id bigint NOT NULL DEFAULT 0;

CREATE INDEX datasets_of_project ON datasets (project_id);
CREATE INDEX files_of_project ON files (project_id);
CREATE INDEX user_suite_versions_of_project ON user_suite_versions (project_id);

-- A null limit has the value of the settings.
ALTER TABLE limits ADD COLUMN max_stored_bytes_per_project bigint CHECK (max_stored_bytes_per_project > 0);

CREATE OR REPLACE VIEW dataset_rows AS
SELECT dataset_id, name, username, uploaded_at, request_id, digest, format, prefix, size_bytes, row_count, target_count,
       models, endpoint, coalesce(stored_bytes, size_bytes) AS stored_bytes, project_id
FROM datasets
JOIN dataset_contents USING (digest, format);

CREATE OR REPLACE VIEW file_rows AS
SELECT file_id, name, username, purpose, files.size_bytes AS file_bytes, created_at, expires_at,
       files.prefix AS file_prefix, fault_count, digest, format, dataset_contents.prefix, dataset_contents.size_bytes,
       row_count, target_count, models, endpoint, coalesce(stored_bytes, dataset_contents.size_bytes) AS stored_bytes,
       project_id
FROM files
LEFT JOIN dataset_contents USING (digest, format);
