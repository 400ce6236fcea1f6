-- All SQL of results. `-- name: purpose ($1 …)`, then the statement.

-- name: stage_sample_set: make the row of a set that is being staged, or note that it still is ($1 set)
INSERT INTO sample_sets (set_id) VALUES ($1::uuid) ON CONFLICT (set_id) DO UPDATE SET touched_at = now();

-- name: lock_sample_set: see whether a set is still staged; calls for the same set wait for each other ($1 set)
SELECT digest, same_as::text AS same_as FROM sample_sets WHERE set_id = $1::uuid FOR UPDATE;

-- name: unstage_samples: drop what a repeated chunk replaces ($1 set, $2 positions)
DELETE FROM samples WHERE set_id = $1::uuid AND position = ANY ($2::integer[]);

-- name: measure_samples: what is staged: how many, gaps, digest over the ordered digests, what shares a passage, and what names a row ($1 set)
SELECT
    count(*) AS staged,
    coalesce(max(position), -1) + 1 AS end_position,
    coalesce(min(position), 0) AS first_position,
    sha256(coalesce(string_agg(
        digest || CASE cluster WHEN '' THEN ''::bytea ELSE sha256(convert_to(cluster, 'UTF8')) END
            || CASE row_id WHEN '' THEN ''::bytea ELSE sha256(convert_to(row_id || chr(10) || doc_json, 'UTF8')) END,
        ''::bytea ORDER BY position
    ), ''::bytea)) AS digest
FROM samples
WHERE set_id = $1::uuid;

-- name: lock_digest: commits of equal sets wait for each other until their transactions end ($1 digest)
SELECT pg_advisory_xact_lock(hashtextextended(encode($1::bytea, 'hex'), 0));

-- name: touch_sample_set_of_digest: the committed set of a digest, which is not swept for a while ($1 digest)
UPDATE sample_sets SET touched_at = now() WHERE digest = $1::bytea RETURNING set_id::text AS set_id;

-- name: touch_sample_set: the digest of a committed set, which is not swept for a while ($1 set)
UPDATE sample_sets SET touched_at = now() WHERE set_id = $1::uuid AND digest IS NOT NULL RETURNING digest;

-- name: commit_sample_set: name a staged set by its digest ($1 set, $2 digest)
UPDATE sample_sets SET digest = $2::bytea, touched_at = now() WHERE set_id = $1::uuid;

-- name: alias_sample_set: remember which committed set a staged one equals ($1 staged set, $2 committed set)
UPDATE sample_sets SET same_as = $2::uuid WHERE set_id = $1::uuid;

-- name: drop_samples: drop all samples of a set ($1 set)
DELETE FROM samples WHERE set_id = $1::uuid;

-- name: hold_sample_set: whether a set can be read; it is not swept before this transaction is over ($1 set)
SELECT true AS is_committed FROM sample_sets WHERE set_id = $1::uuid AND digest IS NOT NULL FOR KEY SHARE;

-- name: sweep_sample_sets: drop staged leftovers and aliases ($1 last touched before)
WITH swept AS (
    DELETE FROM sample_sets WHERE digest IS NULL AND touched_at < $1::timestamptz RETURNING set_id
), dropped AS (
    INSERT INTO dropped_sample_sets (set_id) SELECT set_id FROM swept ON CONFLICT (set_id) DO NOTHING
)
SELECT count(*) AS swept FROM swept;

-- name: list_unused_sample_sets: committed sets that no run has ($1 last touched before, $2 rows)
SELECT s.set_id::text AS set_id
FROM sample_sets AS s
WHERE s.digest IS NOT NULL
    AND s.touched_at < $1::timestamptz
    AND NOT EXISTS (SELECT FROM run_tasks AS t WHERE t.set_id = s.set_id)
    AND NOT EXISTS (SELECT FROM sample_sets AS a WHERE a.same_as = s.set_id)
LIMIT $2::integer;

-- name: hold_untouched_sample_set: no run is opened with a set from now on; not where one is being opened ($1 set, $2 last touched before)
SELECT set_id
FROM sample_sets
WHERE set_id = $1::uuid AND digest IS NOT NULL AND touched_at < $2::timestamptz
FOR UPDATE SKIP LOCKED;

-- name: drop_unused_sample_set: drop a held set that no run has, with its baselines ($1 set)
WITH swept AS (
    DELETE FROM sample_sets AS s
    WHERE s.set_id = $1::uuid
        AND NOT EXISTS (SELECT FROM run_tasks AS t WHERE t.set_id = s.set_id)
        AND NOT EXISTS (SELECT FROM sample_sets AS a WHERE a.same_as = s.set_id)
    RETURNING s.set_id
)
INSERT INTO dropped_sample_sets (set_id)
SELECT set_id FROM swept
ON CONFLICT (set_id) DO UPDATE SET set_id = EXCLUDED.set_id
RETURNING set_id;

-- name: list_dropped_sample_sets: sets that are gone and whose samples may still be there ($1 rows)
SELECT set_id::text AS set_id FROM dropped_sample_sets LIMIT $1::integer;

-- name: delete_dropped_samples: some samples of a set that is gone; gives the last one ($1 set, $2 after position, $3 rows)
-- Not where the set is being staged again, under the same id.
WITH chunk AS (
    SELECT s.position
    FROM samples AS s
    WHERE s.set_id = $1::uuid
        AND s.position > $2::integer
        AND NOT EXISTS (SELECT FROM sample_sets AS kept WHERE kept.set_id = $1::uuid)
    ORDER BY s.position
    LIMIT $3::integer
), deleted AS (
    DELETE FROM samples AS s USING chunk WHERE s.set_id = $1::uuid AND s.position = chunk.position
)
SELECT max(position) AS position FROM chunk;

-- name: forget_dropped_sample_set: its samples are gone as well ($1 set)
DELETE FROM dropped_sample_sets WHERE set_id = $1::uuid;

-- name: read_samples: samples of a committed set by position ($1 set, $2 positions)
SELECT
    s.position, s.doc_id, s.digest, s.prompt_text, s.prompt_messages, s.choices, s.target_choice,
    s.target_texts, s.right_choices, s.wrong_texts, s.choice_texts, s.cluster, s.row_id, s.params_json
FROM samples AS s
WHERE s.set_id = $1::uuid
    AND s.position = ANY ($2::integer[])
    AND EXISTS (SELECT FROM sample_sets AS c WHERE c.set_id = $1::uuid AND c.digest IS NOT NULL);

-- name: read_asked_samples: samples of a committed set by position, as they are asked ($1 set, $2 positions)
SELECT s.position, s.doc_id, s.prompt_text, s.prompt_messages, s.choices, s.cluster, s.row_id, s.params_json
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
SELECT position, choices, target_choice, target_texts, right_choices, wrong_texts, choice_texts
FROM samples
WHERE set_id = $1::uuid AND position = ANY ($2::integer[]);

-- name: read_clusters: the samples of a set that share a passage ($1 set)
SELECT position, cluster FROM samples WHERE set_id = $1::uuid AND cluster <> '' ORDER BY position;

-- name: read_label_count: how many choices a sample of a set has, where all have as many ($1 set)
SELECT min(cardinality(choices)) AS labels
FROM samples
WHERE set_id = $1::uuid
HAVING min(cardinality(choices)) = max(cardinality(choices));

-- name: add_run_record: make the record of a run ($1 run, $2 epoch, $3 rollouts, $4 scoring method, $5 cut left, $6 suite, $7 its version, $8 model, $9 project, $10 user, $11 ordered at, $12 limit, $13 shots, $14 missing tasks, $15 groups, $16 price, $17 name of its data set)
INSERT INTO run_records (
    run_id, epoch, rollouts, scoring_method, is_truncated_left, suite, suite_version, model, project_id, username,
    created_at, row_limit, num_fewshot, missing_tasks, groups, price, dataset_name
)
VALUES (
    $1::uuid, $2::integer, $3::integer, $4::smallint, $5::boolean, $6::text, $7::integer, $8::text, $9::bigint,
    $10::text, $11::timestamptz, $12::integer, $13::integer, $14::text[], $15::jsonb, $16::jsonb, $17::text
)
ON CONFLICT (run_id) DO NOTHING
RETURNING run_id::text AS run_id;

-- name: add_run_task: one planned task ($1 run, $2 place, $3 name, $4 set, $5 first, $6 count, $7 scoring, $8 origin, $9 digest of how it asks or null)
INSERT INTO run_tasks
    (run_id, task_index, task, set_id, first_sample, sample_count, scoring, provenance, request_digest)
VALUES ($1::uuid, $2::smallint, $3::text, $4::uuid, $5::bigint, $6::integer, $7::jsonb, $8::jsonb, $9::bytea);

-- name: lock_run_record: epoch and state of a run; recorders wait until the transaction ends ($1 run)
SELECT epoch, is_frozen FROM run_records WHERE run_id = $1::uuid FOR UPDATE;

