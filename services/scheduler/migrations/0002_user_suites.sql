-- Suites that users bring. A version is never changed; runs say which one they used.

-- Counts the versions ever given to a name: a number that was deleted is not given again.
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

-- Null for a suite of the installation.
ALTER TABLE runs
    ADD COLUMN suite_version integer,
    ADD FOREIGN KEY (suite, suite_version) REFERENCES user_suite_versions (suite, version);

CREATE INDEX runs_of_user_suite ON runs (suite, suite_version) WHERE suite_version IS NOT NULL;
