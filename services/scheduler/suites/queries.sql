-- name: lock_suite: Create a suite's name if it is new and lock it, so that versions are added one after the other ($1 suite)
INSERT INTO user_suites (suite) VALUES ($1)
ON CONFLICT (suite) DO UPDATE SET suite = excluded.suite;

-- name: find_suite_content: Return the version that has this content ($1 suite, $2 digest)
SELECT version, username AS user FROM user_suite_versions WHERE suite = $1 AND digest = $2;

-- name: add_suite_version: Store the next version ($1 suite, $2 digest, $3 document, $4 file name, $5 user, $6 time, $7 project)
WITH counted AS (
    UPDATE user_suites SET last_version = last_version + 1 WHERE suite = $1 RETURNING last_version
)
INSERT INTO user_suite_versions (suite, version, digest, document, file_name, username, created_at, project_id)
SELECT $1, last_version, $2, $3, $4, $5, $6, $7 FROM counted
RETURNING version;

-- name: add_suite_files: Store the files of a version ($1 suite, $2 version, $3 paths, $4 contents)
INSERT INTO user_suite_files (suite, version, path, content)
SELECT $1, $2, path, content FROM unnest($3::text[], $4::bytea[]) AS file (path, content);

-- name: find_suite: Return a version of a user's suite, the latest for null ($1 suite, $2 version)
SELECT suite, version, digest, username AS user
FROM user_suite_versions
WHERE suite = $1 AND ($2::integer IS NULL OR version = $2)
ORDER BY version DESC
LIMIT 1;

-- name: list_latest_suites: Return the latest version of each user's suite ()
SELECT DISTINCT ON (suite) suite, version, digest, username AS user
FROM user_suite_versions
ORDER BY suite, version DESC;

-- name: read_suite_document: Return the text of a version ($1 suite, $2 version)
SELECT document, file_name FROM user_suite_versions WHERE suite = $1 AND version = $2;

-- name: list_suite_files: Return the files of a version ($1 suite, $2 version)
SELECT path, content FROM user_suite_files WHERE suite = $1 AND version = $2;

-- name: read_suite_owner: Return the user who added a version ($1 suite, $2 version)
SELECT username FROM user_suite_versions WHERE suite = $1 AND version = $2;

-- name: delete_suite_version: Delete a version that no run refers to ($1 suite, $2 version)
DELETE FROM user_suite_versions WHERE suite = $1 AND version = $2 RETURNING version;
