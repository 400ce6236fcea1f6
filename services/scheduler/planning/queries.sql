-- name: lock_running_run: Keep a run from leaving its epoch before this transaction ends; no row if it is not running in it ($1 run, $2 epoch)
-- Shards are added by several transactions: a cancel waits for one of them, not for the planning.
SELECT run_id FROM runs WHERE run_id = $1 AND epoch = $2 AND state = 'running' FOR SHARE;

-- name: delete_shards: Delete the shards of an epoch ($1 run, $2 epoch)
DELETE FROM shards WHERE run_id = $1 AND epoch = $2;

-- name: read_next_shard: Return the first free shard number of a run ($1 run)
SELECT coalesce(max(shard) + 1, 0) FROM shards WHERE run_id = $1;

-- name: add_shards: Store shards ($1 run, $2 epoch, $3 numbers, $4 tasks, $5 rollouts, $6 samples as array literals)
INSERT INTO shards (run_id, epoch, shard, task_index, rollout, samples, size)
SELECT $1, $2, shard, task_index, rollout, samples::bigint[], cardinality(samples::bigint[])
FROM unnest($3::integer[], $4::integer[], $5::integer[], $6::text[]) AS cut (shard, task_index, rollout, samples)
-- A transaction whose commit was not answered is repeated with the same numbers.
ON CONFLICT (run_id, shard) DO NOTHING;

-- name: mark_planned: Make the stored shards of an epoch valid ($1 run, $2 epoch, $3 total, $4 environment, $5 reused answers)
UPDATE runs
SET planned_epoch = $2, total = $3, environment = $4, reused_answers = $5, phase = ''
WHERE run_id = $1 AND epoch = $2 AND state = 'running'
RETURNING run_id;

-- name: delete_tasks: Delete the tasks of a run ($1 run)
DELETE FROM run_tasks WHERE run_id = $1;

-- name: add_task: Store a planned task ($1 run, $2 index, $3 task, $4 version, $5 sample set, $6 first sample, $7 samples, $8 output type, $9 few-shot examples, $10 stand-in, $11 row source, $12 its revision, $13 generation)
INSERT INTO run_tasks (
    run_id, task_index, task, version, sample_set_id, first_sample, sample_count, output_type, num_fewshot,
    is_stand_in, row_source, row_source_revision, generation
)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13);

-- name: list_planned_shards: Return shards that wait to be dispatched, in order ($1 run, $2 epoch, $3 number before, $4 limit)
SELECT shard, task_index, rollout, samples, size, attempt
FROM shards
WHERE run_id = $1 AND epoch = $2 AND state = 'planned' AND shard > $3
ORDER BY shard
LIMIT $4;

-- name: list_dispatched_shards: Return the shards that are dispatched and not done ($1 run, $2 epoch)
SELECT shard, task_index, rollout, samples, size, attempt
FROM shards
WHERE run_id = $1 AND epoch = $2 AND state = 'dispatched'
ORDER BY shard;

-- name: move_shards: Mark shards as done and others as dispatched, if the leader still leads and the run is running ($1 fencing token, $2 run, $3 epoch, $4 done, $5 dispatched, $6 attempts of those)
WITH leader AS (
    SELECT fencing_token FROM leadership WHERE fencing_token = $1 FOR SHARE
), running AS (
    SELECT runs.run_id
    FROM runs, leader
    WHERE runs.run_id = $2 AND runs.epoch = $3 AND runs.state = 'running'
    -- `leader` is part of the join, so without leadership no row of runs is locked or changed.
    FOR SHARE OF runs
), done AS (
    UPDATE shards SET state = 'done'
    FROM running
    WHERE shards.run_id = running.run_id AND shards.epoch = $3 AND shards.shard = ANY ($4)
        AND shards.state = 'dispatched'
), dispatched AS (
    UPDATE shards SET state = 'dispatched', attempt = going.attempt
    FROM running, unnest($5::integer[], $6::integer[]) AS going (shard, attempt)
    WHERE shards.run_id = running.run_id AND shards.epoch = $3 AND shards.shard = going.shard
        -- A repeated statement finds the attempt stored and changes nothing.
        AND shards.state = 'planned' AND shards.attempt < going.attempt
)
SELECT EXISTS (SELECT FROM leader) AS is_leader, EXISTS (SELECT FROM running) AS is_running;

-- name: return_shards: Make dispatched shards wait again, with the samples that miss an outcome ($1 run, $2 epoch, $3 numbers, $4 samples as array literals)
UPDATE shards
SET state = 'planned', samples = returned.samples::bigint[]
FROM unnest($3::integer[], $4::text[]) AS returned (shard, samples)
WHERE shards.run_id = $1 AND shards.epoch = $2 AND shards.shard = returned.shard AND shards.state = 'dispatched';
