-- All SQL of results. `-- name: purpose ($1 …)`, then the statement.

-- name: stage_sample_set: make the row of a set that is being staged, or note that it still is ($1 set)
INSERT INTO sample_sets (set_id) VALUES ($1::uuid) ON CONFLICT (set_id) DO UPDATE SET touched_at = now();

-- name: lock_sample_set: see whether a set is still staged; calls for the same set wait for each other ($1 set)
SELECT digest, same_as::text AS same_as FROM sample_sets WHERE set_id = $1::uuid FOR UPDATE;

-- name: unstage_samples: drop what a repeated chunk replaces ($1 set, $2 positions)
DELETE FROM samples WHERE set_id = $1::uuid AND position = ANY ($2::integer[]);

-- name: measure_samples: what is staged: how many, gaps, digest over the ordered digests ($1 set)
SELECT
    count(*) AS staged,
    coalesce(max(position), -1) + 1 AS end_position,
    coalesce(min(position), 0) AS first_position,
    sha256(coalesce(string_agg(digest, ''::bytea ORDER BY position), ''::bytea)) AS digest
FROM samples
WHERE set_id = $1::uuid;

-- name: lock_digest: commits of equal sets wait for each other until their transactions end ($1 digest)
SELECT pg_advisory_xact_lock(hashtextextended(encode($1::bytea, 'hex'), 0));

-- name: find_sample_set: the committed set of a digest ($1 digest)
SELECT set_id::text AS set_id FROM sample_sets WHERE digest = $1::bytea;

-- name: commit_sample_set: name a staged set by its digest ($1 set, $2 digest)
UPDATE sample_sets SET digest = $2::bytea WHERE set_id = $1::uuid;

-- name: alias_sample_set: remember which committed set a staged one equals ($1 staged set, $2 committed set)
UPDATE sample_sets SET same_as = $2::uuid WHERE set_id = $1::uuid;

-- name: drop_samples: drop all samples of a set ($1 set)
DELETE FROM samples WHERE set_id = $1::uuid;

-- name: sample_set_is_committed: whether a set can be read ($1 set)
SELECT EXISTS (SELECT FROM sample_sets WHERE set_id = $1::uuid AND digest IS NOT NULL) AS is_committed;

-- name: digest_of_sample_set: the digest of a committed set ($1 set)
SELECT digest FROM sample_sets WHERE set_id = $1::uuid AND digest IS NOT NULL;

-- name: sweep_sample_sets: drop staged leftovers and aliases ($1 last touched before)
WITH swept AS (
    DELETE FROM sample_sets WHERE digest IS NULL AND touched_at < $1::timestamptz RETURNING set_id
), dropped AS (
    DELETE FROM samples USING swept WHERE samples.set_id = swept.set_id
)
SELECT count(*) AS swept FROM swept;

-- name: read_samples: samples of a committed set by position ($1 set, $2 positions)
SELECT
    s.position, s.doc_id, s.digest, s.prompt_text, s.prompt_messages, s.choices, s.target_choice,
    s.target_texts, s.cluster
FROM samples AS s
WHERE s.set_id = $1::uuid
    AND s.position = ANY ($2::integer[])
    AND EXISTS (SELECT FROM sample_sets AS c WHERE c.set_id = $1::uuid AND c.digest IS NOT NULL);

-- name: weigh_samples: bytes of samples as they are listed, nearly ($1 set, $2 positions)
SELECT
    position,
    octet_length(coalesce(prompt_text, prompt_messages::text, ''))
        + octet_length(array_to_string(choices, ''))
        + octet_length(array_to_string(target_texts, '')) AS bytes
FROM samples
WHERE set_id = $1::uuid AND position = ANY ($2::integer[]);

-- name: read_targets: what is expected of samples ($1 set, $2 positions)
SELECT position, choices, target_choice, target_texts
FROM samples
WHERE set_id = $1::uuid AND position = ANY ($2::integer[]);

-- name: read_clusters: the samples of a set that share a passage ($1 set)
SELECT position, cluster FROM samples WHERE set_id = $1::uuid AND cluster <> '' ORDER BY position;

