-- compatible-from: 0009_runs_of_batches.sql
-- What a run has to know of its batch, so that no statement about runs reads the tables of batches.
ALTER TABLE runs
    -- The batch that the run was made for: such a run is not retried, since the files of a batch are written once.
    ADD COLUMN made_for_batch text,
    -- The files of the batch are still to be written from what results recorded, so the run is not deleted.
    ADD COLUMN has_unwritten_files boolean NOT NULL DEFAULT false;

UPDATE runs
SET made_for_batch = batches.batch_id, has_unwritten_files = batches.finalized_at IS NULL
FROM batches
WHERE batches.run_id = runs.run_id;
