-- name: add_summary: Store the summary of a frozen epoch; an existing one stays
INSERT INTO run_summaries (run_id, epoch, summary)
VALUES (:run_id, :epoch, :summary)
ON CONFLICT (run_id, epoch) DO NOTHING;

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

-- name: lease_close: Lease the close of an epoch, unless another replica holds it
INSERT INTO close_leases AS held (run_id, epoch, holder, starts, leased_until)
VALUES (:run_id, :epoch, :holder, 1, now() + make_interval(secs => :seconds))
ON CONFLICT (run_id) DO UPDATE SET
    epoch = excluded.epoch,
    holder = excluded.holder,
    starts = CASE WHEN held.epoch = excluded.epoch THEN held.starts + 1 ELSE 1 END,
    share = 0,
    is_withdrawn = held.is_withdrawn AND held.epoch = excluded.epoch,
    leased_until = excluded.leased_until
WHERE held.leased_until <= now() OR held.epoch < excluded.epoch
RETURNING starts, is_withdrawn;

-- name: read_close_share: Return how far the close of an epoch is
SELECT share FROM close_leases WHERE run_id = :run_id AND epoch = :epoch;

-- name: withdraw_close: Take the close of an epoch from who holds it: no figures are to be computed
INSERT INTO close_leases AS held (run_id, epoch, holder, starts, is_withdrawn, leased_until)
VALUES (:run_id, :epoch, :holder, 0, true, now())
ON CONFLICT (run_id) DO UPDATE SET
    epoch = excluded.epoch, holder = excluded.holder, starts = 0, is_withdrawn = true, leased_until = now()
WHERE held.epoch <= excluded.epoch;

-- name: renew_close_lease: Hold a lease for some more seconds; no row where it was taken away
UPDATE close_leases
SET share = :share, leased_until = now() + make_interval(secs => :seconds)
WHERE run_id = :run_id AND epoch = :epoch AND holder = :holder
RETURNING run_id;

-- name: release_close_lease: End a lease; its start counts, or not
UPDATE close_leases
SET leased_until = now(), starts = starts - CASE WHEN :counts THEN 0 ELSE 1 END
WHERE run_id = :run_id AND epoch = :epoch AND holder = :holder;

-- name: delete_close_lease: Delete a lease whose summary is stored
DELETE FROM close_leases WHERE run_id = :run_id AND epoch = :epoch AND holder = :holder;
