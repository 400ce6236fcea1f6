-- name: list_outcome_keys: Return keys of outcomes in their order, also of those that count no more ($1 run, $2 after sample, $3 after rollout, $4 before sample, $5 rows)
SELECT sample, rollout
FROM outcomes
WHERE run_id = $1 AND (sample, rollout) > ($2, $3) AND sample < $4
ORDER BY sample, rollout
LIMIT $5::integer;

-- name: list_golden_keys: Return keys of golden answers in their order ($1 run, $2 after sample, $3 after rollout, $4 before sample, $5 rows)
SELECT sample, rollout
FROM golden_answers
WHERE run_id = $1 AND (sample, rollout) > ($2, $3) AND sample < $4
ORDER BY sample, rollout
LIMIT $5::integer;

-- name: sort_outcomes: Return keys of outcomes in the order of a value, with the value ($1 run, $2 first sample, $3 end, exclusive, $4 sample, score, length or time, $5 1, or -1 for the largest first, $6 to $8 value, sample and rollout that they come after, $9 rows, $10 status or null, $11 failure class or null, $12 metric of each task, $13 least score, $14 most, $15 least characters, $16 most, $17 whether golden, $18 whether marked as wrong)
-- No index: each would make every recorded outcome cost more, for a list that is seldom looked at. All outcomes of the range are
-- read, and the first rows of the order are kept. Each OFFSET 0 keeps the planner from writing an expression out wherever its
-- value is used: it would be evaluated once for each.
SELECT sample, rollout, value
FROM (
    SELECT
        sample, rollout, $5 * CASE $4
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
                    WHEN $4 = 'score' OR $13::double precision IS NOT NULL OR $14::double precision IS NOT NULL
                        THEN scores -> ($12::text[])[task_index + 1]
                END AS scored,
                CASE
                    WHEN $4 <> 'length' AND $15::integer IS NULL AND $16::integer IS NULL THEN NULL
                    WHEN is_answered(status, failure_class) THEN char_length(shown_text(answer_text, prediction))
                END AS characters,
                CASE WHEN status <> 'failed' AND NOT is_reused THEN total_seconds END AS seconds
            FROM current_outcomes AS o
            WHERE run_id = $1 AND sample >= $2 AND sample < $3
                AND ($10::outcome_status IS NULL OR status = $10)
                AND ($11::failure_class IS NULL OR failure_class = $11)
                AND (NOT $17 OR EXISTS (
                    SELECT FROM golden_answers AS g WHERE g.run_id = $1 AND g.sample = o.sample AND g.rollout = o.rollout
                ))
                AND (NOT $18 OR EXISTS (
                    SELECT FROM wrong_answers AS w WHERE w.run_id = $1 AND w.sample = o.sample AND w.rollout = o.rollout
                ))
            OFFSET 0
        ) AS read
        OFFSET 0
    ) AS known
    WHERE (
            ($13 IS NULL AND $14 IS NULL)
            OR score BETWEEN coalesce($13, '-infinity') AND coalesce($14, 'infinity')
        )
        AND (
            ($15 IS NULL AND $16 IS NULL)
            OR characters BETWEEN coalesce($15, 0) AND coalesce($16, 2147483647)
        )
    OFFSET 0
) AS ranked
-- Outcomes without the value have a null here.
WHERE (value, sample, rollout) > ($6, $7, $8)
ORDER BY value, sample, rollout
LIMIT $9::integer;

-- name: list_wrong_keys: Return keys of answers that are marked as wrong in their order ($1 run, $2 after sample, $3 after rollout, $4 before sample, $5 rows)
SELECT sample, rollout
FROM wrong_answers
WHERE run_id = $1 AND (sample, rollout) > ($2, $3) AND sample < $4
ORDER BY sample, rollout
LIMIT $5::integer;

