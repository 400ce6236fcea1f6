-- name: store_task_set: Store a set of tasks, or find an equal one, and lock it ($1 digest, $2 prefix, $3 bytes)
INSERT INTO task_sets (digest, prefix, size_bytes)
VALUES ($1, $2, $3)
ON CONFLICT (digest) DO UPDATE SET digest = excluded.digest
RETURNING prefix;

-- name: add_task_bundles: Store which files a set has ($1 set, $2 digests)
INSERT INTO task_bundles (tasks_digest, digest)
SELECT $1, digest FROM unnest($2::text[]) AS bundle (digest)
ON CONFLICT DO NOTHING;

-- name: find_task_set_use: Return a user's use of a set ($1 set, $2 user)
SELECT tasks_digest FROM task_set_uses WHERE tasks_digest = $1 AND username = $2 LIMIT 1;

-- name: use_task_set: Record that a user or a suite uses a set from now on ($1 set, $2 user, $3 digest of the suite or "", $4 time)
INSERT INTO task_set_uses (tasks_digest, username, suite_digest, since)
VALUES ($1, $2, $3, $4)
ON CONFLICT (tasks_digest, username, suite_digest) DO UPDATE SET since = excluded.since;

-- name: lock_task_set: Return a set and lock it, so that it stays ($1 digest)
SELECT prefix, size_bytes FROM task_sets WHERE digest = $1 FOR UPDATE;

-- name: find_task_bundle: Return a prefix under which files of a task are stored ($1 digest)
SELECT prefix FROM task_bundles JOIN task_sets ON task_sets.digest = tasks_digest WHERE task_bundles.digest = $1 LIMIT 1;

-- name: delete_task_uploads: Delete uploads that no order used ($1 since before)
DELETE FROM task_set_uses WHERE suite_digest = '' AND since < $1;

-- name: delete_task_uses: Delete uses of suites that are not there ($1 since before)
DELETE FROM task_set_uses AS use
WHERE use.suite_digest <> '' AND since < $1
    AND NOT EXISTS (SELECT FROM user_suite_versions AS version WHERE version.digest = use.suite_digest);

-- name: lock_unused_task_sets: Return sets that no user and no suite has and lock them ()
SELECT digest FROM task_sets
WHERE NOT EXISTS (SELECT FROM task_set_uses WHERE tasks_digest = task_sets.digest)
FOR UPDATE SKIP LOCKED;

-- name: delete_task_sets: Delete those that no user and no suite has, and return their prefixes ($1 digests)
DELETE FROM task_sets
WHERE digest = ANY($1) AND NOT EXISTS (SELECT FROM task_set_uses WHERE tasks_digest = task_sets.digest)
RETURNING prefix;
