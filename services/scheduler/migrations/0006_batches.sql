-- Batches of the OpenAI protocol: runs over files, whose outcomes are written to files.

CREATE TABLE batches (
    batch_id                      text PRIMARY KEY,
    username                      text NOT NULL,
    input_file_id                 text NOT NULL,
    endpoint                      text NOT NULL,
    completion_window             text NOT NULL,
    metadata                      jsonb NOT NULL,
    created_at                    timestamptz NOT NULL,
    -- Lines of the input file; 0 if the batch failed before it had a run.
    total                         bigint NOT NULL,
    -- Null if the batch failed before it had a run.
    run_id                        uuid UNIQUE REFERENCES runs ON DELETE CASCADE,
    -- Why it failed before it had a run, as [{code, message, param, line}].
    errors                        jsonb NOT NULL DEFAULT '[]',
    -- When its files were written, or turned out to be empty.
    finalized_at                  timestamptz,
    output_file_id                text,
    error_file_id                 text,
    -- Lifetime of each written file; null: until it is deleted.
    output_expires_after_seconds  bigint,
    -- Derived from the user and the request id.
    request_id                    uuid UNIQUE
);

CREATE INDEX batches_newest ON batches (created_at DESC, batch_id DESC);
CREATE INDEX batches_of_file ON batches (input_file_id);
CREATE INDEX batches_to_finalize ON batches (run_id) WHERE finalized_at IS NULL AND run_id IS NOT NULL;

-- Batches with their runs, under column names that both can have.
CREATE VIEW batch_rows AS
SELECT batch_id, batches.username AS batch_user, input_file_id, endpoint, completion_window, metadata,
       batches.created_at AS batch_created_at, batches.total AS batch_total, errors, finalized_at, output_file_id,
       error_file_id, output_expires_after_seconds, run_rows.*
FROM batches
LEFT JOIN run_rows USING (run_id);
