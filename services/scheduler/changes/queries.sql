-- name: add_change: Store a change unless a repeated transaction has
INSERT INTO changes (changed_at, username, action, kind, object_id, detail)
VALUES (:changed_at, :username, :action, :kind, :object_id, :detail)
ON CONFLICT DO NOTHING;

-- name: list_changes: Return changes, latest first
SELECT change_id, changed_at, username, action, kind, object_id, detail
FROM changes
WHERE :before_change_id::bigint IS NULL OR change_id < :before_change_id
ORDER BY change_id DESC
LIMIT :limit;

-- name: list_changes_of: Return the changes of an object, latest first
SELECT change_id, changed_at, username, action, kind, object_id, detail
FROM changes
WHERE object_id = :object_id
    AND (:kind::text IS NULL OR kind = :kind)
    AND (:before_change_id::bigint IS NULL OR change_id < :before_change_id)
ORDER BY change_id DESC
LIMIT :limit;

-- name: delete_oldest_changes: Delete those of the oldest changes that were made before or are too many
DELETE FROM changes
WHERE change_id IN (
    SELECT change_id
    FROM (SELECT change_id, changed_at FROM changes ORDER BY change_id LIMIT :limit) AS oldest
    WHERE changed_at < :changed_before OR change_id <= (SELECT max(change_id) FROM changes) - :kept
)
RETURNING change_id;
