-- Data sets that users upload. Their rows lie in the object store, under prefixes that are all named here.

-- What was uploaded, once however often it was: under `prefix` in the object store.
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
    -- Of the user and his request id, so that a repeated upload finds the data set of the first.
    request_id   uuid UNIQUE,
    FOREIGN KEY (digest, format) REFERENCES dataset_contents
);

-- Where objects may lie that no content has: of uploads that go on or were broken off, and of what was deleted.
-- Named before the first object is stored, so that only what was stored from here is ever swept.
CREATE TABLE loose_prefixes (
    prefix  text PRIMARY KEY,
    since   timestamptz NOT NULL DEFAULT now()
);

CREATE INDEX datasets_newest ON datasets (uploaded_at DESC, dataset_id DESC);
CREATE INDEX datasets_of_content ON datasets (digest, format);
