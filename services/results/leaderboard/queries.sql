-- name: delete_earlier_close: Delete the entry of an earlier close: a run is listed in its last state ($1 run, $2 epoch)
DELETE FROM closed_runs AS c
USING run_records AS r
WHERE c.run_id = $1 AND r.run_id = c.run_id AND (c.epoch < $2 OR c.state IS DISTINCT FROM r.state);

-- name: add_closed_run: List a run that names its benchmark and model, once per epoch ($1 run, $2 result)
INSERT INTO closed_runs (run_id, epoch, benchmark, model, project_id, state, closed_at, result)
SELECT run_id, epoch, benchmark, model, project_id, state, now(), $2
FROM run_records
WHERE run_id = $1 AND benchmark <> '' AND model <> ''
ON CONFLICT (run_id) DO NOTHING
RETURNING run_id::text AS run_id;

-- name: add_history_entries: Store the histories of a closed run ($1 run)
INSERT INTO history_entries (benchmark, model, closed_at, run_id)
SELECT benchmarks.benchmark, models.model, c.closed_at, c.run_id
FROM closed_runs AS c
JOIN run_records AS r USING (run_id)
CROSS JOIN LATERAL (
    -- A row for each list that the run is in, where '' stands for all: a list is read by its key alone.
    VALUES (c.benchmark), (CASE WHEN r.dataset_name = '' THEN '*suite' ELSE '*dataset' END), ('')
) AS benchmarks (benchmark)
CROSS JOIN LATERAL (VALUES (c.model), ('')) AS models (model)
WHERE c.run_id = $1;

-- name: add_leaderboard_entries: Store the leaderboards of a closed run, if it has completed ($1 run, $2 conditions of each figure, $3 metrics, $4 figures, $5 whether only a limit keeps it from being ranked)
INSERT INTO leaderboard_entries (benchmark, project_id, metric, model, conditions, closed_at, run_id, mean, is_limited)
SELECT
    c.benchmark, projects.project_id, figures.metric, c.model, figures.conditions, c.closed_at, c.run_id, figures.mean,
    $5
FROM closed_runs AS c
-- One row for the project and one for the leaderboard of all projects.
CROSS JOIN LATERAL (VALUES (c.project_id::text), ('')) AS projects (project_id)
CROSS JOIN unnest($2::text[], $3::text[], $4::double precision[]) AS figures (conditions, metric, mean)
WHERE c.run_id = $1 AND c.state = 'completed';

-- name: list_leaderboard_metrics: Return the metrics of a leaderboard, one step in the key for each ($1 benchmark, $2 project, empty for all)
WITH RECURSIVE found AS (
    (
        SELECT metric
        FROM leaderboard_entries
        WHERE benchmark = $1 AND project_id = $2
        ORDER BY metric
        LIMIT 1
    )
    UNION ALL
    SELECT next.metric
    FROM found
    CROSS JOIN LATERAL (
        SELECT metric
        FROM leaderboard_entries
        WHERE benchmark = $1 AND project_id = $2 AND metric > found.metric
        ORDER BY metric
        LIMIT 1
    ) AS next
)
SELECT metric FROM found;

-- name: list_entries: Return the latest run of each model and conditions, or the best, some steps in the keys for each ($1 benchmark, $2 project, empty for all, $3 metric, $4 whether the best)
WITH RECURSIVE listed AS (
    (
        SELECT model, conditions
        FROM leaderboard_entries
        WHERE benchmark = $1 AND project_id = $2 AND metric = $3
        ORDER BY model DESC, conditions DESC
        LIMIT 1
    )
    UNION ALL
    SELECT next.model, next.conditions
    FROM listed
    CROSS JOIN LATERAL (
        SELECT model, conditions
        FROM leaderboard_entries
        WHERE benchmark = $1 AND project_id = $2 AND metric = $3
            AND (model, conditions) < (listed.model, listed.conditions)
        ORDER BY model DESC, conditions DESC
        LIMIT 1
    ) AS next
)
SELECT
    c.run_id::text AS run_id, c.benchmark, c.model, c.project_id, c.state, c.closed_at, c.result,
    chosen.run_id = latest.run_id AS is_latest, previous.run_id::text AS previous_run_id