-- name: add_run_record: make the record of a run ($1 run, $2 epoch, $3 rollouts, $4 scoring method, $5 cut left)
INSERT INTO run_records (run_id, epoch, rollouts, scoring_method, is_truncated_left)
VALUES ($1::uuid, $2::integer, $3::integer, $4::smallint, $5::boolean)
ON CONFLICT (run_id) DO NOTHING
RETURNING run_id::text AS run_id;

-- name: add_run_task: one planned task ($1 run, $2 place, $3 name, $4 set, $5 first, $6 count, $7 scoring, $8 origin)
INSERT INTO run_tasks
    (run_id, task_index, task, set_id, first_sample, sample_count, scoring, provenance)
VALUES ($1::uuid, $2::smallint, $3::text, $4::uuid, $5::bigint, $6::integer, $7::jsonb, $8::jsonb);

-- name: lock_run_record: epoch and state of a run; recorders wait until the transaction ends ($1 run)
SELECT epoch, is_frozen FROM run_records WHERE run_id = $1::uuid FOR UPDATE;

-- name: open_epoch: a later epoch takes outcomes again ($1 run, $2 epoch)
UPDATE run_records SET epoch = $2::integer, is_frozen = false WHERE run_id = $1::uuid;

-- name: uncount_failures: failures of the epochs before count as missing from now on ($1 run)
DELETE FROM task_counts WHERE run_id = $1::uuid AND failure_class > 0;

-- name: uncount_shards: shards of the epochs before are over ($1 run)
DELETE FROM shard_counts WHERE run_id = $1::uuid;

-- name: freeze_run: refuse outcomes from now on ($1 run)
UPDATE run_records SET is_frozen = true WHERE run_id = $1::uuid;

-- name: read_run_record: the record of a run ($1 run)
SELECT epoch, is_frozen, rollouts, scoring_method, is_truncated_left
FROM run_records
WHERE run_id = $1::uuid;

-- name: read_run_tasks: the planned tasks of a run in order ($1 run)
SELECT task, set_id::text AS set_id, first_sample, sample_count, scoring, provenance
FROM run_tasks
WHERE run_id = $1::uuid
ORDER BY task_index;

-- name: add_summary: keep the figures of a frozen epoch; the first ones stay ($1 run, $2 epoch, $3 summary)
INSERT INTO run_summaries (run_id, epoch, summary)
SELECT $1::uuid, $2::integer, $3::jsonb
WHERE EXISTS (SELECT FROM run_records WHERE run_id = $1::uuid AND epoch = $2::integer AND is_frozen)
ON CONFLICT (run_id, epoch) DO NOTHING;

-- name: read_summary: the figures kept for an epoch ($1 run, $2 epoch)
SELECT summary FROM run_summaries WHERE run_id = $1::uuid AND epoch = $2::integer;

-- name: read_task_counts: epoch, environment, and counts per task and failure class, where there are any ($1 runs)
SELECT
    r.run_id::text AS run_id, r.epoch, said.environment, c.task_index, c.failure_class, c.recorded, c.unparsed
FROM run_records AS r
LEFT JOIN task_counts AS c USING (run_id)
LEFT JOIN LATERAL (
    SELECT jsonb_object_agg(named.name, named.said) AS environment
    FROM (
        SELECT e.name, string_agg(e.value, '; ' ORDER BY e.value) AS said
        FROM run_environments AS e
        WHERE e.run_id = r.run_id
        GROUP BY e.name
    ) AS named
) AS said ON true
WHERE r.run_id = ANY ($1::uuid[]);

-- name: read_shard_counts: counts of some shards; the n-th shard belongs to the n-th run ($1 runs, $2 shards)
SELECT c.run_id::text AS run_id, c.shard, c.recorded
FROM unnest($1::uuid[], $2::integer[]) AS asked (run_id, shard)
JOIN shard_counts AS c USING (run_id, shard);

-- name: read_all_shard_counts: counts of every shard of a run ($1 run)
SELECT shard, recorded FROM shard_counts WHERE run_id = $1::uuid;

-- name: add_environment: what an engine says of itself ($1 run, $2 names, $3 values)
INSERT INTO run_environments (run_id, name, value)
SELECT r.run_id, said.name, said.value
FROM run_records AS r CROSS JOIN unnest($2::text[], $3::text[]) AS said (name, value)
WHERE r.run_id = $1::uuid AND NOT r.is_frozen
ON CONFLICT (run_id, name, value) DO NOTHING;

