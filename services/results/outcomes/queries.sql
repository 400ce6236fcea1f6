-- name: delete_outcomes: Delete some outcomes of a run whose record is gone; returns the last one
WITH chunk AS (
    SELECT o.sample, o.rollout
    FROM outcomes AS o
    WHERE o.run_id = :run_id
        AND (o.sample, o.rollout) > (:after_sample, :after_rollout)
        AND NOT EXISTS (SELECT FROM run_records AS r WHERE r.run_id = :run_id)
    ORDER BY o.sample, o.rollout
    LIMIT :limit::integer
), deleted AS (
    DELETE FROM outcomes AS o
    USING chunk
    WHERE o.run_id = :run_id AND o.sample = chunk.sample AND o.rollout = chunk.rollout
)
-- Where the next call begins: dead rows before it need not be read again.
SELECT sample, rollout FROM chunk ORDER BY sample DESC, rollout DESC LIMIT 1;

-- name: record_outcomes: Store and count a batch of outcomes of several runs
-- The share lock makes freezing a run wait for batches under way, and a batch see that the run was frozen. Every statement
-- takes its locks in the order of the keys, so that two of them cannot lock each other out.
WITH open_runs AS (
    SELECT r.run_id, r.epoch
    FROM unnest(:run_ids::uuid[], :epochs::integer[]) AS wanted (run_id, epoch)
    JOIN run_records AS r ON r.run_id = wanted.run_id AND r.epoch = wanted.epoch
    WHERE NOT r.is_frozen
    ORDER BY r.run_id
    FOR SHARE OF r
), written AS (
    INSERT INTO outcomes AS stored
    SELECT incoming.*
    FROM unnest(:outcomes::outcomes[]) AS incoming
    JOIN open_runs USING (run_id, epoch)
    ORDER BY incoming.run_id, incoming.sample, incoming.rollout
    ON CONFLICT (run_id, sample, rollout) DO UPDATE SET
        -- All columns in their order: a test holds the list to the table.
        (
            run_id, sample, rollout, task_index, shard, epoch, attempt, status, failure_class, failure_message, answer_text,
            reasoning, finish_reason, choices, prediction, scores, prompt_tokens, completion_tokens, cached_tokens,
            reasoning_tokens, total_seconds, queue_seconds, first_token_seconds, between_tokens_seconds, body_json, is_reused,
            recorded_at
        ) = (
            -- A retry that brought no answer leaves the one that could not be scored, with the retry's shard, epoch and attempt.
            SELECT kept.*
            FROM jsonb_populate_record(
                CASE
                    WHEN stored.failure_class = 'scoring' AND excluded.failure_class <> 'scoring' THEN stored
                    ELSE excluded
                END,
                jsonb_build_object('shard', excluded.shard, 'epoch', excluded.epoch, 'attempt', excluded.attempt)
            ) AS kept
        )
    -- An answer counts more than one that could not be scored, and that more than none at all.
    WHERE stored.status = 'failed'
        AND (
            excluded.epoch, excluded.status <> 'failed', coalesce(excluded.failure_class = 'scoring', false), excluded.attempt
        ) > (stored.epoch, false, stored.failure_class = 'scoring', stored.attempt)
    RETURNING
        new.run_id, new.sample, new.rollout, new.task_index, new.shard, new.failure_class, new.status,
        new.prompt_tokens, new.completion_tokens, new.cached_tokens, new.reasoning_tokens,
        old.shard AS old_shard, old.failure_class AS old_failure_class, old.prompt_tokens AS old_prompt_tokens,
        old.completion_tokens AS old_completion_tokens, old.cached_tokens AS old_cached_tokens,
        old.reasoning_tokens AS old_reasoning_tokens,
        -- A failure of an earlier epoch is counted no more: its count was taken back when this epoch opened.
        coalesce(old.epoch = new.epoch, false) AS was_counted
), changes AS (
    SELECT
        run_id, task_index, shard, failure_class, 1 AS recorded, (status = 'unparsed')::integer AS unparsed,
        prompt_tokens, completion_tokens, cached_tokens, reasoning_tokens
    FROM written
    UNION ALL
    SELECT
        run_id, task_index, old_shard, old_failure_class, -1, 0,
        -old_prompt_tokens, -old_completion_tokens, -old_cached_tokens, -old_reasoning_tokens
    FROM written
    -- A row that was replaced is subtracted where it was counted, so counts equal rows at each commit.
    WHERE was_counted
), counted_shards AS (
    INSERT INTO shard_counts AS counted (run_id, shard, recorded)
    SELECT run_id, shard, sum(recorded) FROM changes GROUP BY run_id, shard ORDER BY run_id, shard
    ON CONFLICT (run_id, shard) DO UPDATE SET recorded = counted.recorded + excluded.recorded
), counted_tasks AS (
    INSERT INTO task_counts AS counted (
        run_id, task_index, failure_class, recorded, unparsed, prompt_tokens, completion_tokens, cached_tokens,
        reasoning_tokens
    )
    SELECT
        run_id, task_index, failure_class, sum(recorded), sum(unparsed), sum(prompt_tokens), sum(completion_tokens),
        sum(cached_tokens), sum(reasoning_tokens)
    FROM changes
    GROUP BY run_id, task_index, failure_class
    ORDER BY run_id, task_index, failure_class
    ON CONFLICT (run_id, task_index, failure_class) DO UPDATE SET
        recorded = counted.recorded + excluded.recorded,
        unparsed = counted.unparsed + excluded.unparsed,
        prompt_tokens = counted.prompt_tokens + excluded.prompt_tokens,
        completion_tokens = counted.completion_tokens + excluded.completion_tokens,
        cached_tokens = counted.cached_tokens + excluded.cached_tokens,
        reasoning_tokens = counted.reasoning_tokens + excluded.reasoning_tokens
), counted_gpus AS (
    INSERT INTO run_gpu_seconds AS counted (run_id, seconds)
    SELECT run_id, sum(used.seconds)
    FROM unnest(
        :gpu_run_ids::uuid[], :gpu_samples::bigint[], :gpu_rollouts::integer[], :gpu_seconds::double precision[]
    ) AS used (run_id, sample, rollout, seconds)
    JOIN written USING (run_id, sample, rollout)
    GROUP BY run_id
    ORDER BY run_id
    ON CONFLICT (run_id) DO UPDATE SET seconds = counted.seconds + excluded.seconds
)
SELECT count(*) AS written FROM written;

