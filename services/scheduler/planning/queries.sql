-- name: lock_running_run: Keep a run from leaving its epoch before this transaction ends; no row if it is not running in it
-- Shards are added by several transactions: a cancel waits for one of them, not for the planning.
SELECT run_id FROM runs WHERE run_id = :run_id AND epoch = :epoch AND state = 'running' FOR SHARE;

-- name: delete_shards: Delete the shards of an epoch
DELETE FROM shards WHERE run_id = :run_id AND epoch = :epoch;

-- name: read_next_shard: Return the first free shard number of a run
SELECT coalesce(max(shard) + 1, 0) FROM shards WHERE run_id = :run_id;

-- name: add_shards: Store shards, their samples as literals of arrays
INSERT INTO shards (run_id, epoch, shard, task_index, rollout, samples, size)
SELECT :run_id, :epoch, shard, task_index, rollout, samples::bigint[], cardinality(samples::bigint[])
FROM unnest(
    :shards::integer[], :task_indexes::integer[], :rollouts::integer[], :samples::text[]
) AS cut (shard, task_index, rollout, samples)
-- A transaction whose commit was not answered is repeated with the same numbers.
ON CONFLICT (run_id, shard) DO NOTHING;

-- name: mark_planned: Make the stored shards of an epoch valid
UPDATE runs
SET planned_epoch = :epoch, total = :total, environment = :environment, reused_answers = :reused_answers, phase = ''
WHERE run_id = :run_id AND epoch = :epoch AND state = 'running'
RETURNING run_id;

-- name: delete_tasks: Delete the tasks of a run
DELETE FROM run_tasks WHERE run_id = :run_id;

-- name: add_task: Store a planned task
INSERT INTO run_tasks (
    run_id, task_index, task, version, sample_set_id, first_sample, sample_count, output_type, num_fewshot,
    is_stand_in, is_of_rollouts, row_source, row_source_revision, generation
)
VALUES (
    :run_id, :task_index, :task, :version, :sample_set_id, :first_sample, :sample_count, :output_type, :num_fewshot,
    :is_stand_in, :is_of_rollouts, :row_source, :row_source_revision, :generation
);

-- name: list_planned_shards: Return shards that wait to be dispatched, in order
SELECT shard, task_index, rollout, samples, size, attempt
FROM shards
WHERE run_id = :run_id AND epoch = :epoch AND state = 'planned' AND shard > :after_shard
ORDER BY shard
LIMIT :limit;

-- name: list_dispatched_shards: Return the shards that are dispatched and not done
SELECT shard, task_index, rollout, samples, size, attempt
FROM shards
WHERE run_id = :run_id AND epoch = :epoch AND state = 'dispatched'
ORDER BY shard;

-- name: lock_parallel_group: Keep other runs of the group from dispatching before this transaction ends
-- A statement sees what was committed before it began, so the count of the next one includes those that it waited for.
SELECT pg_advisory_xact_lock(hashtext('proctor parallel'), hashtext(:parallel_group));

-- name: count_bounded_rollouts: Count the rollouts of a group that are in flight
-- Those that rest leave their places to other runs: one whose provider is away begins no more than without a rest.
SELECT count(*) FROM bounded_rollouts
WHERE parallel_group = :parallel_group AND (NOT is_resting OR run_id = :run_id);

-- name: move_shards: Mark shards as done and others as dispatched, if the leader still leads and the run is running
-- Returns how many of the first ones are dispatched: as many as the group of the run has room for.
WITH leader AS (
    SELECT fencing_token FROM leadership WHERE fencing_token = :fencing_token FOR SHARE
), running AS (
    SELECT runs.run_id
    FROM runs, leader
    WHERE runs.run_id = :run_id AND runs.epoch = :epoch AND runs.state = 'running'
    -- `leader` is part of the join, so without leadership no row of runs is locked or changed.
    FOR SHARE OF runs
), done AS (
    UPDATE shards SET state = 'done'
    FROM running
    WHERE shards.run_id = running.run_id AND shards.epoch = :epoch AND shards.shard = ANY (:done_shards)
        AND shards.state = 'dispatched'
), going AS (
    SELECT run_id, shard, attempt
    FROM running, unnest(:dispatched_shards::integer[], :attempts::integer[])
    WITH ORDINALITY AS wanted (shard, attempt, place)
    WHERE :parallel::bigint IS NULL OR place + (
        SELECT count(*) FROM bounded_rollouts AS others
        WHERE parallel_group = :parallel_group AND (NOT is_resting OR others.run_id = :run_id)
            -- Without those of this statement: a first try of it may have been stored.
            AND NOT (others.run_id = :run_id AND others.shard = ANY (:dispatched_shards))
            AND NOT (others.run_id = :run_id AND others.shard = ANY (:done_shards))
    ) <= :parallel
), dispatched AS (
    UPDATE shards SET state = 'dispatched', attempt = going.attempt, is_resting = false
    FROM going
    WHERE shards.run_id = going.run_id AND shards.epoch = :epoch AND shards.shard = going.shard
        -- A repeated statement finds the attempt stored and changes nothing.
        AND shards.state = 'planned' AND shards.attempt < going.attempt
)
SELECT EXISTS (SELECT FROM leader) AS is_leader, (SELECT count(*) FROM going) AS dispatched;

-- name: return_shards: Make dispatched shards wait again, with the samples that miss an outcome as literals of arrays
UPDATE shards
SET state = 'planned', samples = returned.samples::bigint[]
FROM unnest(:shards::integer[], :samples::text[]) AS returned (shard, samples)
WHERE shards.run_id = :run_id AND shards.epoch = :epoch AND shards.shard = returned.shard AND shards.state = 'dispatched';