-- name: record_outcomes: record a batch over several runs ($1 runs, $2 their epochs, $3 each row's place in $1 from 1, $4 … columns)
-- The share lock makes closing a run wait for batches under way, and a batch see that the run was closed. Every
-- statement takes its locks in the order of the keys, so that two of them cannot lock each other out.
WITH open_runs AS (
    SELECT r.run_id, r.epoch, asked.place
    FROM unnest($1::uuid[], $2::integer[]) WITH ORDINALITY AS asked (run_id, epoch, place)
    JOIN run_records AS r ON r.run_id = asked.run_id AND r.epoch = asked.epoch
    WHERE NOT r.is_frozen
    ORDER BY r.run_id
    FOR SHARE OF r
), written AS (
    INSERT INTO outcomes AS stored (
        run_id, sample, rollout, task_index, shard, epoch, attempt, status, failure_class, failure_message,
        answer_text, finish_reason, choices, prediction, scores, prompt_tokens, completion_tokens,
        cached_tokens, reasoning_tokens, total_seconds, queue_seconds, first_token_seconds
    )
    SELECT
        open_runs.run_id, sample, rollout, task_index, shard, open_runs.epoch, attempt, status, failure_class,
        failure_message, answer_text, finish_reason, choices::jsonb, prediction, scores::jsonb, prompt_tokens,
        completion_tokens, cached_tokens, reasoning_tokens, total_seconds, queue_seconds, first_token_seconds
    FROM unnest(
        $3::integer[], $4::bigint[], $5::integer[], $6::smallint[], $7::integer[], $8::integer[],
        $9::smallint[], $10::smallint[], $11::text[], $12::text[], $13::text[], $14::text[], $15::text[],
        $16::text[], $17::bigint[], $18::bigint[], $19::bigint[], $20::bigint[], $21::double precision[],
        $22::double precision[], $23::double precision[]
    ) AS incoming (
        place, sample, rollout, task_index, shard, attempt, status, failure_class, failure_message,
        answer_text, finish_reason, choices, prediction, scores, prompt_tokens, completion_tokens,
        cached_tokens, reasoning_tokens, total_seconds, queue_seconds, first_token_seconds
    )
    JOIN open_runs USING (place)
    ORDER BY open_runs.run_id, sample, rollout
    ON CONFLICT (run_id, sample, rollout) DO UPDATE SET
        shard = EXCLUDED.shard,
        epoch = EXCLUDED.epoch,
        attempt = EXCLUDED.attempt,
        status = EXCLUDED.status,
        failure_class = EXCLUDED.failure_class,
        failure_message = EXCLUDED.failure_message,
        answer_text = EXCLUDED.answer_text,
        finish_reason = EXCLUDED.finish_reason,
        choices = EXCLUDED.choices,
        prediction = EXCLUDED.prediction,
        scores = EXCLUDED.scores,
        prompt_tokens = EXCLUDED.prompt_tokens,
        completion_tokens = EXCLUDED.completion_tokens,
        cached_tokens = EXCLUDED.cached_tokens,
        reasoning_tokens = EXCLUDED.reasoning_tokens,
        total_seconds = EXCLUDED.total_seconds,
        queue_seconds = EXCLUDED.queue_seconds,
        first_token_seconds = EXCLUDED.first_token_seconds,
        recorded_at = EXCLUDED.recorded_at
    WHERE stored.failure_class > 0
        AND (EXCLUDED.epoch, EXCLUDED.attempt) > (stored.epoch, stored.attempt)
    RETURNING
        new.run_id, new.task_index, new.shard, new.failure_class, new.status,
        old.shard AS old_shard, old.failure_class AS old_failure_class,
        coalesce(old.epoch = new.epoch, false) AS was_counted
), changes AS (
    SELECT run_id, task_index, shard, failure_class, 1 AS recorded, (status = 2)::integer AS unparsed
    FROM written
    UNION ALL
    SELECT run_id, task_index, old_shard, old_failure_class, -1, 0
    FROM written
    WHERE was_counted
), counted_shards AS (
    INSERT INTO shard_counts AS counted (run_id, shard, recorded)
    SELECT run_id, shard, sum(recorded) FROM changes GROUP BY run_id, shard ORDER BY run_id, shard
    ON CONFLICT (run_id, shard) DO UPDATE SET recorded = counted.recorded + EXCLUDED.recorded
), counted_tasks AS (
    INSERT INTO task_counts AS counted (run_id, task_index, failure_class, recorded, unparsed)
    SELECT run_id, task_index, failure_class, sum(recorded), sum(unparsed)
    FROM changes
    GROUP BY run_id, task_index, failure_class
    ORDER BY run_id, task_index, failure_class
    ON CONFLICT (run_id, task_index, failure_class) DO UPDATE SET
        recorded = counted.recorded + EXCLUDED.recorded,
        unparsed = counted.unparsed + EXCLUDED.unparsed
)
SELECT count(*) AS written FROM written;

-- name: list_missing: sample numbers of a rollout without a final outcome in the epoch ($1 run, $2 epoch, $3 rollout, $4 from, $5 to, exclusive)
SELECT asked.sample
FROM run_tasks AS t
CROSS JOIN LATERAL generate_series(
    greatest(t.first_sample, $4::bigint), least(t.first_sample + t.sample_count, $5::bigint) - 1
) AS asked (sample)
WHERE t.run_id = $1::uuid
    AND asked.sample NOT IN (
        SELECT o.sample
        FROM outcomes AS o
        WHERE o.run_id = $1::uuid
            AND o.sample >= $4::bigint
            AND o.sample < $5::bigint
            AND o.rollout = $3::integer
            AND (o.failure_class = 0 OR o.epoch = $2::integer)
    )
ORDER BY asked.sample;

-- name: list_outcomes: what counts in the present epoch, by sample and rollout ($1 run, $2 after sample, $3 after rollout, $4 before sample, $5 rows)
SELECT
    sample, rollout, task_index, shard, epoch, attempt, status, failure_class, failure_message, answer_text,
    finish_reason, choices, prediction, scores, prompt_tokens, completion_tokens, cached_tokens,
    reasoning_tokens, total_seconds, queue_seconds, first_token_seconds
FROM outcomes
WHERE run_id = $1::uuid
    AND (sample, rollout) > ($2::bigint, $3::integer)
    AND sample < $4::bigint
    AND (failure_class = 0 OR epoch = (SELECT r.epoch FROM run_records AS r WHERE r.run_id = $1::uuid))
ORDER BY sample, rollout
LIMIT $5::integer;

-- name: list_outcomes_of_status: as list_outcomes, of one status ($1 run, $2 after sample, $3 after rollout, $4 before sample, $5 rows, $6 status)
SELECT
    sample, rollout, task_index, shard, epoch, attempt, status, failure_class, failure_message, answer_text,
    finish_reason, choices, prediction, scores, prompt_tokens, completion_tokens, cached_tokens,
    reasoning_tokens, total_seconds, queue_seconds, first_token_seconds
FROM outcomes
WHERE run_id = $1::uuid
    AND status = $6::smallint
    AND (sample, rollout) > ($2::bigint, $3::integer)
    AND sample < $4::bigint
    AND (failure_class = 0 OR epoch = (SELECT r.epoch FROM run_records AS r WHERE r.run_id = $1::uuid))
ORDER BY sample, rollout
LIMIT $5::integer;

-- name: read_scores: what the answers to some samples scored ($1 run, $2 first sample, $3 end, exclusive)
SELECT sample, rollout, scores
FROM outcomes
WHERE run_id = $1::uuid AND sample >= $2::bigint AND sample < $3::bigint AND failure_class = 0
ORDER BY sample, rollout;

-- name: read_costs: tokens and times over all answers ($1 run)
SELECT
    coalesce(sum(prompt_tokens), 0)::bigint AS prompt_tokens,
    coalesce(sum(completion_tokens), 0)::bigint AS completion_tokens,
    coalesce(sum(cached_tokens), 0)::bigint AS cached_tokens,
    coalesce(sum(reasoning_tokens), 0)::bigint AS reasoning_tokens,
    coalesce(avg(total_seconds), 0) AS total_seconds,
    avg(queue_seconds) AS queue_seconds,
    avg(first_token_seconds) AS first_token_seconds
FROM outcomes
WHERE run_id = $1::uuid AND failure_class = 0;

-- name: count_recorded: final outcomes of a run in its present epoch ($1 run)
SELECT coalesce(sum(recorded), 0)::bigint AS recorded FROM task_counts WHERE run_id = $1::uuid;
