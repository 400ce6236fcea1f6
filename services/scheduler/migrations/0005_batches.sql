-- Runs over data sets, files that batches read and write, and batches.

-- `suite` of such a run is the id of its data set: what its figures are listed and compared by.
ALTER TABLE runs
    ADD COLUMN dataset_id text,
    ADD COLUMN dataset_name text NOT NULL DEFAULT '',
    -- When its completion window closes, waiting included; null: the limit of a run holds, which counts while it is running.
    ADD COLUMN expires_at timestamptz;

CREATE INDEX runs_expiring ON runs (expires_at)
    WHERE expires_at IS NOT NULL AND state IN ('pending', 'running', 'paused');

-- Runs for which a data set is kept: it is read until they are planned, and shown until they end.
CREATE INDEX runs_using_dataset ON runs (dataset_id)
    WHERE dataset_id IS NOT NULL AND state IN ('pending', 'running', 'paused');

CREATE INDEX runs_newest_of_datasets ON runs (created_at DESC, run_id DESC) WHERE dataset_id IS NOT NULL;
CREATE INDEX runs_newest_of_suites ON runs (created_at DESC, run_id DESC) WHERE dataset_id IS NULL;

-- Runs that were deleted here and may still be known to results.
CREATE TABLE deleted_runs (
    run_id      uuid PRIMARY KEY,
    deleted_at  timestamptz NOT NULL DEFAULT now()
);

-- Files byte by byte, under `prefix` in the object store. What a batch reads was checked: it has a content, as a data set
-- has, or faults.
CREATE TABLE files (
    file_id      text PRIMARY KEY,
    name         text NOT NULL,
    username     text NOT NULL,
    -- 'batch' or 'batch_output'.
    purpose      text NOT NULL,
    size_bytes   bigint NOT NULL,
    created_at   timestamptz NOT NULL,
    expires_at   timestamptz,
    prefix       text NOT NULL UNIQUE,
    -- Of the content; null where there is none.
    digest       text,
    format       text,
    -- The first ones, as [{line, field, problem, kind}].
    faults       jsonb NOT NULL DEFAULT '[]',
    fault_count  bigint NOT NULL DEFAULT 0,
    -- Of the user and his request id, so that a repeated upload finds the file of the first.
    request_id   uuid UNIQUE,
    FOREIGN KEY (digest, format) REFERENCES dataset_contents
);

CREATE INDEX files_newest ON files (created_at DESC, file_id DESC);
CREATE INDEX files_of_content ON files (digest, format);
CREATE INDEX files_expiring ON files (expires_at) WHERE expires_at IS NOT NULL;

CREATE TABLE batches (
    batch_id           text PRIMARY KEY,
    username           text NOT NULL,
    input_file_id      text NOT NULL,
    endpoint           text NOT NULL,
    completion_window  text NOT NULL,
    metadata           jsonb NOT NULL,
    created_at         timestamptz NOT NULL,
    -- Lines of its file; 0 where it failed before it had a run.
    total              bigint NOT NULL,
    -- Null where it failed before it had a run.
    run_id             uuid UNIQUE REFERENCES runs ON DELETE CASCADE,
    -- Why it failed before it had a run, as [{code, message, param, line}].
    errors             jsonb NOT NULL DEFAULT '[]',
    -- When its files were written, or were found to be empty.
    finalized_at       timestamptz,
    output_file_id     text,
    error_file_id      text,
    -- Of the user and his request id.
    request_id         uuid UNIQUE
);

CREATE INDEX batches_newest ON batches (created_at DESC, batch_id DESC);
CREATE INDEX batches_of_file ON batches (input_file_id);
CREATE INDEX batches_to_finalize ON batches (run_id) WHERE finalized_at IS NULL AND run_id IS NOT NULL;