-- name: match_outcomes: Return which of some outcomes match, and how many were looked at until so many bytes were read ($1 run, $2 samples, $3 rollouts, $4 bytes, $5 status or null, $6 part of the row's id, $7 part of prompt or answer, $8 metric of each task, $9 least score, $10 most, $11 least characters, $12 most, $13 whether golden, $14 failure class or null, $15 whether marked as wrong)
SELECT
    coalesce(array_agg(ordinal - 1 ORDER BY ordinal) FILTER (WHERE is_match), '{}') AS indexes,
    count(is_match) AS judged
FROM (
    SELECT
        ordinal,
        CASE WHEN bytes_before < $4 THEN coalesce(
            (status <> 'failed' OR epoch = (SELECT r.epoch FROM run_records AS r WHERE r.run_id = $1))
            AND ($5::outcome_status IS NULL OR status = $5)
            AND ($14::failure_class IS NULL OR failure_class = $14)
            AND (
                ($9::double precision IS NULL AND $10::double precision IS NULL)
                OR score BETWEEN coalesce($9, '-infinity') AND coalesce($10, 'infinity')
            )
            AND (
                ($11::integer IS NULL AND $12::integer IS NULL)
                OR (is_answered AND char_length(answer) BETWEEN coalesce($11, 0) AND coalesce($12, 2147483647))
            )
            AND (NOT $13 OR (
                SELECT true
                FROM golden_answers AS g
                WHERE g.run_id = $1 AND g.sample = weighed.sample AND g.rollout = weighed.rollout
            ))
            AND (NOT $15 OR (
                SELECT true
                FROM wrong_answers AS w
                WHERE w.run_id = $1 AND w.sample = weighed.sample AND w.rollout = weighed.rollout
            ))
            AND ($6 = '' OR has_part(row_name(row_id, doc_id), $6))
            AND (
                $7 = ''
                OR has_part(answer, $7)
                OR has_part(prompt_text, $7)
                OR EXISTS (
                    SELECT FROM jsonb_array_elements(prompt_messages) AS turn WHERE has_part(turn ->> 1, $7)
                )
                OR body_has_part(body_json, $7)
            ),
            false
        ) END AS is_match
    FROM (
        SELECT
            asked.ordinal, asked.sample, asked.rollout, o.status, o.failure_class, o.epoch,
            is_answered(o.status, o.failure_class) AS is_answered, s.row_id, s.doc_id,
            s.prompt_text, s.prompt_messages, o.body_json, shown_text(o.answer_text, o.prediction) AS answer,
            CASE
                WHEN jsonb_typeof(o.scores -> ($8::text[])[o.task_index + 1]) = 'number'
                    THEN (o.scores ->> ($8)[o.task_index + 1])::double precision
            END AS score,
            -- Without the row itself: the first one is judged however long it is.
            coalesce(sum(
                octet_length(o.answer_text) + CASE WHEN $7 = '' THEN 0 ELSE octet_length(o.body_json) END
                + coalesce(octet_length(s.prompt_text), 0) + coalesce(pg_column_size(s.prompt_messages), 0)
            ) OVER (ORDER BY asked.ordinal ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS bytes_before
        -- The limits keep the planner from joining whole tables: each key is looked up.
        FROM unnest($2::bigint[], $3::integer[]) WITH ORDINALITY AS asked (sample, rollout, ordinal)
        LEFT JOIN LATERAL (
            SELECT status, failure_class, epoch, task_index, answer_text, prediction, scores, body_json
            FROM outcomes
            WHERE run_id = $1 AND sample = asked.sample AND rollout = asked.rollout
            LIMIT 1
        ) AS o ON true
        LEFT JOIN LATERAL (
            SELECT sample_set_id, first_sample FROM run_tasks WHERE run_id = $1 AND task_index = o.task_index LIMIT 1
        ) AS t ON true
        LEFT JOIN LATERAL (
            SELECT row_id, doc_id, prompt_text, prompt_messages
            FROM samples
            WHERE sample_set_id = t.sample_set_id AND position = asked.sample - t.first_sample
            LIMIT 1
        -- Prompts are read only where a part of a text is looked for.
        ) AS s ON $6 <> '' OR $7 <> ''
    ) AS weighed
) AS judged;

-- name: weigh_outcomes: Return the approximate bytes of outcomes as they are listed ($1 run, $2 samples, $3 rollouts)
SELECT
    o.sample, o.rollout,
    octet_length(o.answer_text) + octet_length(o.body_json) + octet_length(o.failure_message)
        + octet_length(o.prediction) + octet_length(o.choices::text) AS bytes
FROM unnest($2::bigint[], $3::integer[]) AS asked (sample, rollout)
CROSS JOIN LATERAL (
    SELECT sample, rollout, answer_text, body_json, failure_message, prediction, choices
    FROM outcomes
    WHERE run_id = $1 AND sample = asked.sample AND rollout = asked.rollout
    LIMIT 1
) AS o;

-- name: list_whole_outcomes: Return some outcomes as whole rows, where they count in the present epoch ($1 run, $2 samples, $3 rollouts)
SELECT o.outcome
FROM unnest($2::bigint[], $3::integer[]) WITH ORDINALITY AS wanted (sample, rollout, ordinal)
CROSS JOIN LATERAL (
    SELECT current_outcomes AS outcome
    FROM current_outcomes
    WHERE run_id = $1 AND sample = wanted.sample AND rollout = wanted.rollout
    LIMIT 1
) AS o
ORDER BY wanted.ordinal;

-- name: list_brief_outcomes: Return some outcomes without the texts of answers, where they count in the present epoch ($1 run, $2 samples, $3 rollouts)
SELECT
    o.epoch, o.task_index, o.sample, o.rollout, o.shard, o.attempt, o.status, o.failure_class,
    left(o.failure_message, 500) AS failure_message, '' AS answer_text, o.finish_reason, '[]' AS choices,
    left(o.prediction, 500) AS prediction, o.scores, (o.usage).*, o.total_seconds, o.queue_seconds,
    o.first_token_seconds, o.between_tokens_seconds, '' AS body_json, o.is_reused, o.recorded_at
FROM unnest($2::bigint[], $3::integer[]) WITH ORDINALITY AS wanted (sample, rollout, ordinal)
CROSS JOIN LATERAL (
    SELECT
        stored.epoch, stored.task_index, stored.sample, stored.rollout, stored.shard, stored.attempt, stored.status,
        stored.failure_class, stored.failure_message, stored.finish_reason, stored.prediction, stored.scores, stored.usage,
        stored.total_seconds, stored.queue_seconds, stored.first_token_seconds, stored.between_tokens_seconds, stored.is_reused,
        stored.recorded_at
    FROM outcomes AS stored
    WHERE stored.run_id = $1 AND stored.sample = wanted.sample AND stored.rollout = wanted.rollout
        -- As the view current_outcomes, whose rows have no usage.
        AND (stored.status <> 'failed' OR stored.epoch = (SELECT epoch FROM run_records WHERE run_id = $1))
    LIMIT 1
) AS o
ORDER BY wanted.ordinal;

-- name: digest_answers: Return digests of the first answers to some samples, null where there is none, and the bodies of answers without a text ($1 run, $2 samples)
SELECT
    o.sample,
    CASE WHEN is_answered(o.status, o.failure_class) THEN md5(btrim(
        shown_text(o.answer_text, o.prediction), E' \t\n\r\v\f\u0085\u00a0\u2028\u2029\u3000'
    )) END AS digest,
    CASE WHEN o.answer_text = '' AND o.prediction = '' THEN o.body_json ELSE '' END AS body_json
FROM unnest($2::bigint[]) AS asked (sample)
CROSS JOIN LATERAL (
    SELECT sample, status, failure_class, epoch, answer_text, prediction, body_json
    FROM outcomes
    WHERE run_id = $1 AND sample = asked.sample AND rollout = 0
    LIMIT 1
) AS o
WHERE o.status <> 'failed' OR o.epoch = (SELECT r.epoch FROM run_records AS r WHERE r.run_id = $1);

-- name: list_same_rows: Return some samples of a set, and whether another set has the same at the same position ($1 set, $2 other set, $3 first position, $4 end, exclusive)
SELECT
    f.position, f.digest, o.position IS NOT NULL AS is_same_sample, coalesce(o.name = f.name, false) AS is_same_row
FROM (
    SELECT position, digest, row_name(row_id, doc_id) AS name
    FROM samples
    WHERE sample_set_id = $1 AND position >= $3 AND position < $4
    ORDER BY position
    LIMIT 1000000
) AS f
LEFT JOIN LATERAL (
    SELECT position, digest, row_name(row_id, doc_id) AS name
    FROM samples
    WHERE sample_set_id = $2 AND position = f.position
    LIMIT 1
) AS o ON o.digest = f.digest
ORDER BY f.position;

-- name: list_by_digest: Return the positions of some samples in a set ($1 set, $2 digests, $3 rows of each)
SELECT s.position, asked.digest, s.name
FROM unnest($2::bytea[]) AS asked (digest)
CROSS JOIN LATERAL (
    SELECT position, row_name(row_id, doc_id) AS name
    FROM samples
    WHERE sample_key(sample_set_id, digest) = sample_key($1, asked.digest)
    -- As the index samples_of_key is written: it gives the first rows in this order.
    ORDER BY sample_key(sample_set_id, digest), position::bigint
    LIMIT $3::integer
) AS s
ORDER BY s.position;

-- name: has_same_sample: Return whether two sets have any sample in common ($1 set, $2 other set)
-- Each is looked up: where nothing is in common, any join that the planner takes for a quick one compares all with all.
SELECT EXISTS (
    SELECT
    FROM samples AS f
    CROSS JOIN LATERAL (
        SELECT FROM samples AS s WHERE sample_key(s.sample_set_id, s.digest) = sample_key($2, f.digest) LIMIT 1
    ) AS same
    WHERE f.sample_set_id = $1
) AS is_found;

-- name: list_row_positions: Return the positions of rows of some ids, which are numbers where none were given ($1 set, $2 ids)
SELECT row_name(row_id, doc_id) AS row_id, position
FROM samples
WHERE sample_set_id = $1 AND row_name(row_id, doc_id) = ANY ($2);

-- name: list_marks: Return the marks of those of some answers that have one ($1 run, $2 samples, $3 rollouts)
SELECT w.sample, w.rollout, false AS is_golden
FROM unnest($2::bigint[], $3::integer[]) AS asked (sample, rollout)
JOIN wrong_answers AS w ON w.run_id = $1 AND w.sample = asked.sample AND w.rollout = asked.rollout
UNION ALL
SELECT g.sample, g.rollout, true
FROM unnest($2, $3) AS asked (sample, rollout)
JOIN golden_answers AS g ON g.run_id = $1 AND g.sample = asked.sample AND g.rollout = asked.rollout;

-- name: find_unmarkable: Return an outcome among some that does not exist, or failed ($1 run, $2 samples, $3 rollouts)
SELECT asked.sample, asked.rollout, coalesce(o.status = 'failed', false) AS is_failure
FROM unnest($2::bigint[], $3::integer[]) WITH ORDINALITY AS asked (sample, rollout, ordinal)
LEFT JOIN outcomes AS o ON o.run_id = $1 AND o.sample = asked.sample AND o.rollout = asked.rollout
WHERE o.status IS NULL OR o.status = 'failed'
ORDER BY asked.ordinal
LIMIT 1;

-- name: add_golden: Mark answers as golden and record who did; marks that exist stay as they are ($1 run, $2 samples, $3 rollouts, $4 user)
WITH added AS (
    INSERT INTO golden_answers (run_id, sample, rollout, username)
    -- In the order of the key: two that mark the same answers at once cannot deadlock.
    SELECT $1, sample, rollout, $4
    FROM unnest($2::bigint[], $3::integer[]) AS asked (sample, rollout)
    ORDER BY sample, rollout
    ON CONFLICT (run_id, sample, rollout) DO NOTHING
    RETURNING sample, rollout
)
INSERT INTO mark_changes (run_id, sample, rollout, is_golden, username)
SELECT $1, sample, rollout, true, $4
FROM added
ORDER BY sample, rollout;

-- name: add_wrong: Mark answers as wrong and record who did; marks that exist stay as they are ($1 run, $2 samples, $3 rollouts, $4 user)
WITH added AS (
    INSERT INTO wrong_answers (run_id, sample, rollout, username)
    SELECT $1, sample, rollout, $4
    FROM unnest($2::bigint[], $3::integer[]) AS asked (sample, rollout)
    ORDER BY sample, rollout
    ON CONFLICT (run_id, sample, rollout) DO NOTHING
    RETURNING sample, rollout
)
INSERT INTO mark_changes (run_id, sample, rollout, is_golden, is_marked_wrong, username)
SELECT $1, sample, rollout, false, true, $4
FROM added
ORDER BY sample, rollout;

-- name: clear_golden: Remove golden marks in whose place others are set ($1 run, $2 samples, $3 rollouts)
DELETE FROM golden_answers AS g
USING unnest($2::bigint[], $3::integer[]) AS asked (sample, rollout)
WHERE g.run_id = $1 AND g.sample = asked.sample AND g.rollout = asked.rollout;

-- name: clear_wrong: Remove marks as wrong in whose place others are set ($1 run, $2 samples, $3 rollouts)
DELETE FROM wrong_answers AS w
USING unnest($2::bigint[], $3::integer[]) AS asked (sample, rollout)
WHERE w.run_id = $1 AND w.sample = asked.sample AND w.rollout = asked.rollout;

-- name: delete_marks: Remove marks of answers and record who did ($1 run, $2 samples, $3 rollouts, $4 user)
WITH golden AS (
    DELETE FROM golden_answers AS g
    USING unnest($2::bigint[], $3::integer[]) AS asked (sample, rollout)
    WHERE g.run_id = $1 AND g.sample = asked.sample AND g.rollout = asked.rollout
    RETURNING g.sample, g.rollout
), wrong AS (
    DELETE FROM wrong_answers AS w
    USING unnest($2, $3) AS asked (sample, rollout)
    WHERE w.run_id = $1 AND w.sample = asked.sample AND w.rollout = asked.rollout
    RETURNING w.sample, w.rollout
)
INSERT INTO mark_changes (run_id, sample, rollout, is_golden, username)
SELECT $1, sample, rollout, false, $4
FROM (SELECT sample, rollout FROM golden UNION SELECT sample, rollout FROM wrong) AS unmarked
ORDER BY sample, rollout;

-- name: list_mark_changes: Return changes of the marks of a run, latest first ($1 run, $2 number that they are below or null, $3 rows)
SELECT change_id, sample, rollout, is_golden, is_marked_wrong, username, changed_at
FROM mark_changes
WHERE run_id = $1 AND ($2::bigint IS NULL OR change_id < $2)
ORDER BY change_id DESC
LIMIT $3::integer;

-- name: count_marks: Count the golden answers of a run, and those that are marked as wrong ($1 run)
SELECT
    (SELECT count(*) FROM golden_answers WHERE run_id = $1) AS golden,
    (SELECT count(*) FROM wrong_answers WHERE run_id = $1) AS wrong;

-- name: list_golden_answers: Return golden answers with their samples ($1 run, $2 after sample, $3 after rollout, $4 rows)
SELECT g.sample, g.rollout, g.marked_at, s.digest, row_name(s.row_id, s.doc_id) AS name
FROM golden_answers AS g
JOIN outcomes AS o ON o.run_id = g.run_id AND o.sample = g.sample AND o.rollout = g.rollout
JOIN run_tasks AS t ON t.run_id = g.run_id AND t.task_index = o.task_index
JOIN samples AS s ON s.sample_set_id = t.sample_set_id AND s.position = g.sample - t.first_sample
WHERE g.run_id = $1 AND (g.sample, g.rollout) > ($2, $3)
ORDER BY g.sample, g.rollout
LIMIT $4::integer;

-- name: export_outcomes: Return the outcomes of a task that count in the present epoch, beside their samples, up to some bytes ($1 run, $2 after sample, $3 after rollout, $4 set, $5 first sample, $6 end, exclusive, $7 rows, $8 with the rows that samples were made from, $9 bytes, nearly)
SELECT
    o.outcome, s.position, s.doc_id, s.digest, s.prompt_text, s.prompt_messages, s.choices, s.target_choice, s.target_texts,
    s.right_choices, s.wrong_texts, s.choice_texts, s.cluster, s.row_id, s.params_json,
    CASE WHEN $8 THEN s.doc_json ELSE '' END AS doc_json
FROM (
    SELECT
        current_outcomes AS outcome, sample, rollout,
        coalesce(sum(octet_length(answer_text) + octet_length(body_json)) OVER (
            ORDER BY sample, rollout ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ), 0) AS bytes_before
    FROM current_outcomes
    WHERE run_id = $1
        AND (sample, rollout) > ($2, $3)
        AND sample < $6
    ORDER BY sample, rollout
    LIMIT $7::integer
) AS o
JOIN samples AS s ON s.sample_set_id = $4 AND s.position = o.sample - $5
WHERE o.bytes_before < $9
ORDER BY o.sample, o.rollout;
