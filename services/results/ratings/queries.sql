-- name: list_pair_judgings: Return completed judging runs that compare two runs of a benchmark, newest first
SELECT
    j.run_id::text AS run_id, j.model AS judge, t.task AS prompt, t.provenance ->> 'version' AS version,
    t.provenance ->> 'definition_digest' AS digest, t.sample_count AS verdicts,
    judged.run_id::text AS first_run_id, judged.model AS first_model,
    other.run_id::text AS second_run_id, other.model AS second_model
FROM run_records AS j
JOIN run_records AS other ON other.run_id = j.against_run_id
-- The benchmark of a judging run is the judged run.
JOIN run_records AS judged ON judged.run_id::text = j.benchmark
JOIN run_tasks AS t ON t.run_id = j.run_id
WHERE j.against_run_id IS NOT NULL AND j.state = 'completed' AND other.benchmark = :benchmark
    AND CASE WHEN :project_id::bigint IS NULL THEN NOT is_declared(j.project_id) ELSE j.project_id = :project_id END
ORDER BY j.frozen_at DESC, j.run_id
LIMIT :limit::integer;

-- name: list_pair_verdicts: Return verdicts of judging runs on pairs that were asked about in both orders
SELECT
    v.run_id::text AS run_id, v.sample, v.rollout,
    max(v.score) FILTER (WHERE v.place = 'first') AS shown_first,
    max(v.score) FILTER (WHERE v.place = 'second') AS shown_second
FROM (
    SELECT
        o.run_id, o.rollout AS repetition, pair.place, pair.sample, pair.rollout,
        (o.scores ->> 'preference')::double precision AS score
    FROM current_outcomes AS o
    JOIN run_tasks AS t ON t.run_id = o.run_id AND t.task_index = o.task_index
    CROSS JOIN LATERAL (
        -- The id of the row is SAMPLE.ROLLOUT.PLACE, the place of the judged run's answer. The limit keeps the planner from
        -- reading all samples.
        SELECT
            split_part(row_id, '.', 1)::bigint AS sample, split_part(row_id, '.', 2)::integer AS rollout,
            split_part(row_id, '.', 3) AS place
        FROM samples
        WHERE sample_set_id = t.sample_set_id AND position = o.sample - t.first_sample
        LIMIT 1
    ) AS pair
    WHERE o.run_id = ANY (:run_ids) AND o.scores ->> 'preference' IS NOT NULL
) AS v
GROUP BY v.run_id, v.sample, v.rollout, v.repetition
HAVING count(DISTINCT v.place) = 2
ORDER BY v.run_id, v.sample, v.rollout, v.repetition;

-- name: list_answer_styles: Return the digests of what runs were asked, with length and markup of the answers where they count
SELECT
    o.run_id::text AS run_id, o.sample, o.rollout, s.digest,
    CASE WHEN :has_style THEN char_length(shown_text(o.answer_text, o.prediction)) ELSE 0 END AS characters,
    -- Headings, list items and bold texts of Markdown.
    CASE WHEN :has_style
        THEN regexp_count(
            shown_text(o.answer_text, o.prediction), '^ {0,3}#{1,6} |^[ \t]*([-*+]|\d{1,3}[.)]) |\*\*[^*\n]+\*\*', 1, 'n'
        )
        ELSE 0
    END AS markup
FROM current_outcomes AS o
JOIN run_tasks AS t ON t.run_id = o.run_id AND t.task_index = o.task_index
CROSS JOIN LATERAL (
    SELECT digest FROM samples WHERE sample_set_id = t.sample_set_id AND position = o.sample - t.first_sample LIMIT 1
) AS s
WHERE o.run_id = ANY (:run_ids) AND o.status <> 'failed';
