-- name: add_summary: Store the summary of a frozen epoch; an existing one stays, or is replaced
INSERT INTO run_summaries (run_id, epoch, summary)
VALUES (:run_id, :epoch, :summary)
ON CONFLICT (run_id, epoch) DO UPDATE SET summary = excluded.summary WHERE :replaces;

-- name: read_summary: Return the summary stored for an epoch
SELECT summary FROM run_summaries WHERE run_id = :run_id AND epoch = :epoch;

-- name: lock_summary: Return the summary of an epoch, held until the transaction ends
SELECT summary FROM run_summaries WHERE run_id = :run_id AND epoch = :epoch FOR UPDATE;

-- name: change_summary: Replace the summary of an epoch
UPDATE run_summaries SET summary = :summary WHERE run_id = :run_id AND epoch = :epoch;

-- name: change_final_state: Change how a closed epoch ended
UPDATE run_records
SET state = :state
WHERE run_id = :run_id AND epoch = :epoch AND is_frozen
RETURNING run_id;

-- name: lock_frozen_epoch: Keep a frozen epoch from being left before the transaction ends
-- A retry opens a new epoch: it waits, or this summary is not stored.
SELECT epoch FROM run_records WHERE run_id = :run_id AND epoch = :epoch AND is_frozen FOR SHARE;
