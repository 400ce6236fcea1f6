-- name: list_outcome_keys: Return keys of outcomes in their order, also of those that count no more
SELECT sample, rollout
FROM outcomes
WHERE run_id = :run_id AND (sample, rollout) > (:after_sample, :after_rollout) AND sample < :before_sample
ORDER BY sample, rollout
LIMIT :limit::integer;

-- name: list_marked_keys: Return keys of answers with a mark in their order
SELECT sample, rollout
FROM marks
WHERE run_id = :run_id AND mark = :mark AND (sample, rollout) > (:after_sample, :after_rollout) AND sample < :before_sample
ORDER BY sample, rollout
LIMIT :limit::integer;

-- name: sort_outcomes: Return keys of outcomes in the order of a value, with the value
-- No index: each would make every recorded outcome cost more, for a list that is seldom looked at. All outcomes of the range are
-- read, and the first rows of the order are kept. Each OFFSET 0 keeps the planner from writing an expression out wherever its
-- value is used: it would be evaluated once for each.
SELECT sample, rollout, value
FROM (
    SELECT
        sample, rollout, :sign * CASE :sort
            WHEN 'score' THEN score WHEN 'length' THEN characters WHEN 'time' THEN seconds ELSE sample
        END AS value
    FROM (
        SELECT
            sample, rollout, seconds, characters,
            CASE WHEN jsonb_typeof(scored) = 'number' THEN scored::double precision END AS score
        FROM (
            SELECT
                sample, rollout,
                CASE
                    WHEN :sort = 'score'
                        OR :min_score::double precision IS NOT NULL
                        OR :max_score::double precision IS NOT NULL
                        THEN scores -> (:metrics::text[])[task_index + 1]
                END AS scored,
                CASE
                    WHEN :sort <> 'length' AND :min_characters::integer IS NULL AND :max_characters::integer IS NULL THEN NULL
                    WHEN is_answered(status, failure_class) THEN char_length(shown_text(answer_text, prediction))
                END AS characters,
                CASE WHEN status <> 'failed' AND NOT is_reused THEN total_seconds END AS seconds
            FROM current_outcomes AS o
            WHERE run_id = :run_id AND sample >= :first_sample AND sample < :end_sample
                AND (:status::outcome_status IS NULL OR status = :status)
                AND (:failure_class::failure_class IS NULL OR failure_class = :failure_class)
                AND (:mark::answer_mark IS NULL OR EXISTS (
                    SELECT
                    FROM marks AS m
                    WHERE m.run_id = :run_id AND m.sample = o.sample AND m.rollout = o.rollout AND m.mark = :mark
                ))
            OFFSET 0
        ) AS read
        OFFSET 0
    ) AS known
    WHERE (
            (:min_score IS NULL AND :max_score IS NULL)
            OR score BETWEEN coalesce(:min_score, '-infinity') AND coalesce(:max_score, 'infinity')
        )
        AND (
            (:min_characters IS NULL AND :max_characters IS NULL)
            OR characters BETWEEN coalesce(:min_characters, 0) AND coalesce(:max_characters, 2147483647)
        )
    OFFSET 0
) AS ranked
-- Outcomes without the value have a null here.
WHERE (value, sample, rollout) > (:after_value, :after_sample, :after_rollout)
ORDER BY value, sample, rollout
LIMIT :limit::integer;

-- name: match_outcomes: Return which of some outcomes match, and how many were looked at until so many bytes were read
SELECT
    coalesce(array_agg(ordinal - 1 ORDER BY ordinal) FILTER (WHERE is_match), '{}') AS indexes,
    count(is_match) AS judged
