-- name: delete_earlier_close: Delete the entry of an earlier close: a run is listed in its last state
DELETE FROM closed_runs AS c
USING run_records AS r
WHERE c.run_id = :run_id AND r.run_id = c.run_id AND (c.epoch < :epoch OR c.state IS DISTINCT FROM r.state OR :is_again)
RETURNING c.closed_at;

-- name: add_closed_run: List a run that names its benchmark and model, once per epoch
INSERT INTO closed_runs (run_id, epoch, benchmark, model, project_id, state, closed_at, result)
SELECT run_id, epoch, benchmark, model, project_id, state, coalesce(:closed_at, now()), :result
FROM run_records
WHERE run_id = :run_id AND benchmark <> '' AND model <> ''
ON CONFLICT (run_id) DO NOTHING
RETURNING run_id::text AS run_id;

-- name: add_history_entries: Store the histories of a closed run
INSERT INTO history_entries (benchmark, model, closed_at, run_id)
SELECT benchmarks.benchmark, models.model, c.closed_at, c.run_id
FROM closed_runs AS c
JOIN run_records AS r USING (run_id)
CROSS JOIN LATERAL (
    -- A row for each list that the run is in, where '' stands for all: a list is read by its key alone.
    VALUES (c.benchmark), (CASE WHEN r.dataset_name = '' THEN '*suite' ELSE '*dataset' END), ('')
) AS benchmarks (benchmark)
CROSS JOIN LATERAL (VALUES (c.model), ('')) AS models (model)
WHERE c.run_id = :run_id;

-- name: add_leaderboard_entries: Store the leaderboards of a closed run, if it has completed
INSERT INTO leaderboard_entries (benchmark, project_id, metric, model, conditions, closed_at, run_id, mean, is_whole)
SELECT
    c.benchmark, projects.project_id, figures.metric, c.model, figures.conditions, c.closed_at, c.run_id, figures.mean,
    :is_whole
FROM closed_runs AS c
-- One row for the project and one for the leaderboard of all projects, which everybody sees.
JOIN LATERAL (VALUES (c.project_id::text), ('')) AS projects (project_id)
    ON projects.project_id <> '' OR NOT is_declared(c.project_id)
CROSS JOIN unnest(:conditions::text[], :metrics::text[], :means::double precision[]) AS figures (conditions, metric, mean)
WHERE c.run_id = :run_id AND c.state = 'completed';

-- name: list_leaderboard_metrics: Return the metrics of a leaderboard, one step in the key for each
WITH RECURSIVE found AS (
    (
        SELECT metric
        FROM leaderboard_entries
        WHERE benchmark = :benchmark AND project_id = :project_id
        ORDER BY metric
        LIMIT 1
    )
    UNION ALL
    SELECT next.metric
    FROM found
    CROSS JOIN LATERAL (
        SELECT metric
        FROM leaderboard_entries
        WHERE benchmark = :benchmark AND project_id = :project_id AND metric > found.metric
        ORDER BY metric
        LIMIT 1
    ) AS next
)
SELECT metric FROM found;

-- name: list_entries: Return the latest run of each model and conditions, or the best, some steps in the keys for each
WITH RECURSIVE listed AS (
    (
        SELECT model, conditions
        FROM leaderboard_entries
        WHERE benchmark = :benchmark AND project_id = :project_id AND metric = :metric
        ORDER BY model DESC, conditions DESC
        LIMIT 1
    )
    UNION ALL
    SELECT next.model, next.conditions
    FROM listed
    CROSS JOIN LATERAL (
        SELECT model, conditions
        FROM leaderboard_entries
        WHERE benchmark = :benchmark AND project_id = :project_id AND metric = :metric
            AND (model, conditions) < (listed.model, listed.conditions)
        ORDER BY model DESC, conditions DESC
        LIMIT 1
    ) AS next
)
SELECT
    c.run_id::text AS run_id, c.benchmark, c.model, c.project_id, c.state, c.closed_at, c.result,
    chosen.run_id = latest.run_id AS is_latest, previous.run_id::text AS previous_run_id, counted.runs
