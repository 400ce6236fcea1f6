-- name: save_mapping: Save a mapping in place of the one of its name, unless that is another user's
-- No row where it is: the caller that may change it gives its owner.
INSERT INTO column_mappings AS present (project_id, name, username, saved_at, prompt, target, id)
VALUES (:project_id, :name, :username, :saved_at, :prompt, :target, :id)
ON CONFLICT (project_id, name) DO UPDATE
SET saved_at = excluded.saved_at, prompt = excluded.prompt, target = excluded.target, id = excluded.id
WHERE present.username = excluded.username
RETURNING true;

-- name: find_mapping: Return a saved mapping
SELECT project_id, name, username, saved_at, prompt, target, id
FROM column_mappings
WHERE project_id = :project_id AND name = :name;

-- name: list_mappings: Return saved mappings, the latest first
SELECT project_id, name, username, saved_at, prompt, target, id
FROM column_mappings
WHERE (:username = '' OR username = :username) AND (:project_id::bigint IS NULL OR project_id = :project_id)
ORDER BY saved_at DESC, project_id, name
LIMIT :limit;

-- name: delete_mapping: Delete a saved mapping of a user
DELETE FROM column_mappings WHERE project_id = :project_id AND name = :name RETURNING true;