-- name: open_epoch: a later epoch takes outcomes again ($1 run, $2 epoch)
UPDATE run_records SET epoch = $2::integer, is_frozen = false, state = 0, closed_at = NULL WHERE run_id = $1::uuid;

-- name: uncount_failures: failures of the epochs before count as missing from now on ($1 run)
DELETE FROM task_counts WHERE run_id = $1::uuid AND failure_class > 0;

-- name: uncount_shards: shards of the epochs before are over ($1 run)
DELETE FROM shard_counts WHERE run_id = $1::uuid;

-- name: freeze_run: refuse outcomes from now on ($1 run, $2 final state)
UPDATE run_records SET is_frozen = true, state = $2::smallint, closed_at = now() WHERE run_id = $1::uuid;

-- name: read_run_record: the record of a run ($1 run)
SELECT
    epoch, is_frozen, rollouts, scoring_method, is_truncated_left, suite, suite_version, model, project_id, username,
    created_at, row_limit, num_fewshot, missing_tasks, groups, price, dataset_name, state, closed_at
FROM run_records
WHERE run_id = $1::uuid;

-- name: read_run_tasks: the planned tasks of a run in order ($1 run)
SELECT task, set_id::text AS set_id, first_sample, sample_count, scoring, provenance, request_digest
FROM run_tasks
WHERE run_id = $1::uuid
ORDER BY task_index;

-- name: delete_run_record: a run with its tasks, figures and comparisons; waits for recorders under way ($1 run)
DELETE FROM run_records WHERE run_id = $1::uuid;

-- name: delete_task_counts: counts of a run whose record is gone ($1 run)
DELETE FROM task_counts WHERE run_id = $1::uuid;

-- name: delete_shard_counts: counts of the shards of a run whose record is gone ($1 run)
DELETE FROM shard_counts WHERE run_id = $1::uuid;

-- name: delete_outcomes: some outcomes of a run whose record is gone; gives the last one ($1 run, $2 after sample, $3 after rollout, $4 rows)
WITH chunk AS (
    SELECT o.sample, o.rollout
    FROM outcomes AS o
    WHERE o.run_id = $1::uuid
        AND (o.sample, o.rollout) > ($2::bigint, $3::integer)
        AND NOT EXISTS (SELECT FROM run_records AS r WHERE r.run_id = $1::uuid)
    ORDER BY o.sample, o.rollout
    LIMIT $4::integer
), deleted AS (
    DELETE FROM outcomes AS o
    USING chunk
    WHERE o.run_id = $1::uuid AND o.sample = chunk.sample AND o.rollout = chunk.rollout
)
SELECT sample, rollout FROM chunk ORDER BY sample DESC, rollout DESC LIMIT 1;

-- name: add_summary: keep the figures of a frozen epoch; the first ones stay ($1 run, $2 epoch, $3 summary)
INSERT INTO run_summaries (run_id, epoch, summary)
VALUES ($1::uuid, $2::integer, $3::json)
ON CONFLICT (run_id, epoch) DO NOTHING;

-- name: read_summary: the figures kept for an epoch ($1 run, $2 epoch)
SELECT summary FROM run_summaries WHERE run_id = $1::uuid AND epoch = $2::integer;