FROM (
    SELECT
        ordinal,
        CASE WHEN bytes_before < :max_bytes THEN coalesce(
            (status <> 'failed' OR epoch = (SELECT r.epoch FROM run_records AS r WHERE r.run_id = :run_id))
            AND (:status::outcome_status IS NULL OR status = :status)
            AND (:failure_class::failure_class IS NULL OR failure_class = :failure_class)
            AND (
                (:min_score::double precision IS NULL AND :max_score::double precision IS NULL)
                OR score BETWEEN coalesce(:min_score, '-infinity') AND coalesce(:max_score, 'infinity')
            )
            AND (
                (:min_characters::integer IS NULL AND :max_characters::integer IS NULL)
                OR (
                    is_answered
                    AND char_length(answer) BETWEEN coalesce(:min_characters, 0) AND coalesce(:max_characters, 2147483647)
                )
            )
            AND (:mark::answer_mark IS NULL OR (
                SELECT m.mark = :mark
                FROM marks AS m
                WHERE m.run_id = :run_id AND m.sample = weighed.sample AND m.rollout = weighed.rollout
            ))
            AND (:row_id = '' OR has_part(row_name(row_id, doc_id), :row_id))
            AND (
                :text = ''
                OR has_part(answer, :text)
                OR (reasoning <> '' AND has_part(reasoning, :text))
                OR has_part(prompt_text, :text)
                OR EXISTS (
                    SELECT FROM jsonb_array_elements(prompt_messages) AS turn WHERE has_part(turn ->> 1, :text)
                )
                OR body_has_part(body_json, :text)
            ),
            false
        ) END AS is_match
    FROM (
        SELECT
            asked.ordinal, asked.sample, asked.rollout, o.status, o.failure_class, o.epoch,
            is_answered(o.status, o.failure_class) AS is_answered, s.row_id, s.doc_id,
            s.prompt_text, s.prompt_messages, o.body_json, o.reasoning, shown_text(o.answer_text, o.prediction) AS answer,
            CASE
                WHEN jsonb_typeof(o.scores -> (:metrics::text[])[o.task_index + 1]) = 'number'
                    THEN (o.scores ->> (:metrics)[o.task_index + 1])::double precision
            END AS score,
            -- Without the row itself: the first one is judged however long it is.
            coalesce(sum(
                octet_length(o.answer_text)
                + CASE WHEN :text = '' THEN 0 ELSE octet_length(o.reasoning) + octet_length(o.body_json) END
                + coalesce(octet_length(s.prompt_text), 0) + coalesce(pg_column_size(s.prompt_messages), 0)
            ) OVER (ORDER BY asked.ordinal ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS bytes_before
        -- The limits keep the planner from joining whole tables: each key is looked up.
        FROM unnest(:samples::bigint[], :rollouts::integer[]) WITH ORDINALITY AS asked (sample, rollout, ordinal)
        LEFT JOIN LATERAL (
            SELECT status, failure_class, epoch, task_index, answer_text, reasoning, prediction, scores, body_json
            FROM outcomes
            WHERE run_id = :run_id AND sample = asked.sample AND rollout = asked.rollout
            LIMIT 1
        ) AS o ON true
        LEFT JOIN LATERAL (
            SELECT sample_set_id, first_sample FROM run_tasks WHERE run_id = :run_id AND task_index = o.task_index LIMIT 1
        ) AS t ON true
        LEFT JOIN LATERAL (
            SELECT row_id, doc_id, prompt_text, prompt_messages
            FROM samples
            WHERE sample_set_id = t.sample_set_id AND position = asked.sample - t.first_sample
            LIMIT 1
        -- Prompts are read only where a part of a text is looked for.
        ) AS s ON :row_id <> '' OR :text <> ''
    ) AS weighed
) AS judged;

-- name: weigh_outcomes: Return the approximate bytes of outcomes as they are listed
SELECT
    o.sample, o.rollout,
    octet_length(o.answer_text) + octet_length(o.reasoning) + octet_length(o.body_json) + octet_length(o.failure_message)
        + octet_length(o.prediction) + octet_length(o.choices::text) AS bytes
FROM unnest(:samples::bigint[], :rollouts::integer[]) AS asked (sample, rollout)
CROSS JOIN LATERAL (
    SELECT sample, rollout, answer_text, reasoning, body_json, failure_message, prediction, choices
    FROM outcomes
    WHERE run_id = :run_id AND sample = asked.sample AND rollout = asked.rollout
    LIMIT 1
) AS o;

-- name: list_whole_outcomes: Return some outcomes as whole rows, where they count in the present epoch
SELECT o.outcome
FROM unnest(:samples::bigint[], :rollouts::integer[]) WITH ORDINALITY AS wanted (sample, rollout, ordinal)
CROSS JOIN LATERAL (
    SELECT ROW(current_outcomes.*)::outcomes AS outcome
    FROM current_outcomes
    WHERE run_id = :run_id AND sample = wanted.sample AND rollout = wanted.rollout
    LIMIT 1
) AS o
ORDER BY wanted.ordinal;

-- name: list_brief_outcomes: Return some outcomes without the texts of answers, where they count in the present epoch
SELECT
    o.epoch, o.task_index, o.sample, o.rollout, o.shard, o.attempt, o.status, o.failure_class,
    left(o.failure_message, 500) AS failure_message, '' AS answer_text, '' AS reasoning, o.finish_reason, '[]' AS choices,
    left(o.prediction, 500) AS prediction, o.scores, o.prompt_tokens, o.completion_tokens, o.cached_tokens, o.reasoning_tokens,
    o.total_seconds, o.queue_seconds, o.first_token_seconds, o.between_tokens_seconds, '' AS body_json, o.is_reused,
    o.recorded_at
FROM unnest(:samples::bigint[], :rollouts::integer[]) WITH ORDINALITY AS wanted (sample, rollout, ordinal)
CROSS JOIN LATERAL (
    SELECT
        stored.epoch, stored.task_index, stored.sample, stored.rollout, stored.shard, stored.attempt, stored.status,
        stored.failure_class, stored.failure_message, stored.finish_reason, stored.prediction, stored.scores,
        stored.prompt_tokens, stored.completion_tokens, stored.cached_tokens, stored.reasoning_tokens, stored.total_seconds,
        stored.queue_seconds, stored.first_token_seconds, stored.between_tokens_seconds, stored.is_reused, stored.recorded_at
    FROM outcomes AS stored
    WHERE stored.run_id = :run_id AND stored.sample = wanted.sample AND stored.rollout = wanted.rollout
        -- As the view current_outcomes, whose rows come whole.
        AND (stored.status <> 'failed' OR stored.epoch = (SELECT epoch FROM run_records WHERE run_id = :run_id))
    LIMIT 1
) AS o
ORDER BY wanted.ordinal;

-- name: digest_answers: Return digests of the first answers to some samples, and the bodies of answers without a text
-- A digest is null where there is no answer. A text that may hold reasoning comes as a whole.
SELECT
    o.sample,
    CASE WHEN is_answered(o.status, o.failure_class) THEN md5(btrim(
        shown_text(o.answer_text, o.prediction), E' \t\n\r\v\f\u0085\u00a0\u2028\u2029\u3000'
    )) END AS digest,
    CASE WHEN o.answer_text = '' AND o.prediction = '' THEN o.body_json ELSE '' END AS body_json,
    CASE WHEN is_answered(o.status, o.failure_class) AND may_hold_reasoning(o.answer_text) THEN o.answer_text END AS marked_text,
    o.finish_reason, o.prediction
FROM unnest(:samples::bigint[]) AS asked (sample)
CROSS JOIN LATERAL (
    SELECT sample, status, failure_class, epoch, answer_text, prediction, body_json, finish_reason
    FROM outcomes
    WHERE run_id = :run_id AND sample = asked.sample AND rollout = 0
    LIMIT 1
) AS o
WHERE o.status <> 'failed' OR o.epoch = (SELECT r.epoch FROM run_records AS r WHERE r.run_id = :run_id);

-- name: list_same_rows: Return some samples of a set, and whether another set has the same at the same position
SELECT
    f.position, f.digest, o.position IS NOT NULL AS is_same_sample, coalesce(o.name = f.name, false) AS is_same_row
FROM (
    SELECT position, digest, row_name(row_id, doc_id) AS name
    FROM samples
    WHERE sample_set_id = :sample_set_id AND position >= :first_position AND position < :end_position
    ORDER BY position
    LIMIT 1000000
) AS f
LEFT JOIN LATERAL (
    SELECT position, digest, row_name(row_id, doc_id) AS name
    FROM samples
    WHERE sample_set_id = :other_id AND position = f.position
    LIMIT 1
) AS o ON o.digest = f.digest
ORDER BY f.position;

-- name: list_by_digest: Return the positions of some samples in a set
SELECT s.position, asked.digest, s.name
FROM unnest(:digests::bytea[]) AS asked (digest)
CROSS JOIN LATERAL (
    SELECT position, row_name(row_id, doc_id) AS name
    FROM samples
    WHERE sample_key(sample_set_id, digest) = sample_key(:sample_set_id, asked.digest)
    -- As the index samples_of_key is written: it gives the first rows in this order.
    ORDER BY sample_key(sample_set_id, digest), position::bigint
    LIMIT :max_of_each::integer
) AS s
ORDER BY s.position;

-- name: has_same_sample: Return whether two sets have any sample in common
-- Each is looked up: where nothing is in common, any join that the planner takes for a quick one compares all with all.
SELECT EXISTS (
    SELECT
    FROM samples AS f
    CROSS JOIN LATERAL (
        SELECT FROM samples AS s WHERE sample_key(s.sample_set_id, s.digest) = sample_key(:other_id, f.digest) LIMIT 1
    ) AS same
    WHERE f.sample_set_id = :sample_set_id
) AS is_found;

-- name: list_row_positions: Return the positions of rows of some ids, which are numbers where none were given
SELECT row_name(row_id, doc_id) AS row_id, position
FROM samples
WHERE sample_set_id = :sample_set_id AND row_name(row_id, doc_id) = ANY (:row_ids);

-- name: list_marks: Return the marks of those of some answers that have one
SELECT m.sample, m.rollout, m.mark
FROM unnest(:samples::bigint[], :rollouts::integer[]) AS asked (sample, rollout)
JOIN marks AS m ON m.run_id = :run_id AND m.sample = asked.sample AND m.rollout = asked.rollout;

-- name: find_unmarkable: Return an outcome among some that does not exist, or failed
SELECT asked.sample, asked.rollout, coalesce(o.status = 'failed', false) AS is_failure
FROM unnest(:samples::bigint[], :rollouts::integer[]) WITH ORDINALITY AS asked (sample, rollout, ordinal)
LEFT JOIN outcomes AS o ON o.run_id = :run_id AND o.sample = asked.sample AND o.rollout = asked.rollout
WHERE o.status IS NULL OR o.status = 'failed'
ORDER BY asked.ordinal
LIMIT 1;

-- name: set_marks: Mark answers and record who did; answers that have this mark stay as they are
WITH changed AS (
    INSERT INTO marks AS had (run_id, sample, rollout, mark, username)
    -- In the order of the key: two that mark the same answers at once cannot deadlock.
    SELECT :run_id, sample, rollout, :mark, :username
    FROM unnest(:samples::bigint[], :rollouts::integer[]) AS asked (sample, rollout)
    ORDER BY sample, rollout
    ON CONFLICT (run_id, sample, rollout) DO UPDATE SET
        mark = excluded.mark, username = excluded.username, marked_at = excluded.marked_at
    WHERE had.mark <> excluded.mark
    RETURNING sample, rollout
)
INSERT INTO mark_changes (run_id, sample, rollout, mark, username)
SELECT :run_id, sample, rollout, :mark, :username
FROM changed
ORDER BY sample, rollout;

-- name: delete_marks: Remove marks of answers and record who did
WITH deleted AS (
    DELETE FROM marks AS m
    USING unnest(:samples::bigint[], :rollouts::integer[]) AS asked (sample, rollout)
    WHERE m.run_id = :run_id AND m.sample = asked.sample AND m.rollout = asked.rollout
    RETURNING m.sample, m.rollout
)
INSERT INTO mark_changes (run_id, sample, rollout, username)
SELECT :run_id, sample, rollout, :username
FROM deleted
ORDER BY sample, rollout;

-- name: list_mark_changes: Return changes of the marks of a run, latest first
SELECT change_id, sample, rollout, mark, username, changed_at
FROM mark_changes
WHERE run_id = :run_id AND (:before_change_id::bigint IS NULL OR change_id < :before_change_id)
ORDER BY change_id DESC
LIMIT :limit::integer;

-- name: count_marks: Count the golden answers of a run, and those that are marked as wrong
SELECT count(*) FILTER (WHERE mark = 'golden') AS golden, count(*) FILTER (WHERE mark = 'wrong') AS wrong
FROM marks
WHERE run_id = :run_id;

-- name: list_golden_answers: Return golden answers with their samples
SELECT g.sample, g.rollout, g.marked_at, s.digest, row_name(s.row_id, s.doc_id) AS name
FROM marks AS g
JOIN outcomes AS o ON o.run_id = g.run_id AND o.sample = g.sample AND o.rollout = g.rollout
JOIN run_tasks AS t ON t.run_id = g.run_id AND t.task_index = o.task_index
JOIN samples AS s ON s.sample_set_id = t.sample_set_id AND s.position = g.sample - t.first_sample
WHERE g.run_id = :run_id AND g.mark = 'golden' AND (g.sample, g.rollout) > (:after_sample, :after_rollout)
ORDER BY g.sample, g.rollout
LIMIT :limit::integer;

-- name: list_verdicts: Return the verdicts of a judging run, each with the mark of the answer that it judges
SELECT judged.sample, judged.rollout, (o.scores ->> :metric)::double precision AS verdict, m.mark
FROM current_outcomes AS o
JOIN run_tasks AS t ON t.run_id = o.run_id AND t.task_index = o.task_index
CROSS JOIN LATERAL (
    -- The id of the row is SAMPLE.ROLLOUT of the judged answer. The limit keeps the planner from reading all samples.
    SELECT split_part(s.row_id, '.', 1)::bigint AS sample, split_part(s.row_id, '.', 2)::integer AS rollout
    FROM samples AS s
    WHERE s.sample_set_id = t.sample_set_id AND s.position = o.sample - t.first_sample
    LIMIT 1
) AS judged
LEFT JOIN marks AS m ON m.run_id = :judged_run_id AND m.sample = judged.sample AND m.rollout = judged.rollout
WHERE o.run_id = :run_id AND o.scores ->> :metric IS NOT NULL
ORDER BY o.sample, o.rollout;

-- name: export_outcomes: Return the outcomes of a task that count in the present epoch, beside their samples, up to some bytes
SELECT
    o.outcome, s.position, s.doc_id, s.digest, s.prompt_text, s.prompt_messages, s.choices, s.target_choice, s.target_texts,
    s.right_choices, s.wrong_texts, s.choice_texts, s.choice_ending, s.cluster, s.row_id, s.params_json,
    CASE WHEN :has_docs THEN s.doc_json ELSE '' END AS doc_json
FROM (
    SELECT
        ROW(current_outcomes.*)::outcomes AS outcome, sample, rollout,
        coalesce(sum(octet_length(answer_text) + octet_length(reasoning) + octet_length(body_json)) OVER (
            ORDER BY sample, rollout ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ), 0) AS bytes_before
    FROM current_outcomes
    WHERE run_id = :run_id
        AND (sample, rollout) > (:after_sample, :after_rollout)
        AND sample < :end_sample
    ORDER BY sample, rollout
    LIMIT :limit::integer
) AS o
JOIN samples AS s ON s.sample_set_id = :sample_set_id AND s.position = o.sample - :first_sample
WHERE o.bytes_before < :max_bytes
ORDER BY o.sample, o.rollout;
