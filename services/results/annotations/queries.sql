-- name: find_unannotated: Return the first answer in the random order that the caller has not annotated, nor so many people
SELECT o.sample, o.rollout
FROM current_outcomes AS o
LEFT JOIN (
    SELECT sample, rollout, count(*) AS raters, bool_or(username = :username) AS is_own
    FROM annotations
    WHERE run_id = :run_id AND question = :question
    GROUP BY sample, rollout
) AS done ON done.sample = o.sample AND done.rollout = o.rollout
WHERE o.run_id = :run_id AND o.status <> 'failed' AND coalesce(done.raters < :raters AND NOT done.is_own, true)
ORDER BY drawing_place(o.run_id, o.sample, o.rollout), o.sample, o.rollout
LIMIT 1;

-- name: find_disputed: Return the answer about which the judges of a question disagree most, of those left to annotate
SELECT o.sample, o.rollout
FROM current_outcomes AS o
LEFT JOIN (
    SELECT sample, rollout, count(*) AS raters, bool_or(username = :username) AS is_own
    FROM annotations
    WHERE run_id = :run_id AND question = :question
    GROUP BY sample, rollout
) AS done ON done.sample = o.sample AND done.rollout = o.rollout
LEFT JOIN (
    SELECT sample, rollout, stddev_pop(verdict) AS spread
    FROM (
        SELECT s.sample, s.rollout, (v.scores ->> 'verdict')::double precision AS verdict
        FROM run_tasks AS t
        JOIN current_outcomes AS v ON v.run_id = t.run_id AND v.task_index = t.task_index
        CROSS JOIN LATERAL (
            -- The id of the row is SAMPLE.ROLLOUT of the judged answer. The limit keeps the planner from reading all samples.
            SELECT split_part(row_id, '.', 1)::bigint AS sample, split_part(row_id, '.', 2)::integer AS rollout
            FROM samples
            WHERE sample_set_id = t.sample_set_id AND position = v.sample - t.first_sample
            LIMIT 1
        ) AS s
        WHERE t.run_id = ANY (:run_ids) AND t.task = :name AND v.scores ->> 'verdict' IS NOT NULL
    ) AS verdicts
    GROUP BY sample, rollout
) AS judged ON judged.sample = o.sample AND judged.rollout = o.rollout
WHERE o.run_id = :run_id AND o.status <> 'failed' AND coalesce(done.raters < :raters AND NOT done.is_own, true)
ORDER BY judged.spread DESC NULLS LAST, drawing_place(o.run_id, o.sample, o.rollout), o.sample, o.rollout
LIMIT 1;

-- name: set_annotation: Store what a person says of an answer; return no row where there is no such answer
INSERT INTO annotations AS a (run_id, question, sample, rollout, username, label, score, comment)
SELECT run_id, :question, sample, rollout, :username, :label, :score, :comment
FROM current_outcomes
WHERE run_id = :run_id AND sample = :sample AND rollout = :rollout AND status <> 'failed'
ON CONFLICT (run_id, question, sample, rollout, username) DO UPDATE SET
    label = excluded.label, score = excluded.score, comment = excluded.comment, annotated_at = excluded.annotated_at
RETURNING a.sample;

-- name: list_annotations: Return annotations that a person may see: own ones, and those of answers that two have annotated
SELECT sample, rollout, username, label, score, comment, annotated_at
FROM annotations AS a
WHERE run_id = :run_id AND question = :question AND (sample, rollout, username) > (:after_sample, :after_rollout, :after_username)
    AND (username = :username OR EXISTS (
        SELECT
        FROM annotations AS other
        WHERE other.run_id = :run_id AND other.question = :question AND other.sample = a.sample
            AND other.rollout = a.rollout AND other.username <> a.username
    ))
ORDER BY sample, rollout, username
LIMIT :limit::integer;

-- name: list_annotated_labels: Return who gave which label to which answer
SELECT sample, rollout, username, label
FROM annotations
WHERE run_id = :run_id AND question = :question AND label <> '';

-- name: list_drawn_scores: Return mean scores of the answers before the first one in the random order that nobody has annotated
-- They are a fair sample, also where some of them were annotated out of the order.
SELECT sample, rollout, avg(score) AS score
FROM annotations AS a
CROSS JOIN (
    SELECT min(drawing_place(o.run_id, o.sample, o.rollout)) AS place
    FROM current_outcomes AS o
    WHERE o.run_id = :run_id AND o.status <> 'failed' AND NOT EXISTS (
        SELECT
        FROM annotations AS done
        WHERE done.run_id = :run_id AND done.question = :question AND done.sample = o.sample AND done.rollout = o.rollout
    )
) AS first_left
WHERE a.run_id = :run_id AND a.question = :question
    AND coalesce(drawing_place(a.run_id, a.sample, a.rollout) < first_left.place, true)
GROUP BY sample, rollout
HAVING avg(score) IS NOT NULL;

