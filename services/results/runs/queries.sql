-- name: lock_readable_set: Return whether a set can be read, and keep it from being deleted before this transaction ends
-- The weakest lock that a deletion waits for: runs with the same set do not wait for each other.
SELECT true AS is_committed FROM sample_sets WHERE sample_set_id = :sample_set_id AND digest IS NOT NULL FOR KEY SHARE;

-- name: find_bypassing_role: Return the role of this session where policies do not hold for it
SELECT current_user::text WHERE NOT row_security_active('run_records');

-- name: find_unguarded_role: Return the role of this session where policies do not hold for it, and a project has runs
SELECT current_user::text
WHERE NOT row_security_active('run_records') AND EXISTS (SELECT FROM run_records WHERE is_declared(project_id));

-- name: add_run_record: Store the record of a run
INSERT INTO run_records (
    run_id, epoch, rollouts, row_rollouts, scoring_method, is_truncated_left, benchmark, suite_version, model, project_id,
    username, created_at, row_limit, num_fewshot, missing_tasks, groups, price, dataset_name, max_failed_share,
    against_run_id
)
VALUES (
    :run_id, :epoch, :rollouts, :row_rollouts, :scoring_method, :is_truncated_left, :benchmark, :suite_version, :model,
    :project_id, :username, :created_at, :row_limit, :num_fewshot, :missing_tasks, :groups, :price, :dataset_name,
    :max_failed_share, :against_run_id
)
-- No row where the run is known: then its epoch is opened.
ON CONFLICT (run_id) DO NOTHING
RETURNING run_id::text AS run_id;

-- name: add_run_task: Store a planned task
INSERT INTO run_tasks
    (run_id, task_index, task, sample_set_id, first_sample, sample_count, scoring, provenance, request_digest)
VALUES (
    :run_id, :task_index, :task, :sample_set_id, :first_sample, :sample_count, :scoring, :provenance, :request_digest
);

-- name: add_run_code: Store files of code that scores answers of a run
INSERT INTO run_codes (run_id, digest, paths, contents)
VALUES (:run_id, :digest, :paths, :contents)
ON CONFLICT (run_id, digest) DO NOTHING;

-- name: read_run_code: Return files of code that scores answers of a run
SELECT paths, contents FROM run_codes WHERE run_id = :run_id AND digest = :digest;

-- name: lock_run_record: Return epoch and state of a run; recorders wait until the transaction ends
SELECT epoch, is_frozen, archive_phase IS NOT NULL AS is_archived FROM run_records WHERE run_id = :run_id FOR UPDATE;

-- name: open_epoch: Accept outcomes again, for a later epoch
UPDATE run_records SET epoch = :epoch, is_frozen = false, state = NULL, frozen_at = NULL WHERE run_id = :run_id;

-- name: uncount_failures: Count failures of earlier epochs as missing from now on; what they used stays used
WITH uncounted AS (
    UPDATE task_counts SET recorded = 0 WHERE run_id = :run_id AND failure_class <> 'scoring'
)
-- A retry that brings no answer leaves one that could not be scored in its place, and counts it again.
DELETE FROM task_counts WHERE run_id = :run_id AND failure_class = 'scoring';

-- name: freeze_run: Refuse outcomes from now on
UPDATE run_records SET is_frozen = true, state = :state, frozen_at = now() WHERE run_id = :run_id;

-- name: read_run_record: Return the record of a run
SELECT
    epoch, is_frozen, rollouts, row_rollouts, scoring_method, is_truncated_left, benchmark, suite_version, model, project_id,
    username, created_at, row_limit, num_fewshot, missing_tasks, groups, price, dataset_name, max_failed_share,
    state, frozen_at, against_run_id::text AS against_run_id,
    (SELECT d.decision FROM run_decisions AS d WHERE d.run_id = r.run_id) AS decision
FROM run_records AS r
WHERE run_id = :run_id;

-- name: add_decision: Store what is decided between two runs, unless something is
INSERT INTO run_decisions (run_id, against_run_id, decision)
VALUES (:run_id, :base_run_id, :decision), (:base_run_id, :run_id, :decision)
ON CONFLICT (run_id) DO NOTHING;

-- name: read_decision: Return what was decided between a run and another
SELECT decision FROM run_decisions WHERE run_id = :run_id;

-- name: list_run_tasks: Return the planned tasks of a run in order
SELECT task, sample_set_id::text AS sample_set_id, first_sample, sample_count, scoring, provenance, request_digest
FROM run_tasks
WHERE run_id = :run_id
ORDER BY task_index;