FROM listed
CROSS JOIN LATERAL (
    SELECT e.closed_at, e.run_id
    FROM leaderboard_entries AS e
    WHERE e.benchmark = :benchmark AND e.project_id = :project_id AND e.metric = :metric
        AND e.model = listed.model AND e.conditions = listed.conditions
    ORDER BY e.closed_at DESC, e.run_id DESC
    LIMIT 1
) AS latest
CROSS JOIN LATERAL (
    SELECT latest.closed_at, latest.run_id WHERE NOT :is_best
    UNION ALL
    (
        SELECT e.closed_at, e.run_id
        FROM leaderboard_entries AS e
        WHERE :is_best AND e.benchmark = :benchmark AND e.project_id = :project_id AND e.metric = :metric
            AND e.model = listed.model AND e.conditions = listed.conditions
        ORDER BY e.mean DESC, e.closed_at DESC, e.run_id DESC
        LIMIT 1
    )
) AS chosen
CROSS JOIN LATERAL (
    -- The limit keeps the planner from reading the whole table instead of a row for each.
    SELECT r.run_id, r.benchmark, r.model, r.project_id, r.state, r.closed_at, r.result
    FROM closed_runs AS r
    WHERE r.run_id = chosen.run_id
    LIMIT 1
) AS c
LEFT JOIN LATERAL (
    SELECT e.run_id
    FROM leaderboard_entries AS e
    -- In a declared project the one before is of the project; elsewhere it may be of any.
    WHERE e.benchmark = :benchmark
        AND e.project_id = CASE WHEN is_declared(c.project_id) THEN :project_id ELSE '' END
        AND e.metric = :metric
        AND e.model = listed.model AND e.conditions = listed.conditions
        AND (e.closed_at, e.run_id) < (chosen.closed_at, chosen.run_id)
    ORDER BY e.closed_at DESC, e.run_id DESC
    LIMIT 1
) AS previous ON true
CROSS JOIN LATERAL (
    SELECT count(*) AS runs
    FROM (
        SELECT
        FROM leaderboard_entries AS e
        WHERE e.benchmark = :benchmark AND e.project_id = :project_id AND e.metric = :metric
            AND e.model = listed.model AND e.conditions = listed.conditions
        LIMIT :most
    ) AS some_runs
) AS counted;

-- name: find_newest_run: Return the completed run of a benchmark that was closed last
SELECT c.run_id::text AS run_id, c.benchmark, c.model, c.project_id, c.state, c.closed_at, c.result
FROM history_entries AS h
JOIN closed_runs AS c USING (run_id)
WHERE h.benchmark = :benchmark AND h.model = '' AND c.state = 'completed'
ORDER BY h.closed_at DESC, h.run_id DESC
LIMIT 1;

-- name: read_closed_run: Return a run as it was last closed
SELECT run_id::text AS run_id, benchmark, model, project_id, state, closed_at, result
FROM closed_runs
WHERE run_id = :run_id;

-- name: read_newest_baselines: Return the baselines of the newest of some runs that has any
SELECT baselines
FROM closed_runs
WHERE run_id = ANY (:run_ids) AND baselines IS NOT NULL
ORDER BY closed_at DESC, run_id DESC
LIMIT 1;

-- name: list_closed_runs: Return those of some runs that are closed
SELECT run_id::text AS run_id, benchmark, model, project_id, state, closed_at, result
FROM closed_runs
WHERE run_id = ANY (:run_ids);

-- name: list_history: Return closed runs since a moment that come after a key, newest first
SELECT
    c.run_id::text AS run_id, c.benchmark, c.model, c.project_id, c.state, c.closed_at, c.result
FROM history_entries AS h
JOIN closed_runs AS c USING (run_id)
WHERE h.benchmark = :benchmark AND h.model = :model
    AND h.closed_at >= :since
    AND (h.closed_at, h.run_id) < (:before_closed_at, :before_run_id)
    AND :state IN ('', c.state)
ORDER BY h.closed_at DESC, h.run_id DESC
LIMIT :limit::integer;

