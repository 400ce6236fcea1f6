-- name: lock_suite: Create a suite's name if it is new and lock it, so that versions are added one after the other
INSERT INTO user_suites (suite) VALUES (:suite)
ON CONFLICT (suite) DO UPDATE SET suite = excluded.suite;

-- name: find_suite_content: Return the version that has this content
SELECT version, username AS user FROM user_suite_versions WHERE suite = :suite AND digest = :digest;

-- name: find_suite_project: Return the project of a suite's first version that is left
SELECT project_id FROM user_suite_versions WHERE suite = :suite ORDER BY version LIMIT 1;

-- name: add_suite_version: Store the next version
WITH counted AS (
    UPDATE user_suites SET last_version = last_version + 1 WHERE suite = :suite RETURNING last_version
)
INSERT INTO user_suite_versions (suite, version, digest, document, file_name, username, created_at, project_id)
SELECT :suite, last_version, :digest, :document, :file_name, :username, :created_at, :project_id FROM counted
RETURNING version;

-- name: add_suite_files: Store the files of a version
INSERT INTO user_suite_files (suite, version, path, content)
SELECT :suite, :version, path, content FROM unnest(:paths::text[], :contents::bytea[]) AS file (path, content);

-- name: find_suite: Return a version of a user's suite, the latest for null
SELECT suite, version, digest, username AS user, project_id
FROM user_suite_versions
WHERE suite = :suite AND (:version::integer IS NULL OR version = :version)
ORDER BY version DESC
LIMIT 1;

-- name: list_latest_suites: Return the latest version of each user's suite
SELECT DISTINCT ON (suite) suite, version, digest, username AS user, project_id
FROM user_suite_versions
ORDER BY suite, version DESC;

-- name: read_suite_document: Return the text of a version
SELECT document, file_name FROM user_suite_versions WHERE suite = :suite AND version = :version;

-- name: list_suite_files: Return the files of a version
SELECT path, content FROM user_suite_files WHERE suite = :suite AND version = :version;

-- name: read_suite_owner: Return the user who added a version, and its project
SELECT username AS user, project_id FROM user_suite_versions WHERE suite = :suite AND version = :version;

-- name: delete_suite_version: Delete a version that no run refers to
DELETE FROM user_suite_versions WHERE suite = :suite AND version = :version RETURNING project_id;
