-- name: add_summary: Store the summary of a frozen epoch; an existing one stays ($1 run, $2 epoch, $3 summary)
INSERT INTO run_summaries (run_id, epoch, summary)
VALUES ($1::uuid, $2::integer, $3::json)
ON CONFLICT (run_id, epoch) DO NOTHING;

-- name: read_summary: Return the summary stored for an epoch ($1 run, $2 epoch)
SELECT summary FROM run_summaries WHERE run_id = $1::uuid AND epoch = $2::integer;

-- name: lock_summary: Return the summary of an epoch, held until the transaction ends ($1 run, $2 epoch)
SELECT summary FROM run_summaries WHERE run_id = $1::uuid AND epoch = $2::integer FOR UPDATE;

-- name: change_summary: Replace the summary of an epoch ($1 run, $2 epoch, $3 summary)
UPDATE run_summaries SET summary = $3::json WHERE run_id = $1::uuid AND epoch = $2::integer;

-- name: change_final_state: Change how a closed epoch ended ($1 run, $2 epoch, $3 state)
UPDATE run_records
SET state = $3::text
WHERE run_id = $1::uuid AND epoch = $2::integer AND is_frozen
RETURNING run_id;

-- name: hold_closed_epoch: Keep a frozen epoch from being left before the transaction ends ($1 run, $2 epoch)
-- A retry opens a new epoch: it waits, or this summary is not stored.
SELECT epoch FROM run_records WHERE run_id = $1::uuid AND epoch = $2::integer AND is_frozen FOR SHARE;