-- name: count_history: Count closed runs since a moment, to a bound; who sees all runs reads nothing but the key
SELECT count(*) AS runs
FROM (
    SELECT
    FROM history_entries AS h
    WHERE benchmark = :benchmark AND model = :model AND closed_at >= :since
        -- By EXISTS the planner would read all closed runs.
        AND (:sees_all OR (SELECT c.run_id FROM closed_runs AS c WHERE c.run_id = h.run_id) IS NOT NULL)
    LIMIT :most
) AS counted;

-- name: sum_history: Sum up closed runs since a moment, the newest to a bound
SELECT
    count(*) AS runs,
    count(*) FILTER (WHERE state = 'completed') AS completed_runs,
    coalesce(sum(answered), 0)::bigint AS answered,
    coalesce(sum(failed), 0)::bigint AS failed,
    coalesce(sum(cost), 0) AS cost,
    count(cost) AS priced_runs,
    coalesce(max(currency), '') AS currency
FROM (
    SELECT c.state, c.answered, c.failed, c.cost, c.currency
    FROM history_entries AS h
    JOIN closed_runs AS c USING (run_id)
    WHERE h.benchmark = :benchmark AND h.model = :model AND :state IN ('', c.state) AND h.closed_at >= :since
    ORDER BY h.closed_at DESC, h.run_id DESC
    LIMIT :most
) AS counted;

-- name: find_waiting_run: Return the epoch of a completed run that waits for a work
-- Those whose work was started less often come first. What a replica holds does not wait.
SELECT run_id::text AS run_id, epoch
FROM (
    (
        -- A run with a lease of this epoch is left to the third part, which knows how often it was started.
        SELECT run_id, epoch, 0 AS starts
        FROM run_records AS r
        WHERE :work = 'comparison' AND state = 'completed' AND compared_epoch < epoch
            AND NOT EXISTS (SELECT FROM leases AS l WHERE (l.run_id, l.work, l.epoch) = (r.run_id, :work, r.epoch))
        ORDER BY frozen_at
        LIMIT 1
    )
    UNION ALL
    (
        SELECT run_id, epoch, 0
        FROM closed_runs AS r
        WHERE :work = 'baselines' AND state = 'completed' AND baselines IS NULL
            AND NOT EXISTS (SELECT FROM leases AS l WHERE (l.run_id, l.work, l.epoch) = (r.run_id, :work, r.epoch))
        ORDER BY closed_at
        LIMIT 1
    )
    UNION ALL
    (
        SELECT run_id, epoch, l.starts
        FROM leases AS l
        JOIN run_records AS r USING (run_id, epoch)
        WHERE l.work = :work AND l.leased_until <= now() AND r.state = 'completed'
            -- A replica that acquired the lease of a work just after another one finished it leaves it behind.
            AND CASE :work
                WHEN 'comparison' THEN r.compared_epoch < r.epoch
                ELSE EXISTS (SELECT FROM closed_runs AS c WHERE c.run_id = r.run_id AND c.baselines IS NULL)
            END
        ORDER BY l.starts, r.frozen_at
        LIMIT 1
    )
) AS waiting
ORDER BY starts
LIMIT 1;

-- name: list_repetitions: Return the newest completed runs of a run's model under its conditions
-- What reused answers repeats nothing.
SELECT r.run_id::text AS run_id
FROM leaderboard_entries AS e
CROSS JOIN LATERAL (
    SELECT o.run_id, o.closed_at
    FROM leaderboard_entries AS o
    WHERE o.benchmark = e.benchmark AND o.project_id = e.project_id AND o.metric = e.metric AND o.model = e.model
        AND o.conditions = e.conditions
        AND NOT EXISTS (
            SELECT FROM run_summaries AS s WHERE s.run_id = o.run_id AND (s.summary ->> 'reused_answers')::bigint > 0
        )
    ORDER BY o.closed_at DESC, o.run_id DESC
    LIMIT :limit::integer
) AS r
WHERE e.run_id = :run_id AND e.metric = :metric AND e.conditions <> ''
    -- A run is on the leaderboard of its project, and on that of all.
    AND e.project_id = (SELECT CASE WHEN is_declared(c.project_id) THEN c.project_id::text ELSE '' END
        FROM closed_runs AS c WHERE c.run_id = :run_id)
    -- Of a project that the caller does not see.
    AND EXISTS (SELECT FROM closed_runs AS c WHERE c.run_id = r.run_id)