-- name: count_annotations: Count the answers of a run that are annotated: by anyone, by two or more, by one person, and drawn
SELECT
    count(*) AS answers,
    count(done.raters) AS annotated,
    count(*) FILTER (WHERE done.raters > 1) AS annotated_twice,
    count(*) FILTER (WHERE done.is_own) AS own,
    count(*) FILTER (WHERE coalesce(o.place < o.first_left, done.raters > 0)) AS drawn
FROM (
    SELECT
        answered.sample, answered.rollout, answered.place,
        min(answered.place) FILTER (WHERE NOT answered.is_annotated) OVER () AS first_left
    FROM (
        SELECT
            sample, rollout, drawing_place(run_id, sample, rollout) AS place,
            EXISTS (
                SELECT
                FROM annotations AS a
                WHERE a.run_id = :run_id AND a.question = :question AND a.sample = c.sample AND a.rollout = c.rollout
            ) AS is_annotated
        FROM current_outcomes AS c
        WHERE run_id = :run_id AND status <> 'failed'
    ) AS answered
) AS o
LEFT JOIN (
    SELECT sample, rollout, count(*) AS raters, bool_or(username = :username) AS is_own
    FROM annotations
    WHERE run_id = :run_id AND question = :question
    GROUP BY sample, rollout
) AS done ON done.sample = o.sample AND done.rollout = o.rollout;

-- name: list_judging_runs: Return completed runs that judge a run by a prompt of a name and that the caller sees, newest first
SELECT h.run_id
FROM history_entries AS h
JOIN closed_runs AS c ON c.run_id = h.run_id
JOIN run_tasks AS t ON t.run_id = h.run_id
WHERE h.benchmark = :judged_run_id AND h.model <> '' AND t.task = :name AND c.state = 'completed'
ORDER BY h.closed_at DESC, h.run_id;

-- name: list_verdicts_of_judges: Return mean verdicts of some judging runs on each answer, with the length of the answer
SELECT
    v.run_id, v.sample, v.rollout, avg(v.verdict) AS verdict,
    max(char_length(shown_text(a.answer_text, a.prediction))) AS characters
FROM (
    SELECT o.run_id, s.sample, s.rollout, (o.scores ->> 'verdict')::double precision AS verdict
    FROM current_outcomes AS o
    JOIN run_tasks AS t ON t.run_id = o.run_id AND t.task_index = o.task_index
    CROSS JOIN LATERAL (
        -- As above.
        SELECT split_part(row_id, '.', 1)::bigint AS sample, split_part(row_id, '.', 2)::integer AS rollout
        FROM samples
        WHERE sample_set_id = t.sample_set_id AND position = o.sample - t.first_sample
        LIMIT 1
    ) AS s
    WHERE o.run_id = ANY (:run_ids) AND o.scores ->> 'verdict' IS NOT NULL
) AS v
JOIN outcomes AS a ON a.run_id = :judged_run_id AND a.sample = v.sample AND a.rollout = v.rollout
GROUP BY v.run_id, v.sample, v.rollout;

-- name: list_judges: Return the newest completed runs whose benchmark is a run and that the caller sees, newest first
SELECT h.run_id
FROM history_entries AS h
JOIN closed_runs AS c ON c.run_id = h.run_id
-- Of each run one entry is of no model: they are in the order of the key.
WHERE h.benchmark = :judged_run_id AND h.model = '' AND c.state = 'completed'
ORDER BY h.closed_at DESC, h.run_id DESC
LIMIT :limit::integer;

-- name: list_verdict_places: Return which samples of judging runs ask about some answers: of a pair two, one for each order
SELECT t.run_id, asked.sample, asked.rollout, t.first_sample + s.position AS judging_sample, split_part(s.row_id, '.', 3) AS place
FROM unnest(:run_ids::uuid[]) AS judging (run_id)
JOIN run_tasks AS t ON t.run_id = judging.run_id
CROSS JOIN unnest(:samples::bigint[], :rollouts::integer[]) AS asked (sample, rollout)
CROSS JOIN LATERAL (
    SELECT position, row_id
    FROM samples
    WHERE sample_set_id = t.sample_set_id
        AND position >= judged_position(t.sample_set_id, t.sample_count, asked.sample, asked.rollout)
    ORDER BY position
    LIMIT 2
) AS s
WHERE split_part(s.row_id, '.', 1) = asked.sample::text AND split_part(s.row_id, '.', 2) = asked.rollout::text
ORDER BY t.run_id, judging_sample;

-- name: list_settled_scores: Return mean scores of the answers that two people or more have annotated
-- What one person says is nobody else's to see.
SELECT question, sample, rollout, avg(score) AS score
FROM annotations
WHERE run_id = :run_id AND question = ANY (:questions)
GROUP BY question, sample, rollout
HAVING count(*) > 1 AND avg(score) IS NOT NULL;
