-- name: lock_readable_set: Return whether a set can be read, and keep it from being deleted before this transaction ends ($1 set)
-- The weakest lock that a deletion waits for: runs with the same set do not wait for each other.
SELECT true AS is_committed FROM sample_sets WHERE sample_set_id = $1 AND digest IS NOT NULL FOR KEY SHARE;

-- name: add_run_record: Store the record of a run ($1 run, $2 epoch, $3 rollouts, $4 scoring method, $5 cut left, $6 benchmark, $7 version of a user's suite or 0, $8 model, $9 project, $10 user, $11 ordered at, $12 limit, $13 shots, $14 missing tasks, $15 groups, $16 price, $17 name of its data set, $18 largest share of failed samples)
INSERT INTO run_records (
    run_id, epoch, rollouts, scoring_method, is_truncated_left, benchmark, suite_version, model, project_id, username,
    created_at, row_limit, num_fewshot, missing_tasks, groups, price, dataset_name, max_failed_share
)
VALUES (
    $1, $2, $3, $4, $5, $6, $7, $8, $9,
    $10, $11, $12, $13, $14, $15, $16, $17, $18
)
-- No row where the run is known: then its epoch is opened.
ON CONFLICT (run_id) DO NOTHING
RETURNING run_id::text AS run_id;

-- name: add_run_task: Store a planned task ($1 run, $2 index, $3 name, $4 set, $5 first, $6 count, $7 scoring, $8 provenance, $9 digest of its requests or null)
INSERT INTO run_tasks
    (run_id, task_index, task, sample_set_id, first_sample, sample_count, scoring, provenance, request_digest)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9);

-- name: lock_run_record: Return epoch and state of a run; recorders wait until the transaction ends ($1 run)
SELECT epoch, is_frozen FROM run_records WHERE run_id = $1 FOR UPDATE;

-- name: open_epoch: Accept outcomes again, for a later epoch ($1 run, $2 epoch)
UPDATE run_records SET epoch = $2, is_frozen = false, state = NULL, frozen_at = NULL WHERE run_id = $1;

-- name: uncount_failures: Count failures of earlier epochs as missing from now on ($1 run)
DELETE FROM task_counts WHERE run_id = $1 AND failure_class IS NOT NULL;

-- name: uncount_shards: Delete the counts of shards of earlier epochs ($1 run)
DELETE FROM shard_counts WHERE run_id = $1;

-- name: freeze_run: Refuse outcomes from now on ($1 run, $2 final state)
UPDATE run_records SET is_frozen = true, state = $2, frozen_at = now() WHERE run_id = $1;

-- name: read_run_record: Return the record of a run ($1 run)
SELECT
    epoch, is_frozen, rollouts, scoring_method, is_truncated_left, benchmark, suite_version, model, project_id, username,
    created_at, row_limit, num_fewshot, missing_tasks, groups, price, dataset_name, max_failed_share,
    state, frozen_at
FROM run_records
WHERE run_id = $1;

-- name: list_run_tasks: Return the planned tasks of a run in order ($1 run)
SELECT task, sample_set_id::text AS sample_set_id, first_sample, sample_count, scoring, provenance, request_digest
FROM run_tasks
WHERE run_id = $1
ORDER BY task_index;

-- name: delete_run_record: Delete a run with its tasks, figures and comparisons; waits for recorders under way ($1 run)
DELETE FROM run_records WHERE run_id = $1;

-- name: delete_task_counts: Delete the counts of a run whose record is gone ($1 run)
DELETE FROM task_counts WHERE run_id = $1;

-- name: delete_shard_counts: Delete the counts of the shards of a run whose record is gone ($1 run)
DELETE FROM shard_counts WHERE run_id = $1;

-- name: list_task_counts: Return epoch, environment, and counts per task and failure class, where there are any ($1 runs)
SELECT
    r.run_id::text AS run_id, r.epoch, reported.environment, c.task_index, c.failure_class, c.recorded, c.unparsed,
    (c.usage).*
FROM run_records AS r
LEFT JOIN task_counts AS c USING (run_id)
LEFT JOIN LATERAL (
    SELECT jsonb_object_agg(named.name, named.reported) AS environment
    FROM (
        SELECT e.name, string_agg(e.value, '; ' ORDER BY e.value) AS reported
        FROM run_environments AS e
        WHERE e.run_id = r.run_id
        GROUP BY e.name
    ) AS named
) AS reported ON true
WHERE r.run_id = ANY ($1);

-- name: list_shard_counts: Return the counts of some shards; the n-th shard belongs to the n-th run ($1 runs, $2 shards)
SELECT c.run_id::text AS run_id, c.shard, c.recorded
FROM unnest($1::uuid[], $2::integer[]) AS asked (run_id, shard)
JOIN shard_counts AS c USING (run_id, shard);

-- name: list_all_shard_counts: Return the counts of every shard of a run ($1 run)
SELECT shard, recorded FROM shard_counts WHERE run_id = $1;

-- name: add_environment: Add values that an engine reports about itself ($1 run, $2 names, $3 values)
INSERT INTO run_environments (run_id, name, value)
SELECT r.run_id, engine.name, engine.value
FROM run_records AS r CROSS JOIN unnest($2::text[], $3::text[]) AS engine (name, value)
WHERE r.run_id = $1 AND NOT r.is_frozen
ON CONFLICT (run_id, name, value) DO NOTHING;

-- name: count_recorded: Count the final outcomes of a run in its present epoch ($1 run)
SELECT coalesce(sum(recorded), 0)::bigint AS recorded FROM task_counts WHERE run_id = $1;

-- name: list_unused_sets: Return committed sets that no run has ($1 last touched before, $2 rows)
SELECT s.sample_set_id::text AS sample_set_id
FROM sample_sets AS s
WHERE s.digest IS NOT NULL
    AND s.touched_at < $1
    AND NOT EXISTS (SELECT FROM run_tasks AS t WHERE t.sample_set_id = s.sample_set_id)
    AND NOT EXISTS (SELECT FROM sample_sets AS a WHERE a.same_as = s.sample_set_id)
LIMIT $2::integer;

-- name: lock_unused_set: Keep runs from being opened with a set; no row where one is being opened ($1 set, $2 last touched before)
SELECT sample_set_id
FROM sample_sets
WHERE sample_set_id = $1 AND digest IS NOT NULL AND touched_at < $2
-- A run that is being opened holds the row (lock_readable_set): the set is in use then.
FOR UPDATE SKIP LOCKED;

-- name: delete_sample_set: Delete a locked set that no run uses, with its baselines ($1 set)
WITH deleted AS (
    DELETE FROM sample_sets AS s
    WHERE s.sample_set_id = $1
        AND NOT EXISTS (SELECT FROM run_tasks AS t WHERE t.sample_set_id = s.sample_set_id)
        AND NOT EXISTS (SELECT FROM sample_sets AS a WHERE a.same_as = s.sample_set_id)
    RETURNING s.sample_set_id
)
INSERT INTO deleted_sample_sets (sample_set_id)
SELECT sample_set_id FROM deleted
-- An update that changes nothing: DO NOTHING would return no row.
ON CONFLICT (sample_set_id) DO UPDATE SET sample_set_id = excluded.sample_set_id
RETURNING sample_set_id;
