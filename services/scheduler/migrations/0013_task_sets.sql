-- compatible-from: 0011_run_traces.sql
-- Tasks for rollouts. Their files are in the object store; a prefix is in unreferenced_prefixes before its first object is stored.

CREATE TABLE task_sets (
    -- SHA-256 of the tasks, which name their files by digest.
    digest      text PRIMARY KEY,
    prefix      text NOT NULL UNIQUE,
    size_bytes  bigint NOT NULL
);

-- Files of tasks by the SHA-256 of their bytes: objects under the prefix of the set.
CREATE TABLE task_bundles (
    set_digest  text NOT NULL REFERENCES task_sets ON DELETE CASCADE,
    digest      text NOT NULL,
    PRIMARY KEY (set_digest, digest)
);

CREATE INDEX task_bundles_of_digest ON task_bundles (digest);

-- A user who uploaded a set, or a suite that was written of one. `document` is the digest of the suite's document, "" for an upload.
CREATE TABLE task_set_uses (
    set_digest  text NOT NULL REFERENCES task_sets,
    username    text NOT NULL,
    document    text NOT NULL,
    since       timestamptz NOT NULL,
    PRIMARY KEY (set_digest, username, document)
);

CREATE INDEX task_set_uses_of_user ON task_set_uses (username);
