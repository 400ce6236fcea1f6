-- Rows of data sets: what names them, what they ask for themselves, and marks on answers to them.

ALTER TABLE samples
    -- Empty for a row of a suite.
    ADD COLUMN row_id text NOT NULL DEFAULT '',
    -- Parameters of the row's own, as JSON object text; empty for none.
    ADD COLUMN params_json text NOT NULL DEFAULT '';

-- The provider's whole answer, as JSON object text, where more was asked for than a text; empty else. Text and not jsonb:
-- it is only ever handed on.
ALTER TABLE outcomes ADD COLUMN body_json text NOT NULL DEFAULT '';

-- Name of the data set whose id stands in `suite`; empty for a suite.
ALTER TABLE run_records ADD COLUMN dataset_name text NOT NULL DEFAULT '';

-- Answers that somebody found right.
CREATE TABLE golden_answers (
    run_id     uuid NOT NULL REFERENCES run_records ON DELETE CASCADE,
    sample     bigint NOT NULL,
    rollout    integer NOT NULL,
    username   text NOT NULL,
    marked_at  timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (run_id, sample, rollout)
);

-- How many bytes the export of a closed run has up to some outcomes, so that one that was cut off is gone on with
-- without being made anew from its first byte.
CREATE TABLE export_marks (
    run_id       uuid NOT NULL REFERENCES run_records ON DELETE CASCADE,
    epoch        integer NOT NULL,
    -- Format and task.
    form         text NOT NULL,
    -- Bytes of the file before the outcomes behind (sample, rollout); the last mark of a file that is measured to its end
    -- has no outcome behind it.
    first_byte   bigint NOT NULL,
    sample       bigint NOT NULL,
    rollout      integer NOT NULL,
    is_end       boolean NOT NULL,
    PRIMARY KEY (run_id, epoch, form, first_byte, is_end)
);
