-- name: add_schedule: Store a schedule; no row if it is there
INSERT INTO schedules (
    schedule_id, username, project_id, cron, time_zone, ordered, name, tags, note, created_at, next_due_at, gate
)
VALUES (
    :schedule_id, :username, :project_id, :cron, :time_zone, :ordered, :name, :tags, :note, :created_at, :next_due_at, :gate
)
ON CONFLICT (schedule_id) DO NOTHING
RETURNING schedule_id;

-- name: count_schedules: Count the schedules of a user
SELECT count(*) FROM schedules WHERE username = :username;

-- name: find_schedule: Return a schedule with its latest firing
SELECT * FROM schedule_rows WHERE schedule_id = :schedule_id;

-- name: list_schedules: Return schedules, latest first
SELECT *
FROM schedule_rows
WHERE (:before_schedule_number::bigint IS NULL OR schedule_number < :before_schedule_number)
    AND (:username = '' OR username = :username)
    AND (:project_id::bigint IS NULL OR project_id = :project_id)
ORDER BY schedule_number DESC
LIMIT :limit;

-- name: list_firings: Return the firings of a schedule, latest first
SELECT due_at, fired_at, run_ids, problem, verdict, base_run_id, gate_text
FROM schedule_firings
WHERE schedule_id = :schedule_id
ORDER BY due_at DESC
LIMIT :limit;

-- name: pause_schedule: Pause a schedule; no row if it is paused
UPDATE schedules
SET paused_at = :paused_at, problem = '', tried_at = NULL
WHERE schedule_id = :schedule_id AND paused_at IS NULL
RETURNING schedule_id;

-- name: resume_schedule: Let a paused schedule go on; no row if it is not paused
UPDATE schedules
SET paused_at = NULL, resumed_at = :resumed_at, next_due_at = :next_due_at, problem = ''
WHERE schedule_id = :schedule_id AND paused_at IS NOT NULL
RETURNING schedule_id;

-- name: delete_schedule: Delete a schedule with its firings; no row if it is gone
DELETE FROM schedules WHERE schedule_id = :schedule_id RETURNING schedule_id;

-- name: list_due_schedules: Return schedules whose time has come
SELECT *
FROM schedule_rows
WHERE schedule_id IN (
    SELECT schedule_id
    FROM (
        -- User by user: those of one may wait for days for room in its queue.
        SELECT schedule_id, next_due_at, row_number() OVER (PARTITION BY username ORDER BY next_due_at) AS place
        FROM (
            SELECT schedule_id, username, next_due_at
            FROM schedules
            WHERE paused_at IS NULL AND next_due_at <= :now AND (tried_at IS NULL OR tried_at < :tried_before)
            ORDER BY next_due_at
            LIMIT 1000
        ) AS earliest
    ) AS due
    ORDER BY place, next_due_at
    -- The leader asks every two seconds.
    LIMIT 50
);

-- name: advance_schedule: Move a schedule from the time that is fired for to its next one; no row if it has changed
UPDATE schedules
SET next_due_at = :next_due_at, problem = '', tried_at = NULL
WHERE schedule_id = :schedule_id AND next_due_at = :next_due_before AND paused_at IS NULL
RETURNING schedule_id;

-- name: find_firing: Return a firing that has been stored
SELECT due_at FROM schedule_firings WHERE schedule_id = :schedule_id AND due_at = :due_at;

-- name: add_firing: Store a firing
INSERT INTO schedule_firings (schedule_id, due_at, fired_at, run_ids, problem, awaits_gate)
VALUES (:schedule_id, :due_at, :fired_at, :run_ids, :problem, :awaits_gate);

-- name: delete_old_firings: Delete the firings of a schedule but for the latest
DELETE FROM schedule_firings
WHERE schedule_id = :schedule_id
    AND due_at < (
        SELECT due_at FROM schedule_firings WHERE schedule_id = :schedule_id ORDER BY due_at DESC OFFSET :kept LIMIT 1
    );

-- name: find_barred_member: Return whether a user has had a role in a project and may not order in it any more
-- A row without a role is that of a member who was removed. Operators are no members.
SELECT true
FROM project_members
WHERE project_id = :project_id
    AND username = :username
    AND (role IS NULL OR role = 'viewer');

-- name: find_keyless_user: Return whether the last key of a schedule's user was revoked since the schedule was added or resumed
-- Who never had a key here signs in otherwise.
SELECT true
FROM schedules AS s
WHERE schedule_id = :schedule_id
    AND EXISTS (
        SELECT
        FROM api_keys AS k
        WHERE k.username = s.username AND k.revoked_at > coalesce(s.resumed_at, s.created_at)
    )
    AND NOT EXISTS (
        SELECT FROM api_keys AS k WHERE k.username = s.username AND k.revoked_at IS NULL AND k.expires_at > :now
    );

-- name: stop_schedule: Pause a schedule and record why; no row if it has changed
UPDATE schedules
SET paused_at = :paused_at, problem = :problem, tried_at = NULL
WHERE schedule_id = :schedule_id AND next_due_at = :next_due_before AND paused_at IS NULL
RETURNING schedule_id;

-- name: set_schedule_problem: Record why the firing of a schedule waits
UPDATE schedules
SET problem = :problem, tried_at = :tried_at
WHERE schedule_id = :schedule_id AND next_due_at = :next_due_before AND paused_at IS NULL
RETURNING schedule_id;

-- name: list_gated_firings: Return firings that await their gate and whose run is over or deleted, with the run to compare it to
SELECT
    f.schedule_id, s.name, s.username, s.project_id, s.ordered ->> 'model' AS model, s.gate, f.due_at, f.run_ids[1] AS run_id,
    r.state,
    coalesce(nullif(s.gate ->> 'base_run_id', '')::uuid, (
        SELECT earlier.run_ids[1]
        FROM schedule_firings AS earlier
        INNER JOIN runs AS before ON before.run_id = earlier.run_ids[1]
        WHERE earlier.schedule_id = f.schedule_id
            AND earlier.due_at < f.due_at
            AND before.is_closed
            AND before.state = 'completed'
        ORDER BY earlier.due_at DESC
        LIMIT 1
    )) AS base_run_id
FROM schedule_firings AS f
INNER JOIN schedules AS s ON s.schedule_id = f.schedule_id
LEFT JOIN runs AS r ON r.run_id = f.run_ids[1]
WHERE f.awaits_gate AND (r.run_id IS NULL OR r.is_closed)
ORDER BY f.due_at
LIMIT 50;

-- name: settle_gate: Record what the gate of a firing has decided; no row if it was recorded before
UPDATE schedule_firings
SET awaits_gate = false, verdict = :verdict, base_run_id = :base_run_id, gate_text = :gate_text
WHERE schedule_id = :schedule_id AND due_at = :due_at AND awaits_gate
RETURNING schedule_id;