-- name: delete_run_record: Delete a run with its tasks, figures and comparisons; waits for recorders under way
DELETE FROM run_records WHERE run_id = :run_id;

-- name: add_deleted_run: Record that outcomes of a deleted run may still be stored
INSERT INTO deleted_runs (run_id) VALUES (:run_id) ON CONFLICT (run_id) DO NOTHING;

-- name: list_deleted_runs: Return deleted runs whose outcomes may still be stored
SELECT run_id::text AS run_id FROM deleted_runs LIMIT :limit::integer;

-- name: delete_deleted_run: Delete the row of a deleted run whose outcomes are deleted as well
DELETE FROM deleted_runs WHERE run_id = :run_id;

-- name: delete_task_counts: Delete the counts of a run whose record is gone
DELETE FROM task_counts WHERE run_id = :run_id;

-- name: delete_shard_counts: Delete the counts of the shards of a run, which count only while an epoch takes outcomes
DELETE FROM shard_counts WHERE run_id = :run_id;

-- name: list_task_counts: Return epoch, environment, and counts per task and failure class, where there are any
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
WHERE r.run_id = ANY (:run_ids);

-- name: read_environment: Return what the engines of a run reported, each value once
SELECT jsonb_object_agg(named.name, named.reported) AS environment
FROM (
    SELECT name, string_agg(value, '; ' ORDER BY value) AS reported
    FROM run_environments
    WHERE run_id = :run_id
    GROUP BY name
) AS named;

-- name: list_shard_counts: Return the counts of some shards; the n-th shard belongs to the n-th run
SELECT c.run_id::text AS run_id, c.shard, c.recorded
FROM unnest(:run_ids::uuid[], :shards::integer[]) AS asked (run_id, shard)
JOIN shard_counts AS c USING (run_id, shard);

-- name: list_all_shard_counts: Return the counts of every shard of a run
SELECT shard, recorded FROM shard_counts WHERE run_id = :run_id;

-- name: add_environment: Add values that an engine reports about itself, unless the run has many
INSERT INTO run_environments (run_id, name, value)
SELECT r.run_id, engine.name, engine.value
FROM run_records AS r CROSS JOIN unnest(:names::text[], :values::text[]) AS engine (name, value)
WHERE
    r.run_id = :run_id
    AND NOT r.is_frozen
    AND (SELECT count(*) FROM run_environments AS known WHERE known.run_id = r.run_id) < :limit
ON CONFLICT (run_id, name, value) DO NOTHING;

-- name: count_recorded: Count the final outcomes of a run in its present epoch
SELECT coalesce(sum(recorded), 0)::bigint AS recorded FROM task_counts WHERE run_id = :run_id;

-- name: list_unused_sets: Return committed sets that no run has
SELECT s.sample_set_id::text AS sample_set_id
FROM sample_sets AS s
WHERE s.digest IS NOT NULL
    AND s.touched_at < now() - make_interval(secs => :unused_seconds)
    AND NOT EXISTS (SELECT FROM run_tasks AS t WHERE t.sample_set_id = s.sample_set_id)
    AND NOT EXISTS (SELECT FROM sample_sets AS a WHERE a.same_as = s.sample_set_id)
LIMIT :limit::integer;

-- name: lock_unused_set: Keep runs from being opened with a set; no row where one is being opened
SELECT sample_set_id
FROM sample_sets
WHERE sample_set_id = :sample_set_id AND digest IS NOT NULL AND touched_at < now() - make_interval(secs => :unused_seconds)
-- A run that is being opened holds the row (lock_readable_set): the set is in use then.
FOR UPDATE SKIP LOCKED;

-- name: delete_sample_set: Delete a locked set that no run uses, with its baselines
WITH deleted AS (
    DELETE FROM sample_sets AS s
    WHERE s.sample_set_id = :sample_set_id
        AND NOT EXISTS (SELECT FROM run_tasks AS t WHERE t.sample_set_id = s.sample_set_id)
        AND NOT EXISTS (SELECT FROM sample_sets AS a WHERE a.same_as = s.sample_set_id)
    RETURNING s.sample_set_id
)
INSERT INTO deleted_sample_sets (sample_set_id)
SELECT sample_set_id FROM deleted
-- An update that changes nothing: DO NOTHING would return no row.
ON CONFLICT (sample_set_id) DO UPDATE SET sample_set_id = excluded.sample_set_id
RETURNING sample_set_id;
