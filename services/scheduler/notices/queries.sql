-- name: add_notice_target: Store a target of notices; no row if it is there
INSERT INTO notice_targets (target_id, username, channel, address, events, scope, project_id, created_at)
VALUES (:target_id, :username, :channel, :address, :events, :scope, :project_id, :created_at)
ON CONFLICT (target_id) DO NOTHING
RETURNING target_id;

-- name: list_notice_targets: Return the targets of a user, latest first
SELECT target_id, username, channel, address, events, scope, project_id, created_at
FROM notice_targets
WHERE username = :username
ORDER BY created_at DESC, target_id;

-- name: find_notice_target: Return a target of a user
SELECT target_id, username, channel, address, events, scope, project_id, created_at
FROM notice_targets
WHERE target_id = :target_id AND username = :username;

-- name: count_notice_targets: Count the targets of a user
SELECT count(*) FROM notice_targets WHERE username = :username;

-- name: delete_notice_target: Delete a target with its notices; no row if it is gone
DELETE FROM notice_targets WHERE target_id = :target_id RETURNING target_id;

-- name: add_notices: Store what is told of an event, once to each target that wants one of its kinds
INSERT INTO notices (notice_id, target_id, event_key, event, text, facts, created_at, next_try_at)
SELECT gen_random_uuid(), target_id, :event_key, kind, :text, :facts, :created_at, :created_at
FROM notice_targets
CROSS JOIN LATERAL (
    SELECT kind
    FROM unnest(:kinds::text[]) WITH ORDINALITY AS kinds (kind, place)
    WHERE kind = ANY (events)
    ORDER BY place
    LIMIT 1
) AS wanted
WHERE (
        (scope = 'all' AND (username = :username OR may_hear_of_all(notice_targets.username, :created_at)))
        OR (scope = 'own' AND username = :username)
        OR (scope = 'project' AND notice_targets.project_id = :project_id)
    )
    -- A row without a role is that of a member who was removed; that of `*` says that the project is shared no more.
    AND (
        (
            SELECT coalesce(bool_or(role IS NOT NULL), true)
            FROM project_members
            WHERE project_members.project_id = :project_id
                AND project_members.username IN (notice_targets.username, CASE scope WHEN 'project' THEN '*' END)
        )
        OR has_operator_key(notice_targets.username, :created_at)
    )
ON CONFLICT (target_id, event_key) DO NOTHING;

-- name: add_notice: Store a notice to one target
INSERT INTO notices (notice_id, target_id, event_key, event, text, facts, created_at, next_try_at)
VALUES (:notice_id, :target_id, :event_key, :event, :text, :facts, :created_at, :created_at)
ON CONFLICT (target_id, event_key) DO NOTHING;

-- name: lock_notice_targets: Let other tests of a user wait for this transaction
SELECT target_id FROM notice_targets WHERE username = :username ORDER BY target_id FOR UPDATE;

-- name: count_tests: Count the tests that a user asked for since a moment
SELECT count(*)
FROM notices
INNER JOIN notice_targets USING (target_id)
WHERE username = :username AND event = 'test' AND notices.created_at > :since;

-- name: list_notices: Return the notices to a user, latest first
SELECT notice_number, notice_id, target_id, event, text, facts, notices.created_at, attempts, delivered_at, next_try_at, problem
FROM notices
INNER JOIN notice_targets USING (target_id)
WHERE username = :username
    AND (:target_id::uuid IS NULL OR target_id = :target_id)
    AND (:before_notice_number::bigint IS NULL OR notice_number < :before_notice_number)
ORDER BY notice_number DESC
LIMIT :limit;

-- name: claim_notices: Count an attempt for some notices that are due, and return them with their targets
UPDATE notices
-- Nothing comes after the last attempt, also where it ends its sender.
SET attempts = attempts + 1, next_try_at = CASE WHEN attempts + 1 < :max_attempts THEN :claimed_until::timestamptz END
FROM notice_targets
WHERE notice_targets.target_id = notices.target_id
    AND notice_id IN (
        SELECT notice_id
        FROM (
            SELECT notice_id, next_try_at, row_number() OVER (PARTITION BY username ORDER BY place, next_try_at) AS turn
            FROM (
                -- Target by target, and user by user: what is away must not hold up the others.
                SELECT
                    notice_id,
                    username,
                    next_try_at,
                    row_number() OVER (PARTITION BY target_id ORDER BY next_try_at) AS place
                FROM (
                    SELECT notice_id, target_id, next_try_at
                    FROM notices
                    WHERE next_try_at <= :now
                    ORDER BY next_try_at
                    LIMIT 1000
                ) AS earliest
                INNER JOIN notice_targets USING (target_id)
            ) AS due
        ) AS of_users
        ORDER BY turn, next_try_at
        LIMIT 50
    )
RETURNING notices.notice_id, notices.target_id, event, text, facts, notices.created_at, attempts, delivered_at, next_try_at,
    problem, username, channel, address, events, scope, project_id, notice_targets.created_at AS target_created_at;

-- name: settle_notice: Record what became of an attempt
UPDATE notices
SET problem = :problem, next_try_at = :next_try_at, delivered_at = :delivered_at
WHERE notice_id = :notice_id AND attempts = :attempts AND delivered_at IS NULL
RETURNING notice_id;

-- name: delete_old_notices: Delete notices that were delivered or given up long ago
DELETE FROM notices WHERE next_try_at IS NULL AND created_at < :created_before;
