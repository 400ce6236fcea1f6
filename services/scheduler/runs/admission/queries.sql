-- `SELECT *` reads the view run_rows, which lists its columns (schema.sql).

-- name: read_admission_need: Return whether a run waits for a slot; no row if the term has ended
SELECT EXISTS (SELECT FROM runs WHERE state = 'pending') AS is_needed
FROM leadership WHERE fencing_token = :fencing_token;

-- name: lock_admission: Let one transaction after the other assign slots
-- `lock_term` is shared by all writes of a leader, so it does not keep two admissions apart. This does.
SELECT pg_advisory_xact_lock(hashtext('proctor admission'));

-- name: lock_slots: Return the running runs that have a slot and keep them from ending before this transaction
-- A run that is closing only waits for its figures: it counts for no limit.
SELECT run_id, username, priority, admitted_at, planned_epoch = epoch AS is_planned
FROM runs
WHERE state = 'running' AND NOT is_closing
-- Rows that refer to the run by its key, like shards, are still written meanwhile.
FOR NO KEY UPDATE;

-- name: list_queue_positions: Return pending runs with their positions, in the order in which they start
-- The order is that of priority, fair share of the user, and age.
-- A user's runs count one after the other behind the user's running ones, those first that have run before. Among equal
-- shares the age is that of the user's last admission, so that a user with many pending runs is not first every time.
WITH shares AS (
    SELECT username, count(*) AS slots FROM runs
    WHERE state = 'running' AND NOT is_closing
    GROUP BY username
), requests AS (
    SELECT
        run_id, username, priority, queued_at,
        coalesce(slots, 0) + row_number() OVER (
            PARTITION BY username ORDER BY priority, ran_seconds > 0 DESC, queued_at, run_id
        ) AS share
    FROM runs
    LEFT JOIN shares USING (username)
    WHERE state = 'pending'
), positions AS (
    SELECT
        run_id, username, priority,
        row_number() OVER (ORDER BY priority, share, greatest(queued_at, admitted_at), run_id) AS position
    FROM requests
    LEFT JOIN user_admissions USING (username)
)
SELECT run_id, username, priority, position
FROM positions
WHERE :run_ids::uuid[] IS NULL OR run_id = ANY (:run_ids)
ORDER BY position
LIMIT :limit;

-- name: preempt_runs: Make running runs pending again in the same epoch
UPDATE runs
SET state = 'pending', queued_at = :queued_at, phase = '', is_closing = false, admitted_at = NULL, deadline = NULL,
    ran_seconds = ran_seconds + greatest(extract(epoch FROM :queued_at - admitted_at)::double precision, 0)
WHERE run_id = ANY (:run_ids) AND state = 'running'
RETURNING run_id;

-- name: start_runs: Give slots to pending runs, each until its completion window ends or its time is used up
WITH admitted AS (
    UPDATE runs
    SET state = 'running', is_closing = false, started_at = coalesce(started_at, :admitted_at), admitted_at = :admitted_at,
        -- Time in earlier slots counts: a run that is preempted again and again still ends.
        deadline = coalesce(expires_at, :admitted_at + make_interval(secs => :seconds - ran_seconds))
    -- Its user may have paused or cancelled it since it was read.
    WHERE run_id = ANY (:run_ids) AND state = 'pending'
    RETURNING run_id, username, priority, queued_at
), noted AS (
    INSERT INTO user_admissions (username, admitted_at)
    SELECT DISTINCT username, :admitted_at FROM admitted
    ON CONFLICT (username) DO UPDATE SET admitted_at = excluded.admitted_at
)
SELECT run_id, priority, greatest(extract(epoch FROM :admitted_at - queued_at)::double precision, 0) AS waited_seconds
FROM admitted;

