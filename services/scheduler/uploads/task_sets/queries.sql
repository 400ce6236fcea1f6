-- name: store_task_set: Store a set of tasks, or find an equal one, and lock it
INSERT INTO task_sets (digest, prefix, size_bytes)
VALUES (:digest, :prefix, :size_bytes)
ON CONFLICT (digest) DO UPDATE SET digest = excluded.digest
RETURNING prefix;

-- name: add_task_bundles: Store which files a set has
INSERT INTO task_bundles (tasks_digest, digest)
SELECT :tasks_digest, digest FROM unnest(:digests::text[]) AS bundle (digest)
ON CONFLICT DO NOTHING;

-- name: find_task_set_use: Return a user's use of a set
SELECT tasks_digest FROM task_set_uses WHERE tasks_digest = :tasks_digest AND username = :username LIMIT 1;

-- name: use_task_set: Record that a user or a suite uses a set from now on
INSERT INTO task_set_uses (tasks_digest, username, suite_digest, since)
VALUES (:tasks_digest, :username, :suite_digest, :since)
ON CONFLICT (tasks_digest, username, suite_digest) DO UPDATE SET since = excluded.since;

-- name: lock_task_set: Return a set and lock it, so that it stays
SELECT prefix, size_bytes FROM task_sets WHERE digest = :digest FOR UPDATE;

-- name: find_task_bundle: Return a prefix under which files of a task are stored
SELECT prefix
FROM task_bundles
JOIN task_sets ON task_sets.digest = tasks_digest
WHERE task_bundles.digest = :digest
LIMIT 1;

-- name: delete_task_uploads: Delete uploads that no order used
DELETE FROM task_set_uses WHERE suite_digest = '' AND since < :before;

-- name: delete_task_uses: Delete uses of suites that are not there
DELETE FROM task_set_uses AS use
WHERE use.suite_digest <> '' AND since < :before
    AND NOT EXISTS (SELECT FROM user_suite_versions AS version WHERE version.digest = use.suite_digest);

-- name: lock_unused_task_sets: Return sets that no user and no suite has and lock them
SELECT digest FROM task_sets
WHERE NOT EXISTS (SELECT FROM task_set_uses WHERE tasks_digest = task_sets.digest)
FOR UPDATE SKIP LOCKED;

-- name: delete_task_sets: Delete those that no user and no suite has, and return their prefixes
DELETE FROM task_sets
WHERE digest = ANY(:digests) AND NOT EXISTS (SELECT FROM task_set_uses WHERE tasks_digest = task_sets.digest)
RETURNING prefix;
