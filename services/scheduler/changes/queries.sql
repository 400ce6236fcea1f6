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

-- name: delete_oldest_changes: Delete those of the oldest changes that were made before or are too many ($1 time, $2 how many to keep, $3 most)
DELETE FROM changes
WHERE change_id IN (
    SELECT change_id
    FROM (SELECT change_id, changed_at FROM changes ORDER BY change_id LIMIT $3) AS oldest
    WHERE changed_at < $1 OR change_id <= (SELECT max(change_id) FROM changes) - $2
)
RETURNING change_id;
