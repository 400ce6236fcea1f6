-- name: read_access_version: Return the version of the last change
SELECT version FROM access_version;

-- name: count_keys: Count the keys that are taken
SELECT count(*) FROM api_keys WHERE revoked_at IS NULL AND expires_at > :now;

-- name: add_key: Store a key and return true, unless it is stored
INSERT INTO api_keys (key_id, username, role, note, code, created_by, created_at, expires_at, version, project_id)
VALUES (
    :key_id, :username, :role, :note, :code, :created_by, :created_at, :expires_at, :version, nullif(:project_id::bigint, 0)
)
ON CONFLICT DO NOTHING
RETURNING true;

-- name: find_membership: Return true where one of the users has a role in a project
SELECT true
FROM project_members
WHERE project_id = :project_id AND username = ANY (:usernames) AND role IS NOT NULL
LIMIT 1;

-- name: shorten_key: Let a key end sooner and return true, unless it was revoked
UPDATE api_keys SET expires_at = least(expires_at, :expires_at), version = :version
WHERE key_id = :key_id AND revoked_at IS NULL
RETURNING true;

-- name: revoke_key: Revoke a key unless it was, and return it then
UPDATE api_keys SET revoked_at = :revoked_at, version = :version
WHERE key_id = :key_id AND revoked_at IS NULL
RETURNING username, role, coalesce(project_id, 0) AS key_project;

-- name: find_key: Return a key
SELECT
    key_id, username, role, note, created_by, created_at, expires_at, last_used_at, revoked_at,
    coalesce(project_id, 0) AS project_id
FROM api_keys
WHERE key_id = :key_id;

-- name: list_keys: Return keys, latest first
SELECT
    key_number, key_id, username, role, note, created_by, created_at, expires_at, last_used_at, revoked_at,
    coalesce(project_id, 0) AS project_id
FROM api_keys
WHERE (:before_key_number::bigint IS NULL OR key_number < :before_key_number)
    AND (:username = '' OR username = :username)
ORDER BY key_number DESC
LIMIT :limit;

-- name: note_key_uses: Note uses to the minute
UPDATE api_keys SET last_used_at = :used_at
WHERE key_id = ANY (:key_ids) AND (last_used_at IS NULL OR last_used_at < :used_at::timestamptz - interval '1 minute');

-- name: add_ended_session: Store the end of a session unless it has ended
INSERT INTO ended_sessions (session_id, expires_at, version)
VALUES (:session_id, :expires_at, :version)
ON CONFLICT DO NOTHING;

-- name: list_access_changes: Return changes of keys, ended sessions, projects and their members in their order
SELECT
    version, key_id, '' AS session_id, username, role, code, coalesce(project_id, 0) AS project_id, '' AS project_name,
    CASE WHEN revoked_at IS NULL THEN greatest(expires_at - :now, interval '0') ELSE interval '0' END AS ends_in
FROM api_keys
WHERE version > :behind_version
UNION ALL
SELECT version, '', session_id, '', '', '', 0, '', greatest(expires_at - :now, interval '0')
FROM ended_sessions
WHERE version > :behind_version
UNION ALL
SELECT version, '', '', username, role, '', project_id, '', interval '0'
FROM project_members
WHERE version > :behind_version
UNION ALL
SELECT version, '', '', '', '', '', project_id, name, interval '0'
FROM projects
WHERE version > :behind_version
ORDER BY version
LIMIT :limit;

-- name: delete_old_keys: Delete keys that ended before
DELETE FROM api_keys WHERE least(expires_at, revoked_at) < :ended_before;

-- name: delete_old_sessions: Delete ended sessions that would be over
DELETE FROM ended_sessions WHERE expires_at < :now;
