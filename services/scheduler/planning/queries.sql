-- name: lock_running_run: Keep a run from leaving its epoch before this transaction ends; no row if it is not running in it ($1 run, $2 epoch)
SELECT run_id FROM runs WHERE run_id = $1 AND epoch = $2 AND state = 'running' FOR SHARE;

-- name: delete_shards: Delete the shards of an epoch ($1 run, $2 epoch)
DELETE FROM shards WHERE run_id = $1 AND epoch = $2;

-- name: next_shard_number: Return the first free shard number of a run ($1 run)
SELECT coalesce(max(shard) + 1, 0) FROM shards WHERE run_id = $1;

-- name: add_shards: Store shards ($1 run, $2 epoch, $3 numbers, $4 tasks, $5 rollouts, $6 samples as array literals)
INSERT INTO shards (run_id, epoch, shard, task_index, rollout, samples, size)
SELECT $1, $2, shard, task_index, rollout, samples::bigint[], cardinality(samples::bigint[])
FROM unnest($3::int[], $4::int[], $5::int[], $6::text[]) AS cut (shard, task_index, rollout, samples)
ON CONFLICT (run_id, shard) DO NOTHING;

-- name: mark_planned: Make the stored shards of an epoch valid ($1 run, $2 epoch, $3 total, $4 environment, $5 reused answers)
UPDATE runs
SET planned_epoch = $2, total = $3, environment = $4::jsonb, reused_answers = $5, step = ''
WHERE run_id = $1 AND epoch = $2 AND state = 'running'
RETURNING run_id;

-- name: delete_tasks: Delete the tasks of a run ($1 run)
DELETE FROM tasks WHERE run_id = $1;

-- name: add_task: Store a planned task ($1 run, $2 index, $3 task, $4 version, $5 sample set, $6 first sample, $7 samples, $8 output type, $9 few-shot examples, $10 stand-in, $11 data set, $12 revision, $13 generation)
INSERT INTO tasks (
    run_id, task_index, task, version, sample_set_id, first_sample, sample_count, output_type, num_fewshot,
    is_stand_in, dataset, dataset_revision, generation
)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13::jsonb);
