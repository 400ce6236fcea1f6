-- compatible-from: 0020_one_word_each.sql
-- Tables and columns have the names that contracts and code have for the same thing. No code before it can use the schema.

ALTER TABLE task_bundles RENAME COLUMN set_digest TO tasks_digest;
ALTER TABLE task_bundles RENAME CONSTRAINT task_bundles_set_digest_fkey TO task_bundles_tasks_digest_fkey;
ALTER TABLE task_set_uses RENAME COLUMN set_digest TO tasks_digest;
ALTER TABLE task_set_uses RENAME CONSTRAINT task_set_uses_set_digest_fkey TO task_set_uses_tasks_digest_fkey;
-- The digest of a version of a suite, "" for an upload: a document is a text.
ALTER TABLE task_set_uses RENAME COLUMN document TO suite_digest;

-- As in the schema of results: tasks of rollouts are something else.
ALTER TABLE tasks RENAME TO run_tasks;
ALTER TABLE run_tasks RENAME CONSTRAINT tasks_pkey TO run_tasks_pkey;
ALTER TABLE run_tasks RENAME CONSTRAINT tasks_run_id_fkey TO run_tasks_run_id_fkey;

ALTER TABLE runs RENAME COLUMN made_for_batch TO batch_id;
ALTER VIEW batch_rows RENAME COLUMN batch_user TO batch_username;
ALTER TABLE pool_demands RENAME COLUMN samples TO backlog_samples;
ALTER TABLE rollout_budgets RENAME COLUMN began_at TO started_at;

-- The keys of a stored order are the fields of an order. Both were always stored together.
UPDATE runs
SET ordered = (ordered - ARRAY['rollouts_group', 'max_parallel']) || jsonb_build_object(
    'parallel_group', ordered -> 'rollouts_group', 'parallel', ordered -> 'max_parallel'
)
WHERE ordered ? 'rollouts_group';

-- What a run does now is a phase: steps are those of tasks and agents.
ALTER TABLE runs RENAME COLUMN step TO phase;
ALTER VIEW run_rows RENAME COLUMN step TO phase;
ALTER VIEW batch_rows RENAME COLUMN step TO phase;

-- A data set is what a user uploads: what the rows of a task come from is their source.
ALTER TABLE run_tasks RENAME COLUMN dataset TO row_source;
ALTER TABLE run_tasks RENAME COLUMN dataset_revision TO row_source_revision;
UPDATE runs
SET environment = (
    SELECT jsonb_object_agg(regexp_replace(name, '^(task\..+\.)dataset(_revision)?$', '\1row_source\2'), value)
    FROM jsonb_each(environment) AS fact (name, value)
)
WHERE environment::text LIKE '%.dataset%';