-- name: read_gpu_seconds: Return the GPU seconds of a run
SELECT seconds FROM run_gpu_seconds WHERE run_id = :run_id;

-- name: read_answering_seconds: Return the seconds from the first answered request of a run to its last outcome
-- A failure ends after its last try, and the time of its tries is no time of loading.
SELECT
    coalesce(
        extract(
            epoch FROM max(recorded_at)
            - min(recorded_at - make_interval(secs => total_seconds)) FILTER (WHERE status <> 'failed')
        ),
        0
    )::double precision AS seconds
FROM outcomes
WHERE run_id = :run_id AND NOT is_reused;

-- name: list_missing: Return sample numbers of a rollout without a final outcome in the epoch
SELECT wanted.sample
FROM run_tasks AS t
CROSS JOIN LATERAL generate_series(
    greatest(t.first_sample, :first_sample), least(t.first_sample + t.sample_count, :end_sample) - 1
) AS wanted (sample)
WHERE t.run_id = :run_id
    -- Keys are never null, so NOT IN is safe, and Postgres reads the window once into a hash for it.
    AND wanted.sample NOT IN (
        SELECT o.sample
        FROM outcomes AS o
        WHERE o.run_id = :run_id
            AND o.sample >= :first_sample
            AND o.sample < :end_sample
            AND o.rollout = :rollout
            AND (o.status <> 'failed' OR o.epoch = :epoch)
    )
ORDER BY wanted.sample;

-- name: list_outcomes: Return the outcomes that count in the present epoch, by sample and rollout
SELECT sample, rollout
FROM current_outcomes
WHERE run_id = :run_id
    AND (sample, rollout) > (:after_sample, :after_rollout)
    AND sample < :before_sample
ORDER BY sample, rollout
LIMIT :limit::integer;

-- name: list_outcomes_of_status: Return what list_outcomes does, of one status
SELECT sample, rollout
FROM current_outcomes
WHERE run_id = :run_id
    AND status = :status
    AND (sample, rollout) > (:after_sample, :after_rollout)
    AND sample < :before_sample
ORDER BY sample, rollout
LIMIT :limit::integer;

