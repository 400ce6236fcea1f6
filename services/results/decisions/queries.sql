-- name: list_answered_samples: Return outcomes of some samples of a run, with the scores of a metric that each task has
SELECT
    sample, task_index, count(*) AS outcomes,
    string_agg(scores ->> (:metrics::text[])[task_index + 1], ',' ORDER BY rollout) AS scores
FROM current_outcomes
WHERE run_id = :run_id AND sample = ANY (:samples)
GROUP BY sample, task_index;
