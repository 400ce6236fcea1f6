-- name: add_change: Store a change unless a repeated transaction has ($1 time, $2 user, $3 action, $4 kind, $5 object, $6 detail)
INSERT INTO changes (changed_at, username, action, kind, object_id, detail)
VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT DO NOTHING;

-- name: list_changes: Return changes, latest first ($1 number that they are below or null, $2 size)
SELECT change_id, changed_at, username, action, kind, object_id, detail
FROM changes
WHERE $1::bigint IS NULL OR change_id < $1
ORDER BY change_id DESC
LIMIT $2;

-- name: list_changes_of: Return the changes of an object, latest first ($1 number that they are below or null, $2 size, $3 object, $4 kind or null)
SELECT change_id, changed_at, username, action, kind, object_id, detail
FROM changes
WHERE object_id = $3 AND ($4::text IS NULL OR kind = $4) AND ($1::bigint IS NULL OR change_id < $1)
ORDER BY change_id DESC
LIMIT $2;
