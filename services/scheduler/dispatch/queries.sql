-- name: planned_shards: Return shards that wait to be dispatched, in order ($1 run, $2 epoch, $3 number before, $4 limit)
SELECT shard, task_index, rollout, samples, size, attempt
FROM shards
WHERE run_id = $1 AND epoch = $2 AND state = 'planned' AND shard > $3
ORDER BY shard
LIMIT $4;

-- name: dispatched_shards: Return the shards in flight ($1 run, $2 epoch)
SELECT shard, task_index, rollout, samples, size, attempt
FROM shards
WHERE run_id = $1 AND epoch = $2 AND state = 'dispatched'
ORDER BY shard;

-- name: move_shards: Mark shards as done and others as dispatched, if the term and the run last ($1 fencing token, $2 run, $3 epoch, $4 done, $5 dispatched, $6 attempts of those)
WITH leader AS (
    SELECT fencing_token FROM leadership WHERE fencing_token = $1 FOR SHARE
), live AS (
    SELECT runs.run_id
    FROM runs, leader
    WHERE runs.run_id = $2 AND runs.epoch = $3 AND runs.state = 'running'
    FOR SHARE OF runs
), done AS (
    UPDATE shards SET state = 'done'
    FROM live
    WHERE shards.run_id = live.run_id AND shards.epoch = $3 AND shards.shard = ANY ($4::int[])
      AND shards.state = 'dispatched'
), dispatched AS (
    UPDATE shards SET state = 'dispatched', attempt = going.attempt
    FROM live, unnest($5::int[], $6::int[]) AS going (shard, attempt)
    WHERE shards.run_id = live.run_id AND shards.epoch = $3 AND shards.shard = going.shard
      AND shards.state = 'planned' AND shards.attempt < going.attempt
)
SELECT EXISTS (SELECT FROM leader) AS is_leader, EXISTS (SELECT FROM live) AS is_live;

-- name: return_shards: Make dispatched shards wait again, with the samples that miss an outcome ($1 run, $2 epoch, $3 numbers, $4 samples as array literals)
UPDATE shards
SET state = 'planned', samples = returned.samples::bigint[]
FROM unnest($3::int[], $4::text[]) AS returned (shard, samples)
WHERE shards.run_id = $1 AND shards.epoch = $2 AND shards.shard = returned.shard AND shards.state = 'dispatched';
