-- Data sets and files that users upload. Their bytes are in the object store, under prefixes that are all recorded here.

-- The checked rows of an uploaded file. Equal uploads share one content.
CREATE TABLE dataset_contents (
    -- SHA-256 of the file as uploaded.
    digest        text NOT NULL,
    format        text NOT NULL,
    prefix        text NOT NULL UNIQUE,
    size_bytes    bigint NOT NULL,
    row_count     bigint NOT NULL CHECK (row_count > 0),
    target_count  bigint NOT NULL,
    models        text[] NOT NULL,
    endpoint      text NOT NULL,
    PRIMARY KEY (digest, format)
);

CREATE TABLE datasets (
    dataset_id   text PRIMARY KEY,
    name         text NOT NULL,
    username     text NOT NULL,
    uploaded_at  timestamptz NOT NULL,
    digest       text NOT NULL,
    format       text NOT NULL,
    -- Derived from the user and the request id, so that a repeated upload finds the data set of the first one.
    request_id   uuid UNIQUE,
    FOREIGN KEY (digest, format) REFERENCES dataset_contents
);

CREATE INDEX datasets_newest ON datasets (uploaded_at DESC, dataset_id DESC);
CREATE INDEX datasets_of_content ON datasets (digest, format);

-- Files byte by byte. A valid input file of a batch has a content, as a data set has; an invalid one has faults.
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
    -- The content's key; null if the file has no content.
    digest       text,
    format       text,
    -- The first faults, as [{line, field, problem, kind}].
    faults       jsonb NOT NULL DEFAULT '[]',
    fault_count  bigint NOT NULL DEFAULT 0,
    -- Derived from the user and the request id, so that a repeated upload finds the file of the first one.
    request_id   uuid UNIQUE,
    FOREIGN KEY (digest, format) REFERENCES dataset_contents
);

CREATE INDEX files_newest ON files (created_at DESC, file_id DESC);
CREATE INDEX files_of_content ON files (digest, format);
CREATE INDEX files_expiring ON files (expires_at) WHERE expires_at IS NOT NULL;

-- Prefixes under which objects may exist that no content refers to: of uploads that are under way or were aborted, and
-- of deleted contents. A prefix is recorded before its first object is stored, so garbage collection deletes nothing else.
CREATE TABLE unreferenced_prefixes (
    prefix  text PRIMARY KEY,
    since   timestamptz NOT NULL DEFAULT now()
);

-- Data sets with their contents.
CREATE VIEW dataset_rows AS
SELECT dataset_id, name, username, uploaded_at, request_id, digest, format, prefix, size_bytes, row_count, target_count,
       models, endpoint
FROM datasets
JOIN dataset_contents USING (digest, format);

-- Files with their contents, if they have one. Faults are left out: a page of files needs none.
CREATE VIEW file_rows AS
SELECT file_id, name, username, purpose, files.size_bytes AS file_bytes, created_at, expires_at,
       files.prefix AS file_prefix, fault_count, digest, format, dataset_contents.prefix, dataset_contents.size_bytes,
       row_count, target_count, models, endpoint
FROM files
LEFT JOIN dataset_contents USING (digest, format);
