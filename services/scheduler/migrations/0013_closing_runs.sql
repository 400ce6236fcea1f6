-- compatible-from: 0009_runs_of_batches.sql
-- Whether a running run only waits for its figures: it has no slot then. Its step is a text for people.
ALTER TABLE runs ADD COLUMN is_closing boolean NOT NULL DEFAULT false;

UPDATE runs SET is_closing = true WHERE state = 'running' AND starts_with(step, 'summarising');

CREATE OR REPLACE VIEW run_rows AS
SELECT run_id, username, project_id, suite, suite_version, dataset_id, dataset_name, model, pool, priority, ordered,
       scoring_method, state, epoch, step, planned_epoch, is_closed, total, reused_answers, created_at, queued_at,
       started_at, admitted_at, ran_seconds, finished_at, deadline, expires_at, error_reason, error_message, environment,
       price, final_counts, is_closing
FROM runs;

-- The columns of a view are those that it had when it was made.
CREATE OR REPLACE VIEW batch_rows AS
SELECT batch_id, batches.username AS batch_user, input_file_id, endpoint, completion_window, metadata,
       batches.created_at AS batch_created_at, batches.total AS batch_total, errors, finalized_at, output_file_id,
       error_file_id, output_expires_after_seconds, run_rows.*
FROM batches
LEFT JOIN run_rows USING (run_id);
