-- `SELECT *` reads the view run_rows, which lists its columns (schema.sql).

-- name: plan_by_values: Plan statements of this transaction for the given filters: each has its own index
SET LOCAL plan_cache_mode = force_custom_plan;

-- name: list_runs: Return a page of runs, newest first
SELECT *
FROM run_rows
WHERE (:state::text IS NULL OR state = :state)
    AND (:benchmark::text IS NULL OR benchmark = :benchmark)
    AND (:model::text IS NULL OR model = :model)
    AND (:project_id::bigint IS NULL OR project_id = :project_id)
    AND (:kind::text IS NULL OR (:kind = 'dataset' AND dataset_id IS NOT NULL) OR (:kind = 'suite' AND dataset_id IS NULL))
    AND (:dataset_id::text IS NULL OR (benchmark = :dataset_id AND dataset_id = :dataset_id))
    AND (:first_id::uuid IS NULL OR run_id BETWEEN :first_id AND :last_id)
    AND (:name::text IS NULL OR (lower_name <> '' AND strpos(lower_name, lower(:name)) > 0))
    AND (:tag::text IS NULL OR (tags <> '{}' AND tags @> ARRAY[:tag]))
    AND (:days::integer IS NULL OR created_at >= now() - make_interval(days => :days))
    AND (:models::text[] IS NULL OR model = ANY (:models))
    AND (:run_ids::uuid[] IS NULL OR run_id = ANY (:run_ids))
    -- A page begins inside the index, whatever its number. OFFSET would read all pages before it.
    AND (created_at, run_id) < (:before_created_at, :before_run_id)
ORDER BY created_at DESC, run_id DESC
LIMIT :limit;

-- name: list_model_names: Return the ordered models that have a name
-- The name may be without its provider; that of all models is empty.
WITH RECURSIVE known AS (
    -- DISTINCT would read every run; this makes one index step for each model.
    (SELECT model FROM runs ORDER BY model LIMIT 1)
    UNION ALL
    SELECT next.model
    FROM known
    CROSS JOIN LATERAL (SELECT model FROM runs WHERE model > known.model ORDER BY model LIMIT 1) AS next
)
SELECT model FROM known WHERE :name IN ('', model, substr(model, strpos(model, '/') + 1)) ORDER BY model LIMIT 1000;

-- name: count_runs: Count the runs of all pages, to a bound, and the completed ones among them
SELECT count(*) AS total, count(*) FILTER (WHERE state = 'completed') AS completed
FROM (
    SELECT state
    FROM runs
    WHERE (:state::text IS NULL OR state = :state)
        AND (:benchmark::text IS NULL OR benchmark = :benchmark)
        AND (:model::text IS NULL OR model = :model)
        AND (:project_id::bigint IS NULL OR project_id = :project_id)
        AND (:kind::text IS NULL OR (:kind = 'dataset' AND dataset_id IS NOT NULL) OR (:kind = 'suite' AND dataset_id IS NULL))
        AND (:dataset_id::text IS NULL OR (benchmark = :dataset_id AND dataset_id = :dataset_id))
        AND (:first_id::uuid IS NULL OR run_id BETWEEN :first_id AND :last_id)
        AND (:name::text IS NULL OR (lower_name <> '' AND strpos(lower_name, lower(:name)) > 0))
        AND (:tag::text IS NULL OR (tags <> '{}' AND tags @> ARRAY[:tag]))
        AND (:days::integer IS NULL OR created_at >= now() - make_interval(days => :days))
        AND (:models::text[] IS NULL OR model = ANY (:models))
        AND (:run_ids::uuid[] IS NULL OR run_id = ANY (:run_ids))
    LIMIT :most
) AS counted;

-- name: list_past_usage: Return token counts of the last completed runs with the same request settings
WITH latest AS (
    (
        SELECT
            true AS is_of_model, ordered, total, final_counts, scoring_method, reused_answers, started_at,
            finished_at
        FROM runs
        -- An imported run has no pool: its tokens are what another tool counted, if any.
        WHERE state = 'completed' AND benchmark = :benchmark AND model = :model AND pool <> ''
        ORDER BY finished_at DESC
        LIMIT 100
    )
    UNION ALL
    (
        SELECT false, ordered, total, final_counts, scoring_method, reused_answers, started_at, finished_at
        FROM runs
        WHERE state = 'completed' AND benchmark = :benchmark AND pool <> ''
        ORDER BY created_at DESC
        LIMIT 100
    )
), alike AS (
    SELECT is_of_model, ordered, total, final_counts, started_at, finished_at
    FROM latest
    WHERE scoring_method = :scoring_method AND reused_answers = 0
        AND jsonb_build_object(
            'num_fewshot', ordered -> 'num_fewshot',
            'prompt_form', ordered -> 'prompt_form',
            'truncation', ordered -> 'truncation',
            'base_url', ordered -> 'base_url',
            'max_tokens', ordered -> 'params' -> 'max_tokens',
            'context_tokens', ordered -> 'params' -> 'context_tokens',
            'provider_params', ordered -> 'params' -> 'provider_params'
            -- Settings that change how many tokens an answer takes; see `RunOrder.token_settings`.
        ) = :token_settings
)
SELECT ordered, total, final_counts, extract(epoch FROM finished_at - started_at)::double precision AS seconds
FROM alike
-- Runs of other models only where the model has none: their answers differ in length.
WHERE is_of_model = (SELECT bool_or(is_of_model) FROM alike)
ORDER BY finished_at DESC
LIMIT 5;