-- name: delete_admissions: Delete admissions before a time of users without pending, running or paused runs
DELETE FROM user_admissions
WHERE admitted_at < :admitted_before
    -- One scan for each state, so that the partial indexes by state are used.
    AND username NOT IN (
        SELECT username FROM runs WHERE state = 'pending'
        UNION ALL SELECT username FROM runs WHERE state = 'running'
        UNION ALL SELECT username FROM runs WHERE state = 'paused'
    );

-- name: read_one_snapshot: Let all statements of this transaction read the same state
SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY;

-- name: list_running_runs: Return the running runs in the order of their admission
SELECT * FROM run_rows WHERE state = 'running' ORDER BY admitted_at, run_id;

-- name: list_pending_runs: Return those of some runs that are pending, in the given order
SELECT *
FROM run_rows
WHERE run_id = ANY (:run_ids) AND state = 'pending'
ORDER BY array_position(:run_ids, run_id);

-- name: list_paused_runs: Return the paused runs, latest first
SELECT * FROM run_rows WHERE state = 'paused' ORDER BY queued_at DESC, run_id DESC LIMIT :limit;

-- name: count_runs_by_user: Count each user's running and pending runs
SELECT username, sum(is_running)::integer AS running, sum(1 - is_running)::integer AS pending
FROM (
    SELECT username, 1 AS is_running FROM runs WHERE state = 'running'
    UNION ALL
    SELECT username, 0 FROM runs WHERE state = 'pending'
) AS queued
GROUP BY username
ORDER BY username;

-- name: list_past_runs: Return the last completed runs of each benchmark and model
SELECT benchmark, model, ordered, total, seconds
FROM unnest(:benchmarks::text[], :models::text[]) AS wanted (benchmark, model)
CROSS JOIN LATERAL (
    SELECT
        ordered, total,
        earlier_seconds + ran_seconds
            + extract(epoch FROM finished_at - coalesce(admitted_at, started_at))::double precision AS seconds
    FROM runs
    WHERE runs.benchmark = wanted.benchmark AND runs.model = wanted.model
        -- A run with reused answers asked only a part, so its speed misleads. A retried one asked all of it in all of its epochs.
        -- An imported one, without a pool, asked nothing.
        AND state = 'completed' AND total > 0 AND reused_answers = 0 AND pool <> ''
    ORDER BY finished_at DESC
    -- Recent speeds count, since servers and models change, and one run alone may be chance.
    LIMIT 5
) AS past;

-- name: list_planned_rows: Return the samples by task of the last completed runs of each benchmark
-- A data set counts as a run over all of its rows.
SELECT
    dataset_id AS benchmark, '[]'::jsonb AS tasks, NULL::integer AS row_limit,
    jsonb_build_object('rows', row_count) AS samples
FROM dataset_rows
WHERE dataset_id = ANY (:benchmarks)
UNION ALL
SELECT benchmark, tasks, row_limit, samples
FROM unnest(:benchmarks) AS wanted (benchmark)
CROSS JOIN LATERAL (
    SELECT
        ordered -> 'tasks' AS tasks, (ordered ->> 'limit')::integer AS row_limit,
        coalesce(
            (SELECT jsonb_object_agg(task, sample_count) FROM run_tasks WHERE run_tasks.run_id = runs.run_id), '{}'
        ) AS samples
    FROM runs
    -- An imported run, without a pool, has the rows that its log has.
    WHERE runs.benchmark = wanted.benchmark AND state = 'completed' AND total > 0 AND pool <> ''
    ORDER BY created_at DESC
    -- Enough that one of them was without a limit, and few enough for each look at the queue.
    LIMIT 20
) AS latest;

-- name: count_pending_and_running_runs: Count pending and running runs by priority, with when the oldest was queued
SELECT 'pending' AS state, priority, count(*) AS runs, min(queued_at) AS oldest
FROM runs
WHERE state = 'pending'
GROUP BY priority
UNION ALL
SELECT 'running', priority, count(*), min(queued_at)
FROM runs
WHERE state = 'running'
GROUP BY priority;