-- name: list_scores: Return the scores of the answers to some samples, a row of columns for each metric
-- The aggregates take the rows in the order of the common table.
WITH answers AS MATERIALIZED (
    SELECT sample, rollout, scores
    FROM outcomes
    WHERE run_id = :run_id AND sample >= :first_sample AND sample < :end_sample AND status <> 'failed'
    ORDER BY sample, rollout
)
SELECT wanted.metric, columns.samples, columns.rollouts, columns.firsts, columns.seconds
FROM unnest(:metrics::text[]) WITH ORDINALITY AS wanted (metric, ordinal)
CROSS JOIN LATERAL (
    SELECT
        -- Sample numbers are the same for all metrics, so only the first row carries them.
        CASE WHEN wanted.ordinal = 1 THEN array_agg(sample) END AS samples,
        CASE WHEN wanted.ordinal = 1 THEN array_agg(rollout) END AS rollouts,
        array_agg(CASE jsonb_typeof(score) WHEN 'number' THEN score WHEN 'array' THEN score -> 0 END::double precision) AS firsts,
        array_agg(CASE jsonb_typeof(score) WHEN 'array' THEN score -> 1 END::double precision) AS seconds
    FROM (SELECT sample, rollout, scores -> wanted.metric AS score FROM answers) AS scored
) AS columns
ORDER BY wanted.ordinal;

-- name: list_stored_scores: Return all that the answers to some samples score, by sample and rollout
SELECT sample, scores
FROM outcomes
WHERE run_id = :run_id AND sample >= :first_sample AND sample < :end_sample AND status <> 'failed'
ORDER BY sample, rollout;

-- name: read_rollouts: Return how often each sample of a run is answered
SELECT rollouts FROM run_records WHERE run_id = :run_id;

-- name: count_times: Count the times of summarize_timing by the logarithm of each
SELECT
    reported.name,
    -- Zero has no logarithm: it gets the lowest bucket that an integer can name.
    CASE WHEN reported.value > 0 THEN floor(ln(reported.value) / :width)::integer ELSE -2147483648 END AS bucket,
    count(*) AS n, sum(reported.value) AS total
FROM outcomes AS o
CROSS JOIN LATERAL reported_times(o) AS reported
WHERE o.run_id = :run_id AND o.sample >= :first_sample AND o.sample < :end_sample AND o.status <> 'failed' AND NOT o.is_reused
    AND reported.value IS NOT NULL
GROUP BY 1, 2;

-- name: summarize_timing: Return mean, deviation and percentiles of each time that answers report
-- In one pass over the rows. Between two answers percentiles are interpolated, as numpy does.
SELECT
    reported.name, count(*) AS n, avg(reported.value) AS mean, stddev_pop(reported.value) AS std,
    percentile_cont(ARRAY[0.5, 0.9, 0.95, 0.99]) WITHIN GROUP (ORDER BY reported.value) AS percentiles
FROM outcomes AS o
CROSS JOIN LATERAL reported_times(o) AS reported
WHERE o.run_id = :run_id AND o.status <> 'failed' AND NOT o.is_reused AND reported.value IS NOT NULL
GROUP BY reported.name;

-- name: list_same_requests: Return tasks of earlier runs that sent the same requests as a task, latest first
SELECT theirs.run_id::text AS run_id, theirs.task_index
FROM run_tasks AS mine
JOIN run_tasks AS theirs USING (request_digest, scoring)
JOIN run_records AS r ON r.run_id = theirs.run_id
WHERE mine.run_id = :run_id
    AND mine.task_index = :task_index
    AND theirs.run_id <> mine.run_id
    -- Answers of a declared project are reused in it alone.
    AND (
        NOT is_declared(r.project_id)
        OR r.project_id = (SELECT own.project_id FROM run_records AS own WHERE own.run_id = :run_id)
    )
    AND r.archive_phase IS NULL
    -- A run that reported no engine may have had any.
    AND EXISTS (SELECT FROM run_environments AS reported WHERE reported.run_id = theirs.run_id)
    AND NOT EXISTS (
        SELECT
        FROM run_environments AS reported
        JOIN unnest(:names::text[], :values::text[]) AS wanted (name, value) ON wanted.name = reported.name
        WHERE reported.run_id = theirs.run_id AND reported.value <> wanted.value
    )
ORDER BY r.opened_at DESC, r.run_id, theirs.task_index <> mine.task_index, theirs.task_index
LIMIT :limit::integer;

