-- name: announce_import: Record that results may store a run that is not added yet, or was not
-- Among the deleted runs: what an import that ends half-way leaves is deleted as they are.
INSERT INTO deleted_runs (run_id, deleted_at)
VALUES (:run_id, :deleted_at)
ON CONFLICT (run_id) DO UPDATE SET deleted_at = excluded.deleted_at;

-- name: give_up_import: Let results be asked now to delete what it has of a run; nothing where the run was added
-- No insert: the call that is cut short may have added the run, which is announced no more.
UPDATE deleted_runs SET deleted_at = :now WHERE run_id = :run_id;

-- name: take_announced_import: Return a run that is announced and not given up, and announce it no more
DELETE FROM deleted_runs WHERE run_id = :run_id AND deleted_at > :now RETURNING run_id;

-- name: find_added_import: Return a run that an earlier try of the same call has added
SELECT run_id FROM runs WHERE run_id = :run_id;

-- name: find_imported_run: Return the run of an earlier call with the same request id, and the digest of its file
SELECT run_id, environment ->> 'import.digest' AS digest FROM runs WHERE request_id = :request_id;

-- name: add_imported_run: Store a completed run
INSERT INTO runs (
    run_id, request_id, username, project_id, benchmark, model, pool, priority, ordered, scoring_method, state, epoch, created_at,
    queued_at, environment, suite_version, dataset_name, name, tags, note, planned_epoch, is_closed, total, started_at,
    finished_at, final_counts
)
VALUES (
    :run_id, :request_id, :username, :project_id, :benchmark, :model, :pool, :priority, :ordered, :scoring_method, 'completed', 1,
    :created_at, :created_at, :environment, nullif(:suite_version, 0), :dataset_name, :name, :tags, :note, 1, true, :total,
    :started_at, :finished_at, :final_counts
);