ORDER BY r.closed_at DESC, r.run_id DESC;

-- name: read_repetition_spread: Return how figures of single runs scatter, pooled over the models of some runs
SELECT
    coalesce(sum(runs), 0)::bigint AS runs, count(*) AS models,
    coalesce(sum((runs - 1) * variance) / sum(runs - 1), 0) AS variance
FROM (
    SELECT count(*) AS runs, var_samp(r.mean) AS variance
    FROM leaderboard_entries AS e
    CROSS JOIN LATERAL (
        SELECT o.mean
        FROM leaderboard_entries AS o
        WHERE o.benchmark = e.benchmark AND o.project_id = e.project_id AND o.metric = e.metric AND o.model = e.model
            AND o.conditions = e.conditions AND o.mean > '-infinity'
            AND NOT EXISTS (
                SELECT FROM run_summaries AS s WHERE s.run_id = o.run_id AND (s.summary ->> 'reused_answers')::bigint > 0
            )
        ORDER BY o.closed_at DESC, o.run_id DESC
        LIMIT :limit::integer
    ) AS r
    WHERE e.run_id = ANY (:run_ids) AND e.project_id = :project_id AND e.metric = :metric
    GROUP BY e.run_id
    HAVING count(*) > 1
) AS repeated;

-- name: store_run_baselines: Store the baselines of a run's benchmark
UPDATE closed_runs SET baselines = :baselines WHERE run_id = :run_id;

-- name: read_task_baselines: Return the baselines of a sample set
SELECT baselines FROM task_baselines WHERE sample_set_id = :sample_set_id AND scoring_digest = :scoring_digest;

-- name: add_task_baselines: Store the baselines of a sample set; the first ones stay
INSERT INTO task_baselines (sample_set_id, scoring_digest, baselines)
VALUES (:sample_set_id, :scoring_digest, :baselines)
ON CONFLICT (sample_set_id, scoring_digest) DO NOTHING;

-- name: find_previous_run: Return the completed run of a model under the same conditions before some run
SELECT e.run_id::text AS run_id
FROM leaderboard_entries AS e
WHERE e.benchmark = :benchmark AND e.project_id = :project_id AND e.metric = 'score' AND e.model = :model
    AND e.conditions = :conditions
    AND (e.closed_at, e.run_id) < (SELECT c.closed_at, c.run_id FROM closed_runs AS c WHERE c.run_id = :run_id)
ORDER BY e.closed_at DESC, e.run_id DESC
LIMIT 1;

-- name: mark_uncompared: Note that a run has to be compared with the runs beside it, once more
UPDATE run_records SET compared_epoch = 0 WHERE run_id = :run_id;

-- name: mark_compared: Note that a run of an epoch was compared with the runs beside it
UPDATE run_records SET compared_epoch = :epoch WHERE run_id = :run_id AND compared_epoch < :epoch;

-- name: list_latest_runs: Return the latest completed run of each of some models on a benchmark
-- A run that can be ranked comes before later ones that cannot.
SELECT DISTINCT ON (h.model) h.model, h.run_id::text AS run_id
FROM history_entries AS h
JOIN run_records AS r USING (run_id)
LEFT JOIN leaderboard_entries AS e
    ON e.run_id = h.run_id AND e.benchmark = h.benchmark AND e.project_id = r.project_id::text AND e.metric = 'score'
    AND e.model = h.model
WHERE h.benchmark = :benchmark AND h.model = ANY (:models) AND r.state = 'completed'
ORDER BY
    h.model, e.is_whole IS TRUE DESC,
    h.closed_at DESC, h.run_id DESC;