-- name: read_task_counts: epoch, environment, and counts per task and failure class, where there are any ($1 runs)
SELECT
    r.run_id::text AS run_id, r.epoch, said.environment, c.task_index, c.failure_class, c.recorded, c.unparsed,
    c.prompt_tokens, c.completion_tokens, c.cached_tokens, c.reasoning_tokens
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
        cached_tokens, reasoning_tokens, total_seconds, queue_seconds, first_token_seconds,
        between_tokens_seconds, body_json
    )
    SELECT
        open_runs.run_id, sample, rollout, task_index, shard, open_runs.epoch, attempt, status, failure_class,
        failure_message, answer_text, finish_reason, choices::jsonb, prediction, scores::jsonb, prompt_tokens,
        completion_tokens, cached_tokens, reasoning_tokens, total_seconds, queue_seconds, first_token_seconds,
        between_tokens_seconds, body_json
    FROM unnest(
        $3::integer[], $4::bigint[], $5::integer[], $6::smallint[], $7::integer[], $8::integer[],
        $9::smallint[], $10::smallint[], $11::text[], $12::text[], $13::text[], $14::text[], $15::text[],
        $16::text[], $17::bigint[], $18::bigint[], $19::bigint[], $20::bigint[], $21::double precision[],
        $22::double precision[], $23::double precision[], $24::double precision[], $25::text[]
    ) AS incoming (
        place, sample, rollout, task_index, shard, attempt, status, failure_class, failure_message,
        answer_text, finish_reason, choices, prediction, scores, prompt_tokens, completion_tokens,
        cached_tokens, reasoning_tokens, total_seconds, queue_seconds, first_token_seconds,
        between_tokens_seconds, body_json
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
        between_tokens_seconds = EXCLUDED.between_tokens_seconds,
        body_json = EXCLUDED.body_json,
        recorded_at = EXCLUDED.recorded_at
    WHERE stored.failure_class > 0
        AND (EXCLUDED.epoch, EXCLUDED.attempt) > (stored.epoch, stored.attempt)
    RETURNING
        new.run_id, new.task_index, new.shard, new.failure_class, new.status, new.prompt_tokens,
        new.completion_tokens, new.cached_tokens, new.reasoning_tokens,
        old.shard AS old_shard, old.failure_class AS old_failure_class, old.prompt_tokens AS old_prompt_tokens,
        old.completion_tokens AS old_completion_tokens, old.cached_tokens AS old_cached_tokens,
        old.reasoning_tokens AS old_reasoning_tokens,
        coalesce(old.epoch = new.epoch, false) AS was_counted
), changes AS (
    SELECT
        run_id, task_index, shard, failure_class, 1 AS recorded, (status = 2)::integer AS unparsed,
        prompt_tokens, completion_tokens, cached_tokens, reasoning_tokens
    FROM written
    UNION ALL
    SELECT
        run_id, task_index, old_shard, old_failure_class, -1, 0,
        -old_prompt_tokens, -old_completion_tokens, -old_cached_tokens, -old_reasoning_tokens
    FROM written
    WHERE was_counted
), counted_shards AS (
    INSERT INTO shard_counts AS counted (run_id, shard, recorded)
    SELECT run_id, shard, sum(recorded) FROM changes GROUP BY run_id, shard ORDER BY run_id, shard
    ON CONFLICT (run_id, shard) DO UPDATE SET recorded = counted.recorded + EXCLUDED.recorded
), counted_tasks AS (
    INSERT INTO task_counts AS counted (
        run_id, task_index, failure_class, recorded, unparsed, prompt_tokens, completion_tokens, cached_tokens,
        reasoning_tokens
    )
    SELECT
        run_id, task_index, failure_class, sum(recorded), sum(unparsed), sum(prompt_tokens),
        sum(completion_tokens), sum(cached_tokens), sum(reasoning_tokens)
    FROM changes
    GROUP BY run_id, task_index, failure_class
    ORDER BY run_id, task_index, failure_class
    ON CONFLICT (run_id, task_index, failure_class) DO UPDATE SET
        recorded = counted.recorded + EXCLUDED.recorded,
        unparsed = counted.unparsed + EXCLUDED.unparsed,
        prompt_tokens = counted.prompt_tokens + EXCLUDED.prompt_tokens,
        completion_tokens = counted.completion_tokens + EXCLUDED.completion_tokens,
        cached_tokens = counted.cached_tokens + EXCLUDED.cached_tokens,
        reasoning_tokens = counted.reasoning_tokens + EXCLUDED.reasoning_tokens
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
SELECT sample, rollout
FROM outcomes
WHERE run_id = $1::uuid
    AND (sample, rollout) > ($2::bigint, $3::integer)
    AND sample < $4::bigint
    AND (failure_class = 0 OR epoch = (SELECT r.epoch FROM run_records AS r WHERE r.run_id = $1::uuid))
ORDER BY sample, rollout
LIMIT $5::integer;

-- name: list_outcomes_of_status: as list_outcomes, of one status ($1 run, $2 after sample, $3 after rollout, $4 before sample, $5 rows, $6 status)
SELECT sample, rollout
FROM outcomes
WHERE run_id = $1::uuid
    AND status = $6::smallint
    AND (sample, rollout) > ($2::bigint, $3::integer)
    AND sample < $4::bigint
    AND (failure_class = 0 OR epoch = (SELECT r.epoch FROM run_records AS r WHERE r.run_id = $1::uuid))
ORDER BY sample, rollout
LIMIT $5::integer;

-- name: list_outcome_keys: outcomes in their order, also those that count no more ($1 run, $2 after sample, $3 after rollout, $4 before sample, $5 rows)
SELECT sample, rollout
FROM outcomes
WHERE run_id = $1::uuid AND (sample, rollout) > ($2::bigint, $3::integer) AND sample < $4::bigint
ORDER BY sample, rollout
LIMIT $5::integer;

-- name: list_golden_keys: golden answers in their order ($1 run, $2 after sample, $3 after rollout, $4 before sample, $5 rows)
SELECT sample, rollout
FROM golden_answers
WHERE run_id = $1::uuid AND (sample, rollout) > ($2::bigint, $3::integer) AND sample < $4::bigint
ORDER BY sample, rollout
LIMIT $5::integer;

-- name: match_outcomes: which of some outcomes match, and how many were looked at until so many bytes were read ($1 run, $2 samples, $3 rollouts, $4 bytes, $5 the class of answers without a score, $6 status or 0, $7 part of the row's id, $8 part of prompt or answer, $9 metric of each task, $10 least score, $11 most, $12 least characters, $13 most, $14 whether golden)
SELECT
    coalesce(array_agg(place - 1 ORDER BY place) FILTER (WHERE is_match), '{}') AS places,
    count(is_match) AS judged
FROM (
    SELECT
        place,
        CASE WHEN bytes_before < $4::bigint THEN coalesce(
            (failure_class = 0 OR epoch = (SELECT r.epoch FROM run_records AS r WHERE r.run_id = $1::uuid))
            AND ($6::smallint = 0 OR status = $6::smallint)
            AND (
                ($10::double precision IS NULL AND $11::double precision IS NULL)
                OR score BETWEEN coalesce($10::double precision, '-infinity') AND coalesce($11::double precision, 'infinity')
            )
            AND (
                ($12::integer IS NULL AND $13::integer IS NULL)
                OR (
                    failure_class IN (0, $5::smallint)
                    AND char_length(said) BETWEEN coalesce($12::integer, 0) AND coalesce($13::integer, 2147483647)
                )
            )
            AND (NOT $14::boolean OR (
                SELECT true
                FROM golden_answers AS g
                WHERE g.run_id = $1::uuid AND g.sample = weighed.sample AND g.rollout = weighed.rollout
            ))
            AND ($7::text = '' OR has_part(row_name(row_id, doc_id), $7::text))
            AND (
                $8::text = ''
                OR has_part(said, $8::text)
                OR has_part(prompt_text, $8::text)
                OR EXISTS (
                    SELECT FROM jsonb_array_elements(prompt_messages) AS turn WHERE has_part(turn ->> 1, $8::text)
                )
                OR body_has_part(body_json, $8::text)
            ),
            false
        ) END AS is_match
    FROM (
        SELECT
            asked.place, asked.sample, asked.rollout, o.status, o.failure_class, o.epoch, s.row_id, s.doc_id,
            s.prompt_text, s.prompt_messages, o.body_json,
            CASE WHEN o.answer_text = '' THEN o.prediction ELSE o.answer_text END AS said,
            CASE
                WHEN jsonb_typeof(o.scores -> ($9::text[])[o.task_index + 1]) = 'number'
                    THEN (o.scores ->> ($9::text[])[o.task_index + 1])::double precision
            END AS score,
            coalesce(sum(
                octet_length(o.answer_text) + CASE WHEN $8::text = '' THEN 0 ELSE octet_length(o.body_json) END
                + coalesce(octet_length(s.prompt_text), 0) + coalesce(pg_column_size(s.prompt_messages), 0)
            ) OVER (ORDER BY asked.place ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS bytes_before
        FROM unnest($2::bigint[], $3::integer[]) WITH ORDINALITY AS asked (sample, rollout, place)
        LEFT JOIN LATERAL (
            SELECT status, failure_class, epoch, task_index, answer_text, prediction, scores, body_json
            FROM outcomes
            WHERE run_id = $1::uuid AND sample = asked.sample AND rollout = asked.rollout
            LIMIT 1
        ) AS o ON true
        LEFT JOIN LATERAL (
            SELECT set_id, first_sample FROM run_tasks WHERE run_id = $1::uuid AND task_index = o.task_index LIMIT 1
        ) AS t ON true
        LEFT JOIN LATERAL (
            SELECT row_id, doc_id, prompt_text, prompt_messages
            FROM samples
            WHERE set_id = t.set_id AND position = asked.sample - t.first_sample
            LIMIT 1
        ) AS s ON $7::text <> '' OR $8::text <> ''
    ) AS weighed
) AS judged;

-- name: weigh_outcomes: bytes of outcomes as they are listed, nearly ($1 run, $2 samples, $3 rollouts)
SELECT
    o.sample, o.rollout,
    octet_length(o.answer_text) + octet_length(o.body_json) + octet_length(o.failure_message)
        + octet_length(o.prediction) + octet_length(o.choices::text) AS bytes
FROM unnest($2::bigint[], $3::integer[]) AS asked (sample, rollout)
CROSS JOIN LATERAL (
    SELECT sample, rollout, answer_text, body_json, failure_message, prediction, choices
    FROM outcomes
    WHERE run_id = $1::uuid AND sample = asked.sample AND rollout = asked.rollout
    LIMIT 1
) AS o;

-- name: read_outcomes: some outcomes, where they count in the present epoch ($1 run, $2 samples, $3 rollouts)
SELECT
    o.sample, o.rollout, o.task_index, o.shard, o.epoch, o.attempt, o.status, o.failure_class, o.failure_message,
    o.answer_text, o.finish_reason, o.choices, o.prediction, o.scores, o.prompt_tokens, o.completion_tokens,
    o.cached_tokens, o.reasoning_tokens, o.total_seconds, o.queue_seconds, o.first_token_seconds,
    o.between_tokens_seconds, o.is_reused, o.body_json
FROM unnest($2::bigint[], $3::integer[]) WITH ORDINALITY AS asked (sample, rollout, place)
CROSS JOIN LATERAL (
    SELECT
        sample, rollout, task_index, shard, epoch, attempt, status, failure_class, failure_message, answer_text,
        finish_reason, choices, prediction, scores, prompt_tokens, completion_tokens, cached_tokens,
        reasoning_tokens, total_seconds, queue_seconds, first_token_seconds, between_tokens_seconds, is_reused,
        body_json
    FROM outcomes
    WHERE run_id = $1::uuid AND sample = asked.sample AND rollout = asked.rollout
    LIMIT 1
) AS o
WHERE o.failure_class = 0 OR o.epoch = (SELECT r.epoch FROM run_records AS r WHERE r.run_id = $1::uuid)
ORDER BY asked.place;

-- name: digest_answers: digests of what was first said to some samples, null where nothing was, and the bodies of answers without a text ($1 run, $2 samples, $3 the class of answers without a score)
SELECT
    o.sample,
    CASE WHEN o.failure_class IN (0, $3::smallint) THEN md5(btrim(
        CASE WHEN o.answer_text = '' THEN o.prediction ELSE o.answer_text END,
        E' \t\n\r\v\f\u0085\u00a0\u2028\u2029\u3000'
    )) END AS digest,
    CASE WHEN o.answer_text = '' AND o.prediction = '' THEN o.body_json ELSE '' END AS body_json
FROM unnest($2::bigint[]) AS asked (sample)
CROSS JOIN LATERAL (
    SELECT sample, failure_class, epoch, answer_text, prediction, body_json
    FROM outcomes
    WHERE run_id = $1::uuid AND sample = asked.sample AND rollout = 0
    LIMIT 1
) AS o
WHERE o.failure_class = 0 OR o.epoch = (SELECT r.epoch FROM run_records AS r WHERE r.run_id = $1::uuid);

-- name: list_same_rows: some samples of a set, and whether another set has the same at the same position ($1 set, $2 other set, $3 first position, $4 end, exclusive)
SELECT
    f.position, f.digest, o.position IS NOT NULL AS is_same_sample, coalesce(o.name = f.name, false) AS is_same_row
FROM (
    SELECT position, digest, row_name(row_id, doc_id) AS name
    FROM samples
    WHERE set_id = $1::uuid AND position >= $3::integer AND position < $4::integer
    ORDER BY position
    LIMIT 1000000
) AS f
LEFT JOIN LATERAL (
    SELECT position, digest, row_name(row_id, doc_id) AS name
    FROM samples
    WHERE set_id = $2::uuid AND position = f.position
    LIMIT 1
) AS o ON o.digest = f.digest
ORDER BY f.position;

-- name: list_samples_of_digests: where a set has some samples ($1 set, $2 digests, $3 rows of each)
SELECT s.position, asked.digest, s.name
FROM unnest($2::bytea[]) AS asked (digest)
CROSS JOIN LATERAL (
    SELECT position, row_name(row_id, doc_id) AS name
    FROM samples
    WHERE sample_key(set_id, digest) = sample_key($1::uuid, asked.digest)
    ORDER BY sample_key(set_id, digest), position::bigint
    LIMIT $3::integer
) AS s
ORDER BY s.position;

-- name: has_same_sample: whether two sets have any sample in common ($1 set, $2 other set)
-- Each is looked up: where nothing is in common, any join that the planner takes for a quick one compares all with all.
SELECT EXISTS (
    SELECT
    FROM samples AS f
    CROSS JOIN LATERAL (
        SELECT FROM samples AS s WHERE sample_key(s.set_id, s.digest) = sample_key($2::uuid, f.digest) LIMIT 1
    ) AS same
    WHERE f.set_id = $1::uuid
) AS is_found;

-- name: find_rows: where a set has rows of some ids, which are numbers where none were given ($1 set, $2 ids)
SELECT row_name(row_id, doc_id) AS row_id, position
FROM samples
WHERE set_id = $1::uuid AND row_name(row_id, doc_id) = ANY ($2::text[]);

-- name: find_golden: which of some answers are golden ($1 run, $2 samples, $3 rollouts)
SELECT g.sample, g.rollout
FROM unnest($2::bigint[], $3::integer[]) AS asked (sample, rollout)
JOIN golden_answers AS g ON g.run_id = $1::uuid AND g.sample = asked.sample AND g.rollout = asked.rollout;

-- name: find_unmarkable: an outcome among some that is not there, or failed ($1 run, $2 samples, $3 rollouts)
SELECT asked.sample, asked.rollout, coalesce(o.failure_class > 0, false) AS is_failure
FROM unnest($2::bigint[], $3::integer[]) WITH ORDINALITY AS asked (sample, rollout, place)
LEFT JOIN outcomes AS o ON o.run_id = $1::uuid AND o.sample = asked.sample AND o.rollout = asked.rollout
WHERE o.failure_class IS NULL OR o.failure_class > 0
ORDER BY asked.place
LIMIT 1;

-- name: add_golden: mark answers; those that are marked stay as they are ($1 run, $2 samples, $3 rollouts, $4 user)
INSERT INTO golden_answers (run_id, sample, rollout, username)
SELECT $1::uuid, sample, rollout, $4::text
FROM unnest($2::bigint[], $3::integer[]) AS asked (sample, rollout)
ORDER BY sample, rollout
ON CONFLICT (run_id, sample, rollout) DO NOTHING;

-- name: drop_golden: take marks off ($1 run, $2 samples, $3 rollouts)
DELETE FROM golden_answers AS g
USING unnest($2::bigint[], $3::integer[]) AS asked (sample, rollout)
WHERE g.run_id = $1::uuid AND g.sample = asked.sample AND g.rollout = asked.rollout;

-- name: count_golden: golden answers of a run ($1 run)
SELECT count(*) AS golden FROM golden_answers WHERE run_id = $1::uuid;

-- name: list_golden_answers: golden answers with what they answer ($1 run, $2 after sample, $3 after rollout, $4 rows)
SELECT g.sample, g.rollout, g.marked_at, s.digest, row_name(s.row_id, s.doc_id) AS name
FROM golden_answers AS g
JOIN outcomes AS o ON o.run_id = g.run_id AND o.sample = g.sample AND o.rollout = g.rollout
JOIN run_tasks AS t ON t.run_id = g.run_id AND t.task_index = o.task_index
JOIN samples AS s ON s.set_id = t.set_id AND s.position = g.sample - t.first_sample
WHERE g.run_id = $1::uuid AND (g.sample, g.rollout) > ($2::bigint, $3::integer)
ORDER BY g.sample, g.rollout
LIMIT $4::integer;

-- name: read_scores: what the answers to some samples scored ($1 run, $2 first sample, $3 end, exclusive)
SELECT sample, rollout, scores
FROM outcomes
WHERE run_id = $1::uuid AND sample >= $2::bigint AND sample < $3::bigint AND failure_class = 0
ORDER BY sample, rollout;

-- name: summarize_timing: how each time of the answers is spread, where any answer tells it ($1 run)
-- In one pass over the rows. Between two answers percentiles are interpolated, as numpy does.
SELECT
    told.name, count(*) AS n, avg(told.value) AS mean, stddev_pop(told.value) AS std,
    percentile_cont(ARRAY[0.5, 0.9, 0.95, 0.99]) WITHIN GROUP (ORDER BY told.value) AS percentiles
FROM outcomes AS o
CROSS JOIN LATERAL (
    VALUES
        ('queue', o.queue_seconds),
        ('first_token', o.first_token_seconds),
        ('between_tokens', o.between_tokens_seconds),
        ('total', o.total_seconds),
        ('tokens_per_second', nullif(o.completion_tokens, 0) / nullif(o.total_seconds, 0))
) AS told (name, value)
WHERE o.run_id = $1::uuid AND o.failure_class = 0 AND NOT o.is_reused AND told.value IS NOT NULL
GROUP BY told.name;

-- name: find_same_requests: tasks of earlier runs that asked as a task does, latest first ($1 run, $2 task, $3, $4 names and values that its engine says of itself, $5 rows)
SELECT theirs.run_id::text AS run_id, theirs.task_index
FROM run_tasks AS mine
JOIN run_tasks AS theirs USING (request_digest, scoring)
JOIN run_records AS r ON r.run_id = theirs.run_id
WHERE mine.run_id = $1::uuid
    AND mine.task_index = $2::smallint
    AND theirs.run_id <> mine.run_id
    AND EXISTS (SELECT FROM run_environments AS said WHERE said.run_id = theirs.run_id)
    AND NOT EXISTS (
        SELECT
        FROM run_environments AS said
        JOIN unnest($3::text[], $4::text[]) AS asked (name, value) ON asked.name = said.name
        WHERE said.run_id = theirs.run_id AND said.value <> asked.value
    )
ORDER BY r.opened_at DESC, r.run_id
LIMIT $5::integer;

-- name: take_answers: copy answers that a task lacks from another run's task, by what the samples are ($1 run, $2 epoch, $3 task, $4 other run, $5 its task)
-- Shard -1: no shard of the run holds them, and none waits for them.
WITH open_run AS (
    SELECT run_id, epoch, rollouts
    FROM run_records
    WHERE run_id = $1::uuid AND epoch = $2::integer AND NOT is_frozen
    FOR SHARE
), pairs AS (
    SELECT DISTINCT ON (mine.first_sample + own.position)
        mine.first_sample + own.position AS sample,
        theirs.first_sample + other.position AS other_sample
    FROM run_tasks AS mine
    JOIN samples AS own ON own.set_id = mine.set_id
    JOIN run_tasks AS theirs ON theirs.run_id = $4::uuid AND theirs.task_index = $5::smallint
    JOIN samples AS other ON other.set_id = theirs.set_id AND other.digest = own.digest
    WHERE mine.run_id = $1::uuid AND mine.task_index = $3::smallint
    ORDER BY 1, 2
), taken AS (
    INSERT INTO outcomes (
        run_id, sample, rollout, task_index, shard, epoch, attempt, status, failure_class, failure_message,
        answer_text, finish_reason, choices, prediction, scores, prompt_tokens, completion_tokens,
        cached_tokens, reasoning_tokens, total_seconds, is_reused, body_json
    )
    SELECT
        open_run.run_id, pairs.sample, o.rollout, $3::smallint, -1, open_run.epoch, 0, o.status, 0, '',
        o.answer_text, o.finish_reason, o.choices, o.prediction, o.scores, o.prompt_tokens, o.completion_tokens,
        o.cached_tokens, o.reasoning_tokens, 0, true, o.body_json
    FROM pairs
    CROSS JOIN open_run
    JOIN outcomes AS o ON o.run_id = $4::uuid AND o.sample = pairs.other_sample
    WHERE o.failure_class = 0 AND o.rollout < open_run.rollouts
    ORDER BY pairs.sample, o.rollout
    ON CONFLICT (run_id, sample, rollout) DO NOTHING
    RETURNING run_id, task_index, status
), counted AS (
    INSERT INTO task_counts AS counted (run_id, task_index, failure_class, recorded, unparsed)
    SELECT run_id, task_index, 0, count(*), count(*) FILTER (WHERE status = 2)
    FROM taken
    GROUP BY run_id, task_index
    ON CONFLICT (run_id, task_index, failure_class) DO UPDATE SET
        recorded = counted.recorded + EXCLUDED.recorded,
        unparsed = counted.unparsed + EXCLUDED.unparsed
)
SELECT count(*) AS taken FROM taken;

-- name: count_reused: answers of a run that were taken from others ($1 run)
SELECT count(*) AS reused FROM outcomes WHERE run_id = $1::uuid AND is_reused;

-- name: count_recorded: final outcomes of a run in its present epoch ($1 run)
SELECT coalesce(sum(recorded), 0)::bigint AS recorded FROM task_counts WHERE run_id = $1::uuid;

-- name: export_outcomes: what counts in the present epoch of one task, beside its samples, up to some bytes ($1 run, $2 after sample, $3 after rollout, $4 set, $5 first sample, $6 end, exclusive, $7 rows, $8 with the rows that samples were made from, $9 bytes, nearly)
SELECT
    o.sample, o.rollout, o.task_index, o.shard, o.epoch, o.attempt, o.status, o.failure_class, o.failure_message,
    o.answer_text, o.finish_reason, o.choices, o.prediction, o.scores, o.prompt_tokens,
    o.completion_tokens, o.cached_tokens, o.reasoning_tokens, o.total_seconds, o.queue_seconds,
    o.first_token_seconds, o.between_tokens_seconds, o.is_reused, o.body_json, s.position, s.doc_id, s.digest, s.prompt_text,
    s.prompt_messages, s.choices AS sample_choices, s.target_choice, s.target_texts, s.right_choices, s.wrong_texts,
    s.choice_texts, s.cluster, s.row_id, s.params_json,
    CASE WHEN $8::boolean THEN s.doc_json ELSE '' END AS doc_json
FROM (
    SELECT
        outcomes.*,
        coalesce(sum(octet_length(answer_text) + octet_length(body_json)) OVER (
            ORDER BY sample, rollout ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ), 0) AS bytes_before
    FROM outcomes
    WHERE run_id = $1::uuid
        AND (sample, rollout) > ($2::bigint, $3::integer)
        AND sample < $6::bigint
        AND (failure_class = 0 OR epoch = (SELECT r.epoch FROM run_records AS r WHERE r.run_id = $1::uuid))
    ORDER BY sample, rollout
    LIMIT $7::integer
) AS o
JOIN samples AS s ON s.set_id = $4::uuid AND s.position = o.sample - $5::bigint
WHERE o.bytes_before < $9::bigint
ORDER BY o.sample, o.rollout;

-- name: export_outcome_lines: what counts in an epoch of one task, an object of JSON per line, up to some bytes ($1 run, $2 epoch, $3 set, $4 first sample, $5 after sample, $6 after rollout, $7 end, exclusive, $8 bytes, nearly, $9 words of statuses, $10 of failure classes, $11 the class of answers without a score, $12 task as JSON, $13 target delimiter)
-- JSON_SCALAR writes what to_json would, and looks up no type for each value.
SELECT
    convert_to(string_agg(concat(
        '{"task":', $12::text,
        ',"doc_id":', doc_id,
        ',"row_id":', JSON_SCALAR(row_id),
        ',"rollout":', rollout,
        ',"status":"', ($9::text[])[status],
        '","prompt":', JSON_SCALAR(prompt),
        ',"choices":', to_json(sample_choices),
        ',"target":', JSON_SCALAR(CASE
            WHEN target_choice >= 0 AND target_choice < cardinality(sample_choices)
                THEN without_prefix(sample_choices[target_choice + 1], $13::text)
            WHEN cardinality(right_choices) > 0 THEN (
                SELECT coalesce(string_agg(without_prefix(sample_choices[choice + 1], $13::text), ' | '), '')
                FROM unnest(right_choices) AS choice
                WHERE choice < cardinality(sample_choices)
            )
            ELSE array_to_string(target_texts, ' | ')
        END),
        ',"prediction":', JSON_SCALAR(prediction),
        ',"answer":', JSON_SCALAR(CASE WHEN is_answered THEN answer_text ELSE '' END),
        ',"finish_reason":', JSON_SCALAR(CASE WHEN is_answered THEN finish_reason ELSE '' END),
        ',"choice_logprobs":', CASE
            WHEN is_answered AND choices <> '[]' THEN jsonb_path_query_array(choices, '$[*][0]') ELSE '[]'
        END,
        ',"body":', CASE WHEN is_answered AND body_json <> '' AND body_json IS JSON OBJECT THEN one_line(body_json) ELSE 'null' END,
        ',"failure_class":"', ($10::text[])[failure_class],
        '","failure_message":', JSON_SCALAR(failure_message),
        ',"scores":', scores,
        ',"prompt_tokens":', prompt_tokens,
        ',"completion_tokens":', completion_tokens,
        ',"cached_tokens":', cached_tokens,
        ',"reasoning_tokens":', reasoning_tokens,
        ',"total_seconds":', CASE WHEN is_reused THEN 'null' ELSE json_number(total_seconds) END,
        ',"queue_seconds":', json_number(queue_seconds),
        ',"first_token_seconds":', json_number(first_token_seconds),
        ',"between_tokens_seconds":', json_number(between_tokens_seconds),
        ',"is_reused":', is_reused::text,
        ',"digest":"', encode(digest, 'hex'), E'"}\n'
    ), '' ORDER BY sample, rollout) FILTER (WHERE bytes_before < $8::bigint), 'UTF8') AS lines,
    max(ARRAY[sample, rollout]) FILTER (WHERE bytes_before < $8::bigint) AS last_key,
    count(*) FILTER (WHERE bytes_before >= $8::bigint) > 0 AS is_cut,
    (SELECT r.epoch FROM run_records AS r WHERE r.run_id = $1::uuid) AS epoch
FROM (
    SELECT
        o.sample, o.rollout, o.status, o.failure_class, o.failure_message, o.answer_text, o.finish_reason, o.choices,
        o.prediction, o.scores, o.prompt_tokens, o.completion_tokens, o.cached_tokens, o.reasoning_tokens,
        o.total_seconds, o.queue_seconds, o.first_token_seconds, o.between_tokens_seconds, o.is_reused, o.body_json,
        s.doc_id, s.row_id, s.digest, s.prompt, s.choices AS sample_choices, s.target_choice,
        s.target_texts, s.right_choices,
        o.failure_class IN (0, $11::smallint) AS is_answered,
        coalesce(sum(
            octet_length(o.answer_text) + octet_length(o.body_json) + octet_length(o.failure_message)
            + pg_column_size(o.choices) + octet_length(s.prompt) + pg_column_size(s.choices) + pg_column_size(s.target_texts)
        ) OVER (ORDER BY o.sample, o.rollout ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS bytes_before
    FROM (
        SELECT
            sample, rollout, status, failure_class, failure_message, answer_text, finish_reason, choices, prediction,
            scores, prompt_tokens, completion_tokens, cached_tokens, reasoning_tokens, total_seconds, queue_seconds,
            first_token_seconds, between_tokens_seconds, is_reused, body_json
        FROM outcomes
        WHERE run_id = $1::uuid
            AND (sample, rollout) > ($5::bigint, $6::integer)
            AND sample < $7::bigint
            AND (failure_class = 0 OR epoch = $2::integer)
        ORDER BY sample, rollout
        -- Never reached. Without it the planner spreads a few rows over processes, or reads all samples to join them.
        LIMIT 1000000
    ) AS o
    CROSS JOIN LATERAL (
        SELECT
            doc_id, row_id, digest, choices, target_choice, target_texts, right_choices,
            coalesce(prompt_text, CASE jsonb_array_length(prompt_messages)
                -- As below, without a query for each of the rows that nearly all are: it took a quarter of their time.
                WHEN 1 THEN concat(prompt_messages -> 0 ->> 0, ': ', prompt_messages -> 0 ->> 1)
                WHEN 2 THEN concat(
                    prompt_messages -> 0 ->> 0, ': ', prompt_messages -> 0 ->> 1, E'\n\n',
                    prompt_messages -> 1 ->> 0, ': ', prompt_messages -> 1 ->> 1
                )
                ELSE (
                    SELECT string_agg(concat(turn ->> 0, ': ', turn ->> 1), E'\n\n')
                    FROM jsonb_array_elements(prompt_messages) AS turn
                )
            END, '') AS prompt
        FROM samples
        WHERE set_id = $3::uuid AND position = o.sample - $4::bigint
        LIMIT 1
    ) AS s
) AS weighed;

-- name: export_batch_output: the answers to one task as lines of a batch's output file, up to some bytes ($1 run, $2 epoch, $3 set, $4 first sample, $5 after sample, $6 after rollout, $7 end, exclusive, $8 bytes, nearly, $9 the class of answers without a score, $10 beginning of ids, $11 model as JSON)
SELECT
    convert_to(string_agg(concat(
        '{"id":"batch_req_', id,
        '","custom_id":', JSON_SCALAR(custom_id),
        ',"response":{"status_code":200,"request_id":"', id,
        '","body":', CASE
            WHEN body_json <> '' AND body_json IS JSON OBJECT THEN one_line(body_json)
            ELSE concat(
                '{"id":"', CASE WHEN is_chat THEN 'chatcmpl-' ELSE 'cmpl-' END, id,
                '","object":"', CASE WHEN is_chat THEN 'chat.completion' ELSE 'text_completion' END,
                '","created":', floor(extract(epoch FROM recorded_at))::bigint,
                ',"model":', $11::text,
                ',"choices":[{"index":0,', CASE
                    WHEN is_chat
                        THEN concat('"message":{"role":"assistant","content":', JSON_SCALAR(answer_text), ',"refusal":null}')
                    ELSE concat('"text":', JSON_SCALAR(answer_text))
                END,
                ',"logprobs":null,"finish_reason":', coalesce(JSON_SCALAR(nullif(finish_reason, ''))::text, 'null'),
                '}],"usage":{"prompt_tokens":', prompt_tokens,
                ',"completion_tokens":', completion_tokens,
                ',"total_tokens":', prompt_tokens + completion_tokens,
                ',"prompt_tokens_details":{"cached_tokens":', cached_tokens,
                '},"completion_tokens_details":{"reasoning_tokens":', reasoning_tokens, '}}}'
            )
        END,
        E'},"error":null}\n'
    ), '' ORDER BY sample) FILTER (WHERE bytes_before < $8::bigint), 'UTF8') AS lines,
    max(ARRAY[sample, 0]) FILTER (WHERE bytes_before < $8::bigint) AS last_key,
    count(*) FILTER (WHERE bytes_before >= $8::bigint) > 0 AS is_cut,
    (SELECT r.epoch FROM run_records AS r WHERE r.run_id = $1::uuid) AS epoch
FROM (
    SELECT
        o.sample, o.answer_text, o.finish_reason, o.prompt_tokens, o.completion_tokens, o.cached_tokens,
        o.reasoning_tokens, o.recorded_at, o.body_json, s.prompt_text IS NULL AS is_chat,
        CASE WHEN s.row_id = '' THEN s.doc_id::text ELSE s.row_id END AS custom_id,
        $10::text || lpad(to_hex(o.sample), 12, '0') AS id,
        coalesce(sum(octet_length(o.answer_text) + octet_length(o.body_json))
            OVER (ORDER BY o.sample ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS bytes_before
    FROM (
        SELECT
            sample, answer_text, finish_reason, prompt_tokens, completion_tokens, cached_tokens, reasoning_tokens,
            recorded_at, body_json
        FROM outcomes
        WHERE run_id = $1::uuid
            AND (sample, rollout) > ($5::bigint, $6::integer)
            AND sample < $7::bigint
            AND rollout = 0
            AND (failure_class = 0 OR failure_class = $9::smallint AND epoch = $2::integer)
        ORDER BY sample
        LIMIT 1000000
    ) AS o
    CROSS JOIN LATERAL (
        SELECT doc_id, row_id, prompt_text
        FROM samples
        WHERE set_id = $3::uuid AND position = o.sample - $4::bigint
        LIMIT 1
    ) AS s
) AS weighed;

-- name: export_batch_errors: the samples of one task without an answer as lines of a batch's error file, up to some bytes ($1 run, $2 epoch, $3 set, $4 first sample, $5 after sample, $6 after rollout, $7 end, exclusive, $8 bytes, nearly, $9 the class of answers without a score, $10 beginning of ids, $11 words of failure classes, $12 code of samples without an outcome, as JSON, $13 why, as JSON)
SELECT
    convert_to(string_agg(concat(
        '{"id":"batch_req_', $10::text, lpad(to_hex(sample), 12, '0'),
        '","custom_id":', JSON_SCALAR(custom_id),
        ',"response":null,"error":', CASE
            WHEN failure_class IS NULL THEN concat('{"code":', $12::text, ',"message":', $13::text)
            ELSE concat('{"code":"', ($11::text[])[failure_class], '","message":', JSON_SCALAR(failure_message))
        END,
        E'}}\n'
    ), '' ORDER BY sample) FILTER (WHERE bytes_before < $8::bigint), 'UTF8') AS lines,
    max(ARRAY[sample, 0]) FILTER (WHERE bytes_before < $8::bigint) AS last_key,
    count(*) FILTER (WHERE bytes_before >= $8::bigint) > 0 AS is_cut,
    (SELECT r.epoch FROM run_records AS r WHERE r.run_id = $1::uuid) AS epoch
FROM (
    SELECT
        s.position + $4::bigint AS sample, o.failure_class, o.failure_message,
        CASE WHEN s.row_id = '' THEN s.doc_id::text ELSE s.row_id END AS custom_id,
        coalesce(sum(coalesce(octet_length(o.failure_message), 0) + octet_length($13::text))
            OVER (ORDER BY s.position ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS bytes_before
    FROM samples AS s
    LEFT JOIN LATERAL (
        SELECT failure_class, failure_message
        FROM outcomes
        WHERE run_id = $1::uuid
            AND sample = s.position + $4::bigint
            AND rollout = 0
            AND (failure_class = 0 OR epoch = $2::integer)
        LIMIT 1
    ) AS o ON true
    WHERE s.set_id = $3::uuid
        AND s.position >= $5::bigint - $4::bigint
        AND (s.position + $4::bigint, 0) > ($5::bigint, $6::integer)
        AND s.position < $7::bigint - $4::bigint
        AND (o.failure_class IS NULL OR o.failure_class NOT IN (0, $9::smallint))
) AS weighed;

-- name: read_export_end: where the file of a closed run ends ($1 run, $2 epoch, $3 form)
SELECT first_byte, sample, rollout
FROM export_marks
WHERE run_id = $1::uuid AND epoch = $2::integer AND form = $3::text AND is_end
LIMIT 1;

-- name: read_last_export_mark: from where the file of a closed run can be made on ($1 run, $2 epoch, $3 form, $4 at or before this byte, null for all)
SELECT first_byte, sample, rollout
FROM export_marks
WHERE run_id = $1::uuid
    AND epoch = $2::integer
    AND form = $3::text
    AND NOT is_end
    AND first_byte <= coalesce($4::bigint, 9223372036854775807)
ORDER BY first_byte DESC
LIMIT 1;

-- name: add_export_mark: keep a mark of a run that is still there ($1 run, $2 epoch, $3 form, $4 first byte, $5 sample, $6 rollout, $7 whether it is the end)
INSERT INTO export_marks (run_id, epoch, form, first_byte, sample, rollout, is_end)
SELECT $1::uuid, $2::integer, $3::text, $4::bigint, $5::bigint, $6::integer, $7::boolean
WHERE EXISTS (SELECT FROM run_records WHERE run_id = $1::uuid AND epoch = $2::integer AND is_frozen)
ON CONFLICT DO NOTHING;

-- name: hold_closed_epoch: keep a frozen epoch from being left before the transaction ends ($1 run, $2 epoch)
SELECT epoch FROM run_records WHERE run_id = $1::uuid AND epoch = $2::integer AND is_frozen FOR SHARE;

-- name: drop_earlier_close: a run is listed as it was closed last ($1 run, $2 epoch)
DELETE FROM closed_runs WHERE run_id = $1::uuid AND epoch < $2::integer;

-- name: add_closed_run: list a run that says of what suite and model it is, once per epoch ($1 run, $2 standing)
INSERT INTO closed_runs (run_id, epoch, suite, model, project_id, state, closed_at, standing)
SELECT run_id, epoch, suite, model, project_id, state, closed_at, $2::json
FROM run_records
WHERE run_id = $1::uuid AND suite <> '' AND model <> ''
ON CONFLICT (run_id) DO NOTHING
RETURNING run_id::text AS run_id;

-- name: add_history_entries: the histories of a closed run ($1 run)
INSERT INTO history_entries (suite, model, closed_at, run_id)
SELECT suites.suite, models.model, c.closed_at, c.run_id
FROM closed_runs AS c
CROSS JOIN LATERAL (VALUES (c.suite), ('')) AS suites (suite)
CROSS JOIN LATERAL (VALUES (c.model), ('')) AS models (model)
WHERE c.run_id = $1::uuid;

-- name: add_board_entries: the boards of a closed run, if it is complete ($1 run, $2 terms of each figure, $3 metrics, $4 figures)
INSERT INTO board_entries (suite, project, metric, model, terms, closed_at, run_id, mean)
SELECT c.suite, projects.project, figures.metric, c.model, figures.terms, c.closed_at, c.run_id, figures.mean
FROM closed_runs AS c
CROSS JOIN LATERAL (VALUES (c.project_id::text), ('')) AS projects (project)
CROSS JOIN unnest($2::text[], $3::text[], $4::double precision[]) AS figures (terms, metric, mean)
WHERE c.run_id = $1::uuid AND c.state = 4;

-- name: list_board_metrics: metrics of a board, one step in the key for each ($1 suite, $2 project, empty for all)
WITH RECURSIVE found AS (
    (
        SELECT metric
        FROM board_entries
        WHERE suite = $1::text AND project = $2::text
        ORDER BY metric
        LIMIT 1
    )
    UNION ALL
    SELECT next.metric
    FROM found
    CROSS JOIN LATERAL (
        SELECT metric
        FROM board_entries
        WHERE suite = $1::text AND project = $2::text AND metric > found.metric
        ORDER BY metric
        LIMIT 1
    ) AS next
)
SELECT metric FROM found;

-- name: list_latest_entries: the latest run of each model and terms, one step in the key for each ($1 suite, $2 project, empty for all, $3 metric)
WITH RECURSIVE latest AS (
    (
        SELECT model, terms, closed_at, run_id
        FROM board_entries
        WHERE suite = $1::text AND project = $2::text AND metric = $3::text
        ORDER BY model DESC, terms DESC, closed_at DESC, run_id DESC
        LIMIT 1
    )
    UNION ALL
    SELECT next.model, next.terms, next.closed_at, next.run_id
    FROM latest
    CROSS JOIN LATERAL (
        SELECT model, terms, closed_at, run_id
        FROM board_entries
        WHERE suite = $1::text AND project = $2::text AND metric = $3::text
            AND (model, terms) < (latest.model, latest.terms)
        ORDER BY model DESC, terms DESC, closed_at DESC, run_id DESC
        LIMIT 1
    ) AS next
)
SELECT
    c.run_id::text AS run_id, c.suite, c.model, c.project_id, c.state, c.closed_at, c.standing,
    true AS is_latest, previous.run_id::text AS previous_run_id
FROM latest
CROSS JOIN LATERAL (
    -- The limit keeps the planner from reading the whole table instead of a row for each.
    SELECT r.run_id, r.suite, r.model, r.project_id, r.state, r.closed_at, r.standing
    FROM closed_runs AS r
    WHERE r.run_id = latest.run_id
    LIMIT 1
) AS c
LEFT JOIN LATERAL (
    SELECT e.run_id
    FROM board_entries AS e
    WHERE e.suite = $1::text AND e.project = '' AND e.metric = $3::text
        AND e.model = latest.model AND e.terms = latest.terms
        AND (e.closed_at, e.run_id) < (latest.closed_at, latest.run_id)
    ORDER BY e.closed_at DESC, e.run_id DESC
    LIMIT 1
) AS previous ON true;

-- name: list_best_entries: the best run of each model and terms, as list_latest_entries ($1 suite, $2 project, empty for all, $3 metric)
WITH RECURSIVE best AS (
    (
        SELECT model, terms, closed_at, run_id
        FROM board_entries
        WHERE suite = $1::text AND project = $2::text AND metric = $3::text
        ORDER BY model DESC, terms DESC, mean DESC, closed_at DESC, run_id DESC
        LIMIT 1
    )
    UNION ALL
    SELECT next.model, next.terms, next.closed_at, next.run_id
    FROM best
    CROSS JOIN LATERAL (
        SELECT model, terms, closed_at, run_id
        FROM board_entries
        WHERE suite = $1::text AND project = $2::text AND metric = $3::text
            AND (model, terms) < (best.model, best.terms)
        ORDER BY model DESC, terms DESC, mean DESC, closed_at DESC, run_id DESC
        LIMIT 1
    ) AS next
)
SELECT
    c.run_id::text AS run_id, c.suite, c.model, c.project_id, c.state, c.closed_at, c.standing,
    NOT EXISTS (
        SELECT
        FROM board_entries AS e
        WHERE e.suite = $1::text AND e.project = $2::text AND e.metric = $3::text
            AND e.model = best.model AND e.terms = best.terms
            AND (e.closed_at, e.run_id) > (best.closed_at, best.run_id)
    ) AS is_latest,
    previous.run_id::text AS previous_run_id
FROM best
CROSS JOIN LATERAL (
    -- The limit keeps the planner from reading the whole table instead of a row for each.
    SELECT r.run_id, r.suite, r.model, r.project_id, r.state, r.closed_at, r.standing
    FROM closed_runs AS r
    WHERE r.run_id = best.run_id
    LIMIT 1
) AS c
LEFT JOIN LATERAL (
    SELECT e.run_id
    FROM board_entries AS e
    WHERE e.suite = $1::text AND e.project = '' AND e.metric = $3::text
        AND e.model = best.model AND e.terms = best.terms
        AND (e.closed_at, e.run_id) < (best.closed_at, best.run_id)
    ORDER BY e.closed_at DESC, e.run_id DESC
    LIMIT 1
) AS previous ON true;

-- name: read_newest_baselines: of the newest of some runs whose baselines are computed ($1 runs)
SELECT baselines
FROM closed_runs
WHERE run_id = ANY ($1::uuid[]) AND baselines IS NOT NULL
ORDER BY closed_at DESC, run_id DESC
LIMIT 1;

-- name: list_history: closed runs since a moment that come after a key, newest first ($1 suite, $2 model, each empty for all, $3 since, $4 closed before, $5 run, $6 rows)
SELECT
    c.run_id::text AS run_id, c.suite, c.model, c.project_id, c.state, c.closed_at, c.standing
FROM history_entries AS h
JOIN closed_runs AS c USING (run_id)
WHERE h.suite = $1::text AND h.model = $2::text
    AND h.closed_at >= $3::timestamptz
    AND (h.closed_at, h.run_id) < ($4::timestamptz, $5::uuid)
ORDER BY h.closed_at DESC, h.run_id DESC
LIMIT $6::integer;

-- name: count_history: closed runs since a moment; reads nothing but the key ($1 suite, $2 model, each empty for all, $3 since)
SELECT count(*) AS runs
FROM history_entries
WHERE suite = $1::text AND model = $2::text AND closed_at >= $3::timestamptz;

-- name: list_runs_without_baselines: complete runs whose baselines are to be computed, newest first ($1 rows)
SELECT run_id::text AS run_id
FROM closed_runs
WHERE baselines IS NULL AND state = 4
ORDER BY closed_at DESC
LIMIT $1::integer;

-- name: keep_run_baselines: the baselines of a run's suite ($1 run, $2 baselines)
UPDATE closed_runs SET baselines = $2::json WHERE run_id = $1::uuid;

-- name: read_task_baselines: the baselines of a sample set ($1 set, $2 digest of how it is scored)
SELECT baselines FROM task_baselines WHERE set_id = $1::uuid AND scoring_digest = $2::bytea;

-- name: add_task_baselines: keep the baselines of a sample set; the first ones stay ($1 set, $2 digest of how it is scored, $3 baselines)
INSERT INTO task_baselines (set_id, scoring_digest, baselines)
VALUES ($1::uuid, $2::bytea, $3::json)
ON CONFLICT (set_id, scoring_digest) DO NOTHING;

-- name: join_by_hash: within a transaction; a run closed just now has no statistics, and by any other join that trusts them 100,000 pairs take hours
SELECT
    set_config('plan_cache_mode', 'force_custom_plan', true),
    set_config('enable_nestloop', 'off', true),
    set_config('enable_mergejoin', 'off', true),
    set_config('enable_sort', 'off', true),
    set_config('work_mem', '64MB', true),
    set_config('jit', 'off', true);

-- name: read_pairs: what two runs scored on the samples both have, like pairs counted ($1 first run, $2 second, $3 … $8 places, first samples and sets of the tasks in both, $9 the task of each metric, $10 metrics; tasks and metrics are numbered from 1)
-- Equal sets are paired by position; others by digest, the n-th of equal samples with the n-th. A sample without an
-- answer counts as failed; scores are listed by rollout.
WITH asked AS (
    SELECT place, first_index, second_index, first_start, second_start, first_set, second_set
    FROM unnest($3::smallint[], $4::smallint[], $5::bigint[], $6::bigint[], $7::uuid[], $8::uuid[]) WITH ORDINALITY
        AS task (first_index, second_index, first_start, second_start, first_set, second_set, place)
), wanted AS (
    SELECT place, name, metric
    FROM unnest($9::bigint[], $10::text[]) WITH ORDINALITY AS one (place, name, metric)
), first_answers AS (
    SELECT
        asked.place, wanted.metric, o.sample - asked.first_start AS position,
        string_agg(o.scores ->> wanted.name, ',' ORDER BY o.rollout) AS scores,
        count(*) FILTER (WHERE o.status = 2) AS unparsed,
        bool_and(o.failure_class > 0) AS is_failed
    FROM outcomes AS o
    JOIN asked ON asked.first_index = o.task_index
    JOIN wanted USING (place)
    WHERE o.run_id = $1::uuid
        AND (o.failure_class = 0 OR o.epoch = (SELECT r.epoch FROM run_records AS r WHERE r.run_id = $1::uuid))
    GROUP BY asked.place, wanted.metric, o.sample - asked.first_start
), second_answers AS (
    SELECT
        asked.place, wanted.metric, o.sample - asked.second_start AS position,
        string_agg(o.scores ->> wanted.name, ',' ORDER BY o.rollout) AS scores,
        count(*) FILTER (WHERE o.status = 2) AS unparsed,
        bool_and(o.failure_class > 0) AS is_failed
    FROM outcomes AS o
    JOIN asked ON asked.second_index = o.task_index
    JOIN wanted USING (place)
    WHERE o.run_id = $2::uuid
        AND (o.failure_class = 0 OR o.epoch = (SELECT r.epoch FROM run_records AS r WHERE r.run_id = $2::uuid))
    GROUP BY asked.place, wanted.metric, o.sample - asked.second_start
), first_samples AS (
    SELECT
        asked.place, s.position, s.digest,
        row_number() OVER (PARTITION BY asked.place, s.digest ORDER BY s.position) AS nth
    FROM samples AS s
    JOIN asked ON asked.first_set = s.set_id AND asked.first_set <> asked.second_set
    WHERE s.set_id = ANY ($7::uuid[])
), second_samples AS (
    SELECT
        asked.place, s.position, s.digest,
        row_number() OVER (PARTITION BY asked.place, s.digest ORDER BY s.position) AS nth
    FROM samples AS s
    JOIN asked ON asked.second_set = s.set_id AND asked.first_set <> asked.second_set
    WHERE s.set_id = ANY ($8::uuid[])
), second_beside_first AS (
    SELECT s.place, s.metric, s.position, s.scores, s.unparsed, s.is_failed
    FROM second_answers AS s
    JOIN asked USING (place)
    WHERE asked.first_set = asked.second_set
    UNION ALL
    SELECT s.place, s.metric, first_samples.position, s.scores, s.unparsed, s.is_failed
    FROM second_answers AS s
    JOIN second_samples USING (place, position)
    JOIN first_samples USING (place, digest, nth)
), clustered AS (
    SELECT asked.place, s.position, s.cluster
    FROM samples AS s
    JOIN asked ON asked.first_set = s.set_id
    WHERE s.set_id = ANY ($7::uuid[]) AND s.cluster <> ''
)
SELECT
    f.place, f.metric, c.cluster, f.scores AS first_scores, s.scores AS second_scores,
    f.unparsed AS first_unparsed, s.unparsed AS second_unparsed,
    f.is_failed AS first_failed, s.is_failed AS second_failed, count(*) AS pairs
FROM first_answers AS f
JOIN second_beside_first AS s USING (place, metric, position)
LEFT JOIN clustered AS c USING (place, position)
GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9;

-- name: list_flips: samples whose scores differ, in the order of the first run ($1 first run, $2 second, $3, $4 their first samples of the task, $5, $6 the ends, exclusive, $7, $8 sets, $9 metric, $10 after sample, $11 rows)
WITH first_answers AS (
    SELECT
        sample - $3::bigint AS position,
        string_agg(scores ->> $9::text, ',' ORDER BY rollout) AS scores,
        (array_agg(prediction ORDER BY rollout))[1] AS prediction
    FROM outcomes
    WHERE run_id = $1::uuid AND sample > $10::bigint AND sample < $5::bigint AND failure_class = 0
    GROUP BY sample
), second_answers AS (
    SELECT
        sample - $4::bigint AS position,
        string_agg(scores ->> $9::text, ',' ORDER BY rollout) AS scores,
        (array_agg(prediction ORDER BY rollout))[1] AS prediction
    FROM outcomes
    WHERE run_id = $2::uuid AND sample >= $4::bigint AND sample < $6::bigint AND failure_class = 0
    GROUP BY sample
), first_samples AS (
    SELECT position, digest, row_number() OVER (PARTITION BY digest ORDER BY position) AS nth
    FROM samples
    WHERE set_id = $7::uuid AND $7::uuid <> $8::uuid
), second_samples AS (
    SELECT position, digest, row_number() OVER (PARTITION BY digest ORDER BY position) AS nth
    FROM samples
    WHERE set_id = $8::uuid AND $7::uuid <> $8::uuid
), second_beside_first AS (
    SELECT position, scores, prediction FROM second_answers WHERE $7::uuid = $8::uuid
    UNION ALL
    SELECT first_samples.position, s.scores, s.prediction
    FROM second_answers AS s
    JOIN second_samples USING (position)
    JOIN first_samples USING (digest, nth)
)
SELECT
    position, f.scores AS first_scores, s.scores AS second_scores, f.prediction AS first_prediction,
    s.prediction AS second_prediction
FROM first_answers AS f
JOIN second_beside_first AS s USING (position)
WHERE f.scores <> s.scores
ORDER BY position
LIMIT $11::integer;

-- name: find_latest_runs: the latest completed run of some models on a suite, one that can be ranked where there is one ($1 suite, $2 models)
SELECT DISTINCT ON (h.model) h.model, h.run_id::text AS run_id
FROM history_entries AS h
JOIN run_records AS r USING (run_id)
LEFT JOIN board_entries AS e
    ON e.run_id = h.run_id AND e.suite = h.suite AND e.project = '' AND e.metric = 'score' AND e.model = h.model
WHERE h.suite = $1::text AND h.model = ANY ($2::text[]) AND r.state = 4
ORDER BY h.model, (coalesce(e.terms, '') <> '') DESC, h.closed_at DESC, h.run_id DESC;

-- name: list_runs_to_compare: completed runs that were not compared since they were closed ($1 rows)
SELECT run_id::text AS run_id
FROM run_records
WHERE state = 4 AND compared_epoch < epoch
ORDER BY closed_at
LIMIT $1::integer;

-- name: find_previous_run: the complete run of a model on the same terms before some run ($1 run, $2 suite, $3 model, $4 terms)
SELECT e.run_id::text AS run_id
FROM board_entries AS e
WHERE e.suite = $2::text AND e.project = '' AND e.metric = 'score' AND e.model = $3::text AND e.terms = $4::text
    AND (e.closed_at, e.run_id) < (SELECT c.closed_at, c.run_id FROM closed_runs AS c WHERE c.run_id = $1::uuid)
ORDER BY e.closed_at DESC, e.run_id DESC
LIMIT 1;

-- name: keep_comparison: what two runs prove about each other; a repeated comparison replaces it ($1 first run, $2 second, $3, $4 their epochs, $5 … columns)
INSERT INTO run_comparisons (
    first_run_id, second_run_id, first_epoch, second_epoch, task, metric, difference, ci_low, ci_high, p_value,
    verdict, pairs, test
)
SELECT
    $1::uuid, $2::uuid, $3::integer, $4::integer, task, metric, difference, ci_low, ci_high, p_value, verdict, pairs,
    test
FROM unnest(
    $5::text[], $6::text[], $7::double precision[], $8::double precision[], $9::double precision[],
    $10::double precision[], $11::smallint[], $12::bigint[], $13::text[]
) AS one (task, metric, difference, ci_low, ci_high, p_value, verdict, pairs, test)
ON CONFLICT (first_run_id, second_run_id, task, metric) DO UPDATE SET
    first_epoch = EXCLUDED.first_epoch,
    second_epoch = EXCLUDED.second_epoch,
    difference = EXCLUDED.difference,
    ci_low = EXCLUDED.ci_low,
    ci_high = EXCLUDED.ci_high,
    p_value = EXCLUDED.p_value,
    verdict = EXCLUDED.verdict,
    pairs = EXCLUDED.pairs,
    test = EXCLUDED.test;

-- name: mark_compared: a run of an epoch was compared with the runs beside it ($1 run, $2 epoch)
UPDATE run_records SET compared_epoch = $2::integer WHERE run_id = $1::uuid AND compared_epoch < $2::integer;

-- name: read_p_values: of what is kept between any two of some runs, by their places in the list, in one row ($1 runs, $2 metric)
WITH asked AS (
    SELECT r.run_id, r.epoch, (listed.place - 1)::integer AS place
    FROM unnest($1::uuid[]) WITH ORDINALITY AS listed (run_id, place)
    JOIN run_records AS r USING (run_id)
)
SELECT
    coalesce(array_agg(first.place), '{}') AS first_places,
    coalesce(array_agg(second.place), '{}') AS second_places,
    coalesce(array_agg(c.p_value), '{}') AS p_values
FROM asked AS first
JOIN run_comparisons AS c ON c.first_run_id = first.run_id AND c.first_epoch = first.epoch
JOIN asked AS second ON c.second_run_id = second.run_id AND c.second_epoch = second.epoch
WHERE c.task = '' AND c.metric = $2::text;

-- name: read_comparisons: what is kept of the suite as a whole between any two of some runs ($1 runs, $2 metric)
SELECT
    c.first_run_id::text AS first_run_id, c.second_run_id::text AS second_run_id, c.difference, c.ci_low, c.ci_high,
    c.p_value, c.pairs, c.test
FROM run_comparisons AS c
WHERE c.first_run_id = ANY ($1::uuid[])
    AND c.second_run_id = ANY ($1::uuid[])
    AND c.task = ''
    AND c.metric = $2::text
    AND c.first_epoch = (SELECT r.epoch FROM run_records AS r WHERE r.run_id = c.first_run_id)
    AND c.second_epoch = (SELECT r.epoch FROM run_records AS r WHERE r.run_id = c.second_run_id);