FROM listed
CROSS JOIN LATERAL (
    SELECT e.closed_at, e.run_id
    FROM leaderboard_entries AS e
    WHERE e.benchmark = $1 AND e.project_id = $2 AND e.metric = $3
        AND e.model = listed.model AND e.conditions = listed.conditions
    ORDER BY e.closed_at DESC, e.run_id DESC
    LIMIT 1
) AS latest
CROSS JOIN LATERAL (
    SELECT latest.closed_at, latest.run_id WHERE NOT $4
    UNION ALL
    (
        SELECT e.closed_at, e.run_id
        FROM leaderboard_entries AS e
        WHERE $4 AND e.benchmark = $1 AND e.project_id = $2 AND e.metric = $3
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
    WHERE e.benchmark = $1 AND e.project_id = '' AND e.metric = $3
        AND e.model = listed.model AND e.conditions = listed.conditions
        AND (e.closed_at, e.run_id) < (chosen.closed_at, chosen.run_id)
    ORDER BY e.closed_at DESC, e.run_id DESC
    LIMIT 1
) AS previous ON true;

-- name: read_newest_baselines: Return the baselines of the newest of some runs that has any ($1 runs)
SELECT baselines
FROM closed_runs
WHERE run_id = ANY ($1) AND baselines IS NOT NULL
ORDER BY closed_at DESC, run_id DESC
LIMIT 1;

-- name: list_history: Return closed runs since a moment that come after a key, newest first ($1 benchmark, $2 model, each empty for all, $3 since, $4 closed before, $5 run, $6 rows, $7 state, empty for all)
SELECT
    c.run_id::text AS run_id, c.benchmark, c.model, c.project_id, c.state, c.closed_at, c.result
FROM history_entries AS h
JOIN closed_runs AS c USING (run_id)
WHERE h.benchmark = $1 AND h.model = $2
    AND h.closed_at >= $3
    AND (h.closed_at, h.run_id) < ($4, $5)
    AND $7 IN ('', c.state)
ORDER BY h.closed_at DESC, h.run_id DESC
LIMIT $6::integer;

-- name: count_history: Count closed runs since a moment; reads nothing but the key ($1 benchmark, $2 model, each empty for all, $3 since)
SELECT count(*) AS runs
FROM history_entries
WHERE benchmark = $1 AND model = $2 AND closed_at >= $3;

-- name: sum_history: Sum up closed runs since a moment ($1 benchmark, $2 model, $3 state, each empty for all, $4 since)
SELECT
    count(*) AS runs,
    count(*) FILTER (WHERE c.state = 'completed') AS completed_runs,
    coalesce(sum(c.answered), 0)::bigint AS answered,
    coalesce(sum(c.failed), 0)::bigint AS failed
FROM history_entries AS h
JOIN closed_runs AS c USING (run_id)
WHERE h.benchmark = $1 AND h.model = $2 AND $3 IN ('', c.state) AND h.closed_at >= $4;

-- name: lease_run: Lease a completed run that waits for a work; those whose work was started less often come first ($1 comparison or baselines, $2 seconds)
-- Two replicas may find the same run: the second one gets no row.
INSERT INTO closed_run_leases AS held (run_id, work, epoch, starts, leased_until)
SELECT waiting.run_id, $1, waiting.epoch, 1, now() + make_interval(secs => $2)
FROM (
    (
        -- A run with a lease of this epoch is left to the third part, which knows how often it was started.
        SELECT run_id, epoch, 0 AS starts
        FROM run_records AS r
        WHERE $1 = 'comparison' AND state = 'completed' AND compared_epoch < epoch
            AND NOT EXISTS (SELECT FROM closed_run_leases AS l WHERE (l.run_id, l.work, l.epoch) = (r.run_id, $1, r.epoch))
        ORDER BY frozen_at
        LIMIT 1
    )
    UNION ALL
    (
        SELECT run_id, epoch, 0
        FROM closed_runs AS r
        WHERE $1 = 'baselines' AND state = 'completed' AND baselines IS NULL
            AND NOT EXISTS (SELECT FROM closed_run_leases AS l WHERE (l.run_id, l.work, l.epoch) = (r.run_id, $1, r.epoch))
        ORDER BY closed_at
        LIMIT 1
    )
    UNION ALL
    (
        SELECT run_id, epoch, l.starts
        FROM closed_run_leases AS l
        JOIN run_records AS r USING (run_id, epoch)
        WHERE l.work = $1 AND l.leased_until <= now() AND r.state = 'completed'
        ORDER BY l.starts, r.frozen_at
        LIMIT 1
    )
) AS waiting
ORDER BY starts
LIMIT 1
ON CONFLICT (run_id, work) DO UPDATE SET
    starts = CASE WHEN held.epoch = excluded.epoch THEN held.starts + 1 ELSE 1 END,
    epoch = excluded.epoch,
    leased_until = excluded.leased_until
WHERE held.leased_until <= now() OR held.epoch < excluded.epoch
RETURNING run_id::text AS run_id, starts;

-- name: renew_lease: Hold a lease for some more seconds ($1 run, $2 work, $3 seconds)
UPDATE closed_run_leases
SET leased_until = now() + make_interval(secs => $3)
WHERE run_id = $1 AND work = $2;

-- name: release_lease: End a lease; its start counts, or not ($1 run, $2 work, $3 whether it counts)
UPDATE closed_run_leases
SET leased_until = now(), starts = starts - CASE WHEN $3 THEN 0 ELSE 1 END
WHERE run_id = $1 AND work = $2;

-- name: delete_lease: Delete a lease ($1 run, $2 work)
DELETE FROM closed_run_leases WHERE run_id = $1 AND work = $2;

-- name: store_run_baselines: Store the baselines of a run's benchmark ($1 run, $2 baselines)
UPDATE closed_runs SET baselines = $2 WHERE run_id = $1;

-- name: read_task_baselines: Return the baselines of a sample set ($1 set, $2 digest of how it is scored)
SELECT baselines FROM task_baselines WHERE sample_set_id = $1 AND scoring_digest = $2;

-- name: add_task_baselines: Store the baselines of a sample set; the first ones stay ($1 set, $2 digest of how it is scored, $3 baselines)
INSERT INTO task_baselines (sample_set_id, scoring_digest, baselines)
VALUES ($1, $2, $3)
ON CONFLICT (sample_set_id, scoring_digest) DO NOTHING;

-- name: find_previous_run: Return the completed run of a model under the same conditions before some run ($1 run, $2 benchmark, $3 model, $4 conditions)
SELECT e.run_id::text AS run_id
FROM leaderboard_entries AS e
WHERE e.benchmark = $2 AND e.project_id = '' AND e.metric = 'score' AND e.model = $3 AND e.conditions = $4
    AND (e.closed_at, e.run_id) < (SELECT c.closed_at, c.run_id FROM closed_runs AS c WHERE c.run_id = $1)
ORDER BY e.closed_at DESC, e.run_id DESC
LIMIT 1;

-- name: mark_compared: Note that a run of an epoch was compared with the runs beside it ($1 run, $2 epoch)
UPDATE run_records SET compared_epoch = $2 WHERE run_id = $1 AND compared_epoch < $2;

-- name: list_latest_runs: Return the latest completed run of each of some models on a benchmark, one that can be ranked where there is one ($1 benchmark, $2 models)
SELECT DISTINCT ON (h.model) h.model, h.run_id::text AS run_id
FROM history_entries AS h
JOIN run_records AS r USING (run_id)
LEFT JOIN leaderboard_entries AS e
    ON e.run_id = h.run_id AND e.benchmark = h.benchmark AND e.project_id = '' AND e.metric = 'score' AND e.model = h.model
WHERE h.benchmark = $1 AND h.model = ANY ($2) AND r.state = 'completed'
ORDER BY
    h.model, (e.conditions <> '' AND NOT e.is_limited) IS TRUE DESC,
    h.closed_at DESC, h.run_id DESC;
