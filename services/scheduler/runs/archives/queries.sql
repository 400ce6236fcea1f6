-- name: archive_run: Let the leader archive the answers of a closed run that no file or judge waits for
UPDATE runs
SET archive_state = 'archiving'
WHERE run_id = :run_id AND is_closed AND archive_state IS NULL AND NOT has_unwritten_files AND NOT has_judges_to_order
RETURNING project_id;

-- name: restore_run: Let the leader restore the answers of an archived run
UPDATE runs
SET archive_state = 'restoring'
WHERE run_id = :run_id AND archive_state IN ('archiving', 'archived')
RETURNING project_id;

-- name: list_moving_runs: Return runs whose answers the leader has to move
SELECT run_id, archive_state FROM runs WHERE archive_state IN ('archiving', 'restoring') ORDER BY run_id LIMIT :limit;

-- name: set_archived: Record that the answers of a run are archived
UPDATE runs SET archive_state = 'archived' WHERE run_id = :run_id AND archive_state = 'archiving' RETURNING run_id;

-- name: set_restored: Record that the answers of a run are in Postgres again
UPDATE runs SET archive_state = NULL WHERE run_id = :run_id AND archive_state = :before RETURNING run_id;

-- name: list_runs_to_archive: Return the oldest closed runs that are old enough to be archived, with the days that decided it
SELECT r.run_id, decided.days
FROM runs AS r
LEFT JOIN projects AS p ON p.project_id = r.project_id
CROSS JOIN LATERAL (SELECT coalesce(p.archive_after_days, nullif(:archive_after_days, 0)) AS days) AS decided
WHERE r.is_closed
    AND r.archive_state IS NULL
    AND NOT r.has_unwritten_files
    AND NOT r.has_judges_to_order
    AND r.finished_at < :now::timestamptz - make_interval(days => decided.days)
ORDER BY r.finished_at
LIMIT :limit;

-- name: list_runs_beyond_bytes: Return the oldest closed runs whose answers are beyond the bytes that all together may take
WITH bounds AS (
    -- One for each project that has its own, and one for all others.
    SELECT project_id, archive_over_bytes AS most FROM projects WHERE archive_over_bytes IS NOT NULL
    UNION ALL
    SELECT NULL, given.most
    FROM (SELECT nullif(:archive_over_bytes, 0::bigint) AS most) AS given
    WHERE given.most IS NOT NULL
), summed AS (
    SELECT
        r.run_id, r.finished_at, b.most, r.has_unwritten_files OR r.has_judges_to_order AS is_awaited,
        sum(r.answer_bytes) OVER (PARTITION BY b.project_id ORDER BY r.finished_at DESC, r.run_id) AS bytes
    FROM runs AS r
    LEFT JOIN projects AS p ON p.project_id = r.project_id AND p.archive_over_bytes IS NOT NULL
    JOIN bounds AS b ON b.project_id IS NOT DISTINCT FROM p.project_id
    WHERE r.is_closed AND r.archive_state IS NULL
)
SELECT run_id, most
FROM summed
WHERE bytes > most AND NOT is_awaited
ORDER BY finished_at
LIMIT :limit;
