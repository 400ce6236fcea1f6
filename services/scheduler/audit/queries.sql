-- name: add_audit_record: Store a record unless a repeated transaction has
INSERT INTO audit_records (
    recorded_at, username, key_id, address, action, kind, object_id, detail, outcome, times, is_listed, project_id
)
VALUES (
    :recorded_at, :username, :key_id, :address, :action, :kind, :object_id, :detail, :outcome, :times, :is_listed, :project_id
)
ON CONFLICT DO NOTHING;

-- name: list_changes: Return changes, latest first
SELECT record_id, recorded_at, username, action, kind, object_id, detail
FROM audit_records
WHERE is_listed AND (:before_record_id::bigint IS NULL OR record_id < :before_record_id)
ORDER BY record_id DESC
LIMIT :limit;

-- name: list_changes_of: Return the changes of an object, latest first
SELECT record_id, recorded_at, username, action, kind, object_id, detail
FROM audit_records
WHERE is_listed
    AND object_id = :object_id
    AND (:kind::text IS NULL OR kind = :kind)
    AND (:before_record_id::bigint IS NULL OR record_id < :before_record_id)
ORDER BY record_id DESC
LIMIT :limit;

-- name: list_audit_records: Return the records that have all that is named, latest first
SELECT record_id, recorded_at, username, key_id, address, action, kind, object_id, detail, outcome, times
FROM audit_records
WHERE (:before_record_id::bigint IS NULL OR record_id < :before_record_id)
    AND (:username::text IS NULL OR username = :username)
    AND (:action::text IS NULL OR action = :action)
    AND (:object_id::text IS NULL OR object_id = :object_id)
    AND (:outcome::text IS NULL OR outcome = :outcome)
    AND (:since::timestamptz IS NULL OR recorded_at >= :since)
ORDER BY record_id DESC
LIMIT :limit;

-- name: allow_audit_deletion: Let this transaction delete old records
SELECT set_config('proctor.deletes_old_audit_records', 'on', true);

-- name: delete_oldest_audit_records: Delete the oldest records of an outcome, by age and by number
DELETE FROM audit_records
WHERE record_id IN (
    SELECT record_id
    FROM audit_records
    WHERE outcome = :outcome
        AND (
            recorded_at < :recorded_before
            OR record_id <= (
                SELECT record_id
                FROM audit_records
                WHERE outcome = :outcome
                ORDER BY record_id DESC
                LIMIT 1 OFFSET :kept
            )
        )
    ORDER BY record_id
    LIMIT :limit
)
RETURNING record_id;
