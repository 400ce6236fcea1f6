-- name: add_summary: Store the summary of a frozen epoch; an existing one stays ($1 run, $2 epoch, $3 summary)
INSERT INTO run_summaries (run_id, epoch, summary)
VALUES ($1, $2, $3)
ON CONFLICT (run_id, epoch) DO NOTHING;

-- name: read_summary: Return the summary stored for an epoch ($1 run, $2 epoch)
SELECT summary FROM run_summaries WHERE run_id = $1 AND epoch = $2;

-- name: lock_summary: Return the summary of an epoch, held until the transaction ends ($1 run, $2 epoch)
SELECT summary FROM run_summaries WHERE run_id = $1 AND epoch = $2 FOR UPDATE;

-- name: change_summary: Replace the summary of an epoch ($1 run, $2 epoch, $3 summary)
UPDATE run_summaries SET summary = $3 WHERE run_id = $1 AND epoch = $2;

-- name: change_final_state: Change how a closed epoch ended ($1 run, $2 epoch, $3 state)
UPDATE run_records
SET state = $3
WHERE run_id = $1 AND epoch = $2 AND is_frozen
RETURNING run_id;

-- name: lock_frozen_epoch: Keep a frozen epoch from being left before the transaction ends ($1 run, $2 epoch)
-- A retry opens a new epoch: it waits, or this summary is not stored.
SELECT epoch FROM run_records WHERE run_id = $1 AND epoch = $2 AND is_frozen FOR SHARE;

-- name: lease_close: Lease the close of an epoch, unless another replica holds it ($1 run, $2 epoch, $3 holder, $4 seconds)
INSERT INTO close_leases AS held (run_id, epoch, holder, starts, leased_until)
VALUES ($1, $2, $3, 1, now() + make_interval(secs => $4))
ON CONFLICT (run_id) DO UPDATE SET
    epoch = excluded.epoch,
    holder = excluded.holder,
    starts = CASE WHEN held.epoch = excluded.epoch THEN held.starts + 1 ELSE 1 END,
    share = 0,
    is_withdrawn = held.is_withdrawn AND held.epoch = excluded.epoch,
    leased_until = excluded.leased_until
WHERE held.leased_until <= now() OR held.epoch < excluded.epoch
RETURNING starts, is_withdrawn;

-- name: read_close_share: Return how far the close of an epoch is ($1 run, $2 epoch)
SELECT share FROM close_leases WHERE run_id = $1 AND epoch = $2;

-- name: withdraw_close: Take the close of an epoch from who holds it: no figures are to be computed ($1 run, $2 epoch, $3 holder)
INSERT INTO close_leases AS held (run_id, epoch, holder, starts, is_withdrawn, leased_until)
VALUES ($1, $2, $3, 0, true, now())
ON CONFLICT (run_id) DO UPDATE SET
    epoch = excluded.epoch, holder = excluded.holder, starts = 0, is_withdrawn = true, leased_until = now()
WHERE held.epoch <= excluded.epoch;

-- name: renew_close_lease: Hold a lease for some more seconds; no row where it was taken away ($1 run, $2 epoch, $3 holder, $4 share, $5 seconds)
UPDATE close_leases
SET share = $4, leased_until = now() + make_interval(secs => $5)
WHERE run_id = $1 AND epoch = $2 AND holder = $3
RETURNING run_id;

-- name: release_close_lease: End a lease; its start counts, or not ($1 run, $2 epoch, $3 holder, $4 whether it counts)
UPDATE close_leases
SET leased_until = now(), starts = starts - CASE WHEN $4 THEN 0 ELSE 1 END
WHERE run_id = $1 AND epoch = $2 AND holder = $3;

-- name: delete_close_lease: Delete a lease whose summary is stored ($1 run, $2 epoch, $3 holder)
DELETE FROM close_leases WHERE run_id = $1 AND epoch = $2 AND holder = $3;
