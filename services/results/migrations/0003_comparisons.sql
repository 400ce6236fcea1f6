-- The samples of a set that share a passage: none in most sets, which takes one look to see.
CREATE INDEX samples_in_clusters ON samples (set_id, position) WHERE cluster <> '';

-- The epoch of a run that was last compared with the runs beside it; a crash between its close and its comparisons
-- leaves it behind `epoch`.
ALTER TABLE run_records ADD COLUMN compared_epoch integer NOT NULL DEFAULT 0;

-- Completed runs (state 4) that wait to be compared.
CREATE INDEX run_records_to_compare ON run_records (closed_at) WHERE state = 4 AND compared_epoch < epoch;

-- What two complete runs prove about each other, first minus second: one row per metric of the suite as a whole (task
-- is empty) and one per task in its main metric. Figures of epochs that a run has left are not read any more.
CREATE TABLE run_comparisons (
    first_run_id uuid NOT NULL REFERENCES run_records ON DELETE CASCADE,
    second_run_id uuid NOT NULL REFERENCES run_records ON DELETE CASCADE,
    task text NOT NULL,
    metric text NOT NULL,
    first_epoch integer NOT NULL,
    second_epoch integer NOT NULL,
    difference double precision,
    ci_low double precision,
    ci_high double precision,
    -- Two-sided, not corrected.
    p_value double precision,
    -- The verdict on it alone, with the number of the contract.
    verdict smallint NOT NULL,
    pairs bigint NOT NULL,
    test text NOT NULL,
    -- In this order a board reads what it needs of a run in one piece, whatever else was compared.
    PRIMARY KEY (first_run_id, task, metric, second_run_id)
);

CREATE INDEX run_comparisons_of_second ON run_comparisons (second_run_id);
