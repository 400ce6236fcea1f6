-- name: acquire_lease: Lease a work on an epoch, unless a replica holds it
INSERT INTO leases AS held (run_id, work, epoch, holder, starts, leased_until)
VALUES (:run_id, :work, :epoch, :holder, 1, now() + make_interval(secs => :seconds))
ON CONFLICT (run_id, work) DO UPDATE SET
    epoch = excluded.epoch,
    holder = excluded.holder,
    starts = CASE WHEN held.epoch = excluded.epoch THEN held.starts + 1 ELSE 1 END,
    share = 0,
    is_withdrawn = held.is_withdrawn AND held.epoch = excluded.epoch,
    leased_until = excluded.leased_until
WHERE held.leased_until <= now() OR held.epoch < excluded.epoch
RETURNING starts, is_withdrawn;

-- name: read_lease_share: Return how far a work on an epoch is
SELECT share FROM leases WHERE run_id = :run_id AND work = :work AND epoch = :epoch;

-- name: withdraw_lease: Take a work on an epoch from the replica that holds it
INSERT INTO leases AS held (run_id, work, epoch, holder, starts, is_withdrawn, leased_until)
VALUES (:run_id, :work, :epoch, :holder, 0, true, now())
ON CONFLICT (run_id, work) DO UPDATE SET
    epoch = excluded.epoch, holder = excluded.holder, starts = 0, is_withdrawn = true, leased_until = now()
WHERE held.epoch <= excluded.epoch;

-- name: renew_lease: Hold a lease for some more seconds; no row where it was taken away
UPDATE leases
SET share = :share, leased_until = now() + make_interval(secs => :seconds)
WHERE run_id = :run_id AND work = :work AND epoch = :epoch AND holder = :holder
RETURNING run_id;

-- name: release_lease: End a lease; its start counts, or not
UPDATE leases
SET leased_until = now(), starts = starts - CASE WHEN :counts THEN 0 ELSE 1 END
WHERE run_id = :run_id AND work = :work AND epoch = :epoch AND holder = :holder;

-- name: reset_lease: Forget how often a work was started, unless a replica holds its lease
DELETE FROM leases WHERE run_id = :run_id AND work = :work AND epoch = :epoch AND leased_until <= now();

-- name: delete_lease: Delete a lease whose work is done
DELETE FROM leases WHERE run_id = :run_id AND work = :work AND epoch = :epoch AND holder = :holder;
