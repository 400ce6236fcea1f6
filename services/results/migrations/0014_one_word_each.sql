-- compatible-from: 0014_one_word_each.sql
-- Tables and columns have the names that contracts and code have for the same thing. No code before it can use the schema.

ALTER TABLE sample_sets RENAME COLUMN set_id TO sample_set_id;
ALTER TABLE samples RENAME COLUMN set_id TO sample_set_id;
ALTER TABLE dropped_sample_sets RENAME TO deleted_sample_sets;
ALTER TABLE deleted_sample_sets RENAME COLUMN set_id TO sample_set_id;
ALTER TABLE deleted_sample_sets RENAME CONSTRAINT dropped_sample_sets_pkey TO deleted_sample_sets_pkey;
ALTER TABLE run_tasks RENAME COLUMN set_id TO sample_set_id;
ALTER TABLE run_tasks RENAME CONSTRAINT run_tasks_set_id_fkey TO run_tasks_sample_set_id_fkey;
ALTER INDEX run_tasks_of_set RENAME TO run_tasks_of_sample_set;
ALTER TABLE task_baselines RENAME COLUMN set_id TO sample_set_id;
ALTER TABLE task_baselines RENAME CONSTRAINT task_baselines_set_id_fkey TO task_baselines_sample_set_id_fkey;

-- A mark is what a person sets on an answer.
ALTER TABLE export_marks RENAME TO resume_points;
ALTER TABLE resume_points RENAME COLUMN form TO tag;
ALTER TABLE resume_points RENAME CONSTRAINT export_marks_pkey TO resume_points_pkey;
ALTER TABLE resume_points RENAME CONSTRAINT export_marks_run_id_fkey TO resume_points_run_id_fkey;

-- A text: it is empty for the leaderboard of all projects.
ALTER TABLE leaderboard_entries RENAME COLUMN project TO project_id;

-- A rollout is the number of a repetition. This is the message RolloutSpec.
ALTER TABLE samples RENAME COLUMN rollout TO rollout_spec;

-- A data set is what a user uploads: what the rows of a task come from is their source. Text of a summary is replaced, since
-- figures keep their order; a quotation mark within a text has a backslash.
UPDATE run_tasks
SET provenance = (provenance - ARRAY['dataset', 'dataset_revision']) || jsonb_build_object(
    'row_source', provenance -> 'dataset', 'row_source_revision', provenance -> 'dataset_revision'
)
WHERE provenance ? 'dataset';
UPDATE run_summaries
SET summary = replace(
    replace(summary::text, '"dataset":', '"row_source":'), '"dataset_revision":', '"row_source_revision":'
)::json
WHERE summary::text LIKE '%"dataset":%';

-- Who works on a closed run, and until when. A try is a request of a worker, an attempt the dispatch of a shard.
ALTER TABLE close_claims RENAME TO close_leases;
ALTER TABLE close_leases RENAME COLUMN tries TO starts;
ALTER TABLE close_leases RENAME COLUMN claimed_until TO leased_until;
ALTER TABLE close_leases RENAME CONSTRAINT close_claims_pkey TO close_leases_pkey;
ALTER TABLE close_leases RENAME CONSTRAINT close_claims_run_id_fkey TO close_leases_run_id_fkey;
ALTER TABLE closed_run_claims RENAME TO closed_run_leases;
ALTER TABLE closed_run_leases RENAME COLUMN tries TO starts;
ALTER TABLE closed_run_leases RENAME COLUMN claimed_until TO leased_until;
ALTER TABLE closed_run_leases RENAME CONSTRAINT closed_run_claims_pkey TO closed_run_leases_pkey;
ALTER TABLE closed_run_leases RENAME CONSTRAINT closed_run_claims_run_id_fkey TO closed_run_leases_run_id_fkey;
