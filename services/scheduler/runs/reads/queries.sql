-- `SELECT *` reads the view run_rows, which lists its columns (migrations/0005_runs.sql).

-- name: plan_by_values: Plan statements of this transaction for the given filters: each has its own index ()
SET LOCAL plan_cache_mode = force_custom_plan;

-- name: list_runs: Return a page of runs, newest first ($1 state, $2 benchmark, $3 model, $4 project, $5 'suite' or 'dataset', $6 data set, $7 first and $8 last id, $9 time and $10 run that it begins after, $11 size)
SELECT *
FROM run_rows
WHERE ($1::text IS NULL OR state = $1)
    AND ($2::text IS NULL OR benchmark = $2)
    AND ($3::text IS NULL OR model = $3)
    AND ($4::bigint IS NULL OR project_id = $4)
    AND ($5::text IS NULL OR ($5 = 'dataset' AND dataset_id IS NOT NULL) OR ($5 = 'suite' AND dataset_id IS NULL))
    AND ($6::text IS NULL OR (benchmark = $6 AND dataset_id = $6))
    AND ($7::uuid IS NULL OR run_id BETWEEN $7 AND $8)
    -- A page begins inside the index, whatever its number. OFFSET would read all pages before it.
    AND (created_at, run_id) < ($9, $10)
ORDER BY created_at DESC, run_id DESC
LIMIT $11;

-- name: list_model_names: Return the ordered models that have a name, one step in the key for each model ($1 name, with its provider or without; empty for all)
WITH RECURSIVE known AS (
    -- DISTINCT would read every run; this makes one index step for each model.
    (SELECT model FROM runs ORDER BY model LIMIT 1)
    UNION ALL
    SELECT next.model
    FROM known
    CROSS JOIN LATERAL (SELECT model FROM runs WHERE model > known.model ORDER BY model LIMIT 1) AS next
)
SELECT model FROM known WHERE $1 IN ('', model, substr(model, strpos(model, '/') + 1)) ORDER BY model LIMIT 1000;

-- name: count_runs: Count the runs of all pages ($1 state, $2 benchmark, $3 model, $4 project, $5 'suite' or 'dataset', $6 data set, $7 first and $8 last id)
SELECT count(*)
FROM runs
WHERE ($1::text IS NULL OR state = $1)
    AND ($2::text IS NULL OR benchmark = $2)
    AND ($3::text IS NULL OR model = $3)
    AND ($4::bigint IS NULL OR project_id = $4)
    AND ($5::text IS NULL OR ($5 = 'dataset' AND dataset_id IS NOT NULL) OR ($5 = 'suite' AND dataset_id IS NULL))
    AND ($6::text IS NULL OR (benchmark = $6 AND dataset_id = $6))
    AND ($7::uuid IS NULL OR run_id BETWEEN $7 AND $8);

-- name: list_past_usage: Return token counts of the last completed runs with the same request settings: of the model, else of any model ($1 benchmark, $2 model, $3 scoring method, $4 request settings)
WITH latest AS (
    (
        SELECT
            true AS is_of_model, ordered, total, final_counts, scoring_method, reused_answers, started_at,
            finished_at
        FROM runs
        WHERE state = 'completed' AND benchmark = $1 AND model = $2
        ORDER BY finished_at DESC
        LIMIT 100
    )
    UNION ALL
    (
        SELECT false, ordered, total, final_counts, scoring_method, reused_answers, started_at, finished_at
        FROM runs
        WHERE state = 'completed' AND benchmark = $1
        ORDER BY created_at DESC
        LIMIT 100
    )
), alike AS (
    SELECT is_of_model, ordered, total, final_counts, started_at, finished_at
    FROM latest
    WHERE scoring_method = $3 AND reused_answers = 0
        AND jsonb_build_object(
            'num_fewshot', ordered -> 'num_fewshot',
            'prompt_form', ordered -> 'prompt_form',
            'truncation', ordered -> 'truncation',
            'base_url', ordered -> 'base_url',
            'max_tokens', ordered -> 'params' -> 'max_tokens',
            'context_tokens', ordered -> 'params' -> 'context_tokens',
            'provider_params', ordered -> 'params' -> 'provider_params'
            -- Settings that change how many tokens an answer takes; see `RunOrder.token_settings`.
        ) = $4
)
SELECT ordered, total, final_counts, extract(epoch FROM finished_at - started_at)::double precision AS seconds
FROM alike
-- Runs of other models only where the model has none: their answers differ in length.
WHERE is_of_model = (SELECT bool_or(is_of_model) FROM alike)
ORDER BY finished_at DESC
LIMIT 5;