-- name: reuse_answers: Copy answers that a task lacks from another run's task, matched by the digest of their samples
-- The n-th of equal samples has the n-th answer. Where that one failed, or there are fewer, it has one for which this task has
-- no n-th sample: no answer is reused twice, and a repeated call reuses the same. Shard -1: no shard of the run contains them.
WITH open_run AS (
    SELECT run_id, epoch, rollouts
    FROM run_records
    WHERE run_id = :run_id AND epoch = :epoch AND NOT is_frozen
    FOR SHARE
), mine AS (
    SELECT sample_set_id, first_sample FROM run_tasks WHERE run_id = :run_id AND task_index = :task_index
), theirs AS (
    SELECT sample_set_id, first_sample, first_sample + sample_count AS end_sample
    FROM run_tasks
    WHERE run_id = :source_run_id AND task_index = :source_task_index
), wanted AS (
    SELECT
        (SELECT first_sample FROM mine) + s.position AS sample, r.rollout, s.digest,
        row_number() OVER (PARTITION BY s.digest, r.rollout ORDER BY s.position) AS nth
    FROM open_run
    CROSS JOIN generate_series(0, open_run.rollouts - 1) AS r (rollout)
    CROSS JOIN samples AS s
    -- Sets and ranges are looked up first: a join would read all samples and outcomes there are.
    WHERE s.sample_set_id = (SELECT sample_set_id FROM mine)
), given AS (
    SELECT o.sample, o.rollout, s.digest, s.nth
    FROM (
        SELECT position, digest, row_number() OVER (PARTITION BY digest ORDER BY position) AS nth
        FROM samples
        WHERE sample_set_id = (SELECT sample_set_id FROM theirs)
    ) AS s
    JOIN outcomes AS o ON o.sample = (SELECT first_sample FROM theirs) + s.position
    WHERE o.run_id = :source_run_id
        AND o.sample >= (SELECT first_sample FROM theirs)
        AND o.sample < (SELECT end_sample FROM theirs)
        AND o.status <> 'failed'
), beside AS (
    SELECT
        digest, rollout, wanted.sample, given.sample AS other_sample,
        row_number() OVER (PARTITION BY digest, rollout, wanted.sample IS NULL, given.sample IS NULL ORDER BY nth) AS ordinal
    FROM wanted
    -- FULL: both what lacks an answer and what is to spare are needed below.
    FULL JOIN given USING (digest, rollout, nth)
), pairs AS (
    SELECT sample, rollout, other_sample FROM beside WHERE sample IS NOT NULL AND other_sample IS NOT NULL
    UNION ALL
    SELECT lacking.sample, rollout, spare.other_sample
    FROM beside AS lacking
    JOIN beside AS spare USING (digest, rollout, ordinal)
    WHERE lacking.other_sample IS NULL AND spare.sample IS NULL
), taken AS (
    INSERT INTO outcomes (
        run_id, sample, rollout, task_index, shard, epoch, attempt, status, failure_message,
        answer_text, reasoning, finish_reason, choices, prediction, scores, prompt_tokens, completion_tokens,
        cached_tokens, reasoning_tokens, total_seconds, is_reused, body_json
    )
    SELECT
        open_run.run_id, pairs.sample, o.rollout, :task_index, -1, open_run.epoch, 0, o.status, '',
        o.answer_text, o.reasoning, o.finish_reason, o.choices, o.prediction, o.scores, o.prompt_tokens, o.completion_tokens,
        o.cached_tokens, o.reasoning_tokens, 0, true, o.body_json
    FROM pairs
    CROSS JOIN open_run
    JOIN outcomes AS o ON o.sample = pairs.other_sample AND o.rollout = pairs.rollout
    WHERE o.run_id = :source_run_id
        AND o.sample >= (SELECT first_sample FROM theirs)
        AND o.sample < (SELECT end_sample FROM theirs)
    ORDER BY pairs.sample, o.rollout
    ON CONFLICT (run_id, sample, rollout) DO NOTHING
    RETURNING run_id, task_index, status
), counted AS (
    INSERT INTO task_counts AS counted (run_id, task_index, recorded, unparsed)
    SELECT run_id, task_index, count(*), count(*) FILTER (WHERE status = 'unparsed')
    FROM taken
    GROUP BY run_id, task_index
    ON CONFLICT (run_id, task_index, failure_class) DO UPDATE SET
        recorded = counted.recorded + excluded.recorded,
        unparsed = counted.unparsed + excluded.unparsed
)
SELECT count(*) AS taken FROM taken;

-- name: count_reused: Count the answers of a run that were copied from others
SELECT count(*) AS reused FROM outcomes WHERE run_id = :run_id AND is_reused;

-- name: join_by_hash: Join by hashing only, for one transaction
-- A run closed just now has no statistics, and other joins of 100,000 pairs would take hours.
SELECT
    set_config('plan_cache_mode', 'force_custom_plan', true),
    set_config('enable_nestloop', 'off', true),
    set_config('enable_mergejoin', 'off', true),
    set_config('enable_sort', 'off', true),
    set_config('work_mem', '64MB', true),
    set_config('jit', 'off', true);
