-- name: list_pairs: Return the scores of two runs on the samples that both have, like pairs counted
-- Equal sets are paired by position; others by digest, the n-th of equal samples with the n-th. A sample without an
-- answer counts as failed; scores are listed by rollout. Outcomes are those of a range of samples of each run.
WITH asked AS (
    SELECT ordinal, first_index, second_index, first_start, second_start, first_sample_set_id, second_sample_set_id
    FROM unnest(
        :first_indexes::smallint[], :second_indexes::smallint[], :first_starts::bigint[], :second_starts::bigint[],
        :first_set_ids::uuid[], :second_set_ids::uuid[]
    ) WITH ORDINALITY AS task (
        first_index, second_index, first_start, second_start, first_sample_set_id, second_sample_set_id, ordinal
    )
), wanted AS (
    SELECT ordinal, name, metric
    FROM unnest(:task_numbers::bigint[], :metrics::text[]) WITH ORDINALITY AS one (ordinal, name, metric)
), first_answers AS (
    SELECT
        asked.ordinal, wanted.metric, o.sample - asked.first_start AS position,
        -- As text: grouping equal answers needs no parsing, and few texts are parsed at the end.
        string_agg(o.scores ->> wanted.name, ',' ORDER BY o.rollout) AS scores,
        count(*) FILTER (WHERE o.status = 'unparsed') AS unparsed,
        bool_and(o.status = 'failed') AS is_failed
    FROM current_outcomes AS o
    JOIN asked ON asked.first_index = o.task_index
    JOIN wanted USING (ordinal)
    WHERE o.run_id = :first_run_id AND o.sample >= :first_from AND o.sample < :first_to
    GROUP BY asked.ordinal, wanted.metric, o.sample - asked.first_start
), second_answers AS (
    SELECT
        asked.ordinal, wanted.metric, o.sample - asked.second_start AS position,
        string_agg(o.scores ->> wanted.name, ',' ORDER BY o.rollout) AS scores,
        count(*) FILTER (WHERE o.status = 'unparsed') AS unparsed,
        bool_and(o.status = 'failed') AS is_failed
    FROM current_outcomes AS o
    JOIN asked ON asked.second_index = o.task_index
    JOIN wanted USING (ordinal)
    WHERE o.run_id = :second_run_id AND o.sample >= :second_from AND o.sample < :second_to
    GROUP BY asked.ordinal, wanted.metric, o.sample - asked.second_start
), first_samples AS (
    SELECT
        asked.ordinal, s.position, s.digest,
        row_number() OVER (PARTITION BY asked.ordinal, s.digest ORDER BY s.position) AS nth
    FROM samples AS s
    -- Equal sets need no digests: their samples are read for nothing.
    JOIN asked ON asked.first_sample_set_id = s.sample_set_id AND asked.first_sample_set_id <> asked.second_sample_set_id
    -- Given twice, so that the planner reads these sets by their index.
    WHERE s.sample_set_id = ANY (:first_set_ids)
), second_samples AS (
    SELECT
        asked.ordinal, s.position, s.digest,
        row_number() OVER (PARTITION BY asked.ordinal, s.digest ORDER BY s.position) AS nth
    FROM samples AS s
    JOIN asked ON asked.second_sample_set_id = s.sample_set_id AND asked.first_sample_set_id <> asked.second_sample_set_id
    WHERE s.sample_set_id = ANY (:second_set_ids)
), second_beside_first AS (
    SELECT s.ordinal, s.metric, s.position, s.scores, s.unparsed, s.is_failed
    FROM second_answers AS s
    JOIN asked USING (ordinal)
    WHERE asked.first_sample_set_id = asked.second_sample_set_id
    UNION ALL
    SELECT s.ordinal, s.metric, first_samples.position, s.scores, s.unparsed, s.is_failed
    FROM second_answers AS s
    JOIN second_samples USING (ordinal, position)
    JOIN first_samples USING (ordinal, digest, nth)
), clustered AS (
    SELECT asked.ordinal, s.position, s.cluster
    FROM samples AS s
    JOIN asked ON asked.first_sample_set_id = s.sample_set_id
    WHERE s.sample_set_id = ANY (:first_set_ids)
        AND s.position >= :position_from AND s.position < :position_to
        AND s.cluster <> ''
)
SELECT
    f.ordinal, f.metric, c.cluster, f.scores AS first_scores, s.scores AS second_scores,
    f.unparsed AS first_unparsed, s.unparsed AS second_unparsed,
    f.is_failed AS first_failed, s.is_failed AS second_failed, count(*) AS pairs
FROM first_answers AS f
JOIN second_beside_first AS s USING (ordinal, metric, position)
LEFT JOIN clustered AS c USING (ordinal, position)
GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9;

