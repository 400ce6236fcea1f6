-- Suites that users upload. A version never changes; runs name the version that they used.

-- `last_version` counts all versions ever stored under a name, so that the number of a deleted version is not reused.
CREATE TABLE user_suites (
    suite         text PRIMARY KEY,
    last_version  integer NOT NULL DEFAULT 0
);

CREATE TABLE user_suite_versions (
    suite       text NOT NULL REFERENCES user_suites,
    version     integer NOT NULL CHECK (version > 0),
    -- SHA-256 over the document and its files.
    digest      text NOT NULL,
    document    text NOT NULL,
    file_name   text NOT NULL,
    username    text NOT NULL,
    created_at  timestamptz NOT NULL,
    PRIMARY KEY (suite, version),
    UNIQUE (suite, digest)
);

CREATE TABLE user_suite_files (
    suite    text NOT NULL,
    version  integer NOT NULL,
    path     text NOT NULL,
    content  bytea NOT NULL,
    PRIMARY KEY (suite, version, path),
    FOREIGN KEY (suite, version) REFERENCES user_suite_versions ON DELETE CASCADE
);