-- name: list_flips: Return samples whose scores differ, in the order of the first run
WITH first_answers AS (
    SELECT
        sample - :first_start AS position,
        string_agg(scores ->> :metric, ',' ORDER BY rollout) AS scores,
        (array_agg(prediction ORDER BY rollout))[1] AS prediction
    FROM outcomes
    WHERE run_id = :first_run_id AND sample > :after_sample AND sample < :first_end AND status <> 'failed'
    GROUP BY sample
), second_answers AS (
    SELECT
        sample - :second_start AS position,
        string_agg(scores ->> :metric, ',' ORDER BY rollout) AS scores,
        (array_agg(prediction ORDER BY rollout))[1] AS prediction
    FROM outcomes
    WHERE run_id = :second_run_id AND sample >= :second_from AND sample < :second_end AND status <> 'failed'
    GROUP BY sample
), first_samples AS (
    -- The n-th of equal samples is paired with the n-th, as in list_pairs.
    SELECT position, digest, row_number() OVER (PARTITION BY digest ORDER BY position) AS nth
    FROM samples
    -- Equal sets are paired by position: then nothing is read here.
    WHERE sample_set_id = :first_set_id AND :first_set_id <> :second_set_id
), second_samples AS (
    SELECT position, digest, row_number() OVER (PARTITION BY digest ORDER BY position) AS nth
    FROM samples
    WHERE sample_set_id = :second_set_id AND :first_set_id <> :second_set_id
), second_beside_first AS (
    SELECT position, scores, prediction FROM second_answers WHERE :first_set_id = :second_set_id
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
LIMIT :limit::integer;

-- name: store_comparison: Store the comparison of two runs; a repeated one replaces it
INSERT INTO run_comparisons (
    first_run_id, second_run_id, first_epoch, second_epoch, task, metric, difference, ci_low, ci_high, p_value,
    verdict, pairs, test
)
SELECT
    :first_run_id, :second_run_id, :first_epoch, :second_epoch, task, metric, difference, ci_low, ci_high, p_value,
    verdict, pairs, test
FROM unnest(
    :tasks::text[], :metrics::text[], :differences::double precision[], :ci_lows::double precision[],
    :ci_highs::double precision[], :p_values::double precision[], :verdicts::text[], :pairs::bigint[], :tests::text[]
) AS one (task, metric, difference, ci_low, ci_high, p_value, verdict, pairs, test)
ON CONFLICT (first_run_id, second_run_id, task, metric) DO UPDATE SET
    first_epoch = excluded.first_epoch,
    second_epoch = excluded.second_epoch,
    difference = excluded.difference,
    ci_low = excluded.ci_low,
    ci_high = excluded.ci_high,
    p_value = excluded.p_value,
    verdict = excluded.verdict,
    pairs = excluded.pairs,
    test = excluded.test;

-- name: read_p_values: Return the stored p-values between any two of some runs, by their indexes in the list, in one row
WITH asked AS (
    SELECT r.run_id, r.epoch, (listed.ordinal - 1)::integer AS run_index
    FROM unnest(:run_ids::uuid[]) WITH ORDINALITY AS listed (run_id, ordinal)
    JOIN run_records AS r USING (run_id)
)
SELECT
    coalesce(array_agg(first.run_index), '{}') AS first_indexes,
    coalesce(array_agg(second.run_index), '{}') AS second_indexes,
    coalesce(array_agg(c.p_value), '{}') AS p_values
FROM asked AS first
JOIN run_comparisons AS c ON c.first_run_id = first.run_id AND c.first_epoch = first.epoch
JOIN asked AS second ON c.second_run_id = second.run_id AND c.second_epoch = second.epoch
-- The empty task is the benchmark as a whole.
WHERE c.task = '' AND c.metric = :metric;

-- name: list_comparisons: Return the stored comparisons of whole benchmarks between any two of some runs
SELECT
    c.first_run_id::text AS first_run_id, c.second_run_id::text AS second_run_id, c.metric, c.difference, c.ci_low,
    c.ci_high, c.p_value, c.pairs, c.test
FROM run_comparisons AS c
WHERE c.first_run_id = ANY (:run_ids)
    AND c.second_run_id = ANY (:run_ids)
    AND c.task = ''
    AND c.metric = :metric
    -- A run that was retried since has other answers: its old comparison does not count.
    AND c.first_epoch = (SELECT r.epoch FROM run_records AS r WHERE r.run_id = c.first_run_id)
    AND c.second_epoch = (SELECT r.epoch FROM run_records AS r WHERE r.run_id = c.second_run_id);
