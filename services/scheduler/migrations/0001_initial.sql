-- The schema of the scheduler in 0.1.0, by topic. `schema.sql` beside this folder shows what all migrations make.

-- == projects ==

-- Declared projects: their numbers are so large that nobody takes one by chance. Any smaller number groups what everybody sees.
CREATE TABLE projects (
    project_id bigint GENERATED ALWAYS AS IDENTITY (START WITH 9000000000000001) PRIMARY KEY,
    name text NOT NULL UNIQUE,
    note text NOT NULL,
    created_by text NOT NULL,
    created_at timestamptz NOT NULL,
    -- Derived from the user and the request id.
    request_id uuid UNIQUE,
    -- Null: no limit.
    max_open_runs integer,
    max_cost double precision,
    max_cost_per_month double precision,
    -- Of its last change: gateways follow the names.
    version bigint NOT NULL UNIQUE,
    -- Days after which the answers of a closed run are archived. Null: as the installation does.
    archive_after_days integer,
    -- Bytes of answers beyond which the oldest closed runs are archived. Null: as the installation does.
    archive_over_bytes bigint
);

-- Whether the caller, or the service in its own work, sees what a project has. Sessions have the setting (`RowScope`); without
-- it nothing of a declared project is seen. A key that is bound to a project leaves out what is in none.
CREATE FUNCTION is_readable(project_id bigint) RETURNS boolean LANGUAGE sql STABLE PARALLEL SAFE
RETURN (
        project_id < 9000000000000000
        AND NOT coalesce(starts_with(current_setting('proctor.readable_projects', true), 'without_open'), false)
    )
    OR current_setting('proctor.readable_projects', true) = 'all'
    OR project_id::text = ANY (string_to_array(current_setting('proctor.readable_projects', true), ','));

-- Whether something may be stored in a project: a declared one exists, and its role allows it.
CREATE FUNCTION is_writable(project_id bigint) RETURNS boolean LANGUAGE sql STABLE PARALLEL SAFE
RETURN (
        project_id < 9000000000000000
        AND NOT coalesce(starts_with(current_setting('proctor.writable_projects', true), 'without_open'), false)
    )
    OR (
        (
            current_setting('proctor.writable_projects', true) = 'all'
            OR project_id::text = ANY (string_to_array(current_setting('proctor.writable_projects', true), ','))
        )
        AND EXISTS (SELECT FROM projects WHERE projects.project_id = is_writable.project_id)
    );

ALTER TABLE projects ENABLE ROW LEVEL SECURITY;
-- Forced: the owner of the tables is the service itself.
ALTER TABLE projects FORCE ROW LEVEL SECURITY;
CREATE POLICY of_readable_projects ON projects USING (is_readable(project_id)) WITH CHECK (true);

-- Users with roles in a project. Gateways follow the versions; a member that was removed stays as a row without a role.
CREATE TABLE project_members (
    project_id bigint NOT NULL REFERENCES projects,
    username text NOT NULL,
    role text CHECK (role IN ('viewer', 'runner', 'maintainer')),
    changed_by text NOT NULL,
    changed_at timestamptz NOT NULL,
    version bigint NOT NULL UNIQUE,
    PRIMARY KEY (project_id, username)
);

CREATE INDEX project_members_of_user ON project_members (username);

-- The columns from which a project is read. It is shared where everybody, `*`, is a member of it.
CREATE VIEW project_rows WITH (security_invoker) AS
SELECT project_id, name, note, created_by, created_at, max_open_runs, max_cost, max_cost_per_month,
       archive_after_days, archive_over_bytes, request_id,
       EXISTS (
           SELECT FROM project_members
           WHERE project_members.project_id = projects.project_id AND username = '*' AND role IS NOT NULL
       ) AS is_shared
FROM projects;

-- What the runs of a declared project have cost that were closed in a month of UTC. Deleted runs stay in it.
CREATE TABLE project_costs (
    project_id bigint NOT NULL REFERENCES projects,
    month date NOT NULL,
    cost double precision NOT NULL,
    PRIMARY KEY (project_id, month)
);

-- == leadership ==

-- Which scheduler leads: one row. Each term of leadership raises the token; a write with an older token is rejected.
CREATE TABLE leadership (
    is_only boolean PRIMARY KEY DEFAULT true CHECK (is_only),
    fencing_token bigint NOT NULL
);
INSERT INTO leadership (fencing_token) VALUES (0);

-- == suites ==

-- Suites that users upload. `last_version` counts all versions ever stored under a name, so that the number of a deleted version
-- is not reused.
CREATE TABLE user_suites (
    suite text PRIMARY KEY,
    last_version integer NOT NULL DEFAULT 0
);

-- A version never changes; runs name the version that they used.
CREATE TABLE user_suite_versions (
    suite text NOT NULL REFERENCES user_suites,
    version integer NOT NULL CHECK (version > 0),
    -- SHA-256 over the document and its files.
    digest text NOT NULL,
    document text NOT NULL,
    file_name text NOT NULL,
    username text NOT NULL,
    created_at timestamptz NOT NULL,
    -- 0 is no project.
    project_id bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (suite, version),
    UNIQUE (suite, digest)
);

-- What a user or a project stores is summed up in the transaction that adds to it.
CREATE INDEX user_suite_versions_of_user ON user_suite_versions (username);
CREATE INDEX user_suite_versions_of_project ON user_suite_versions (project_id);

ALTER TABLE user_suite_versions ENABLE ROW LEVEL SECURITY;
ALTER TABLE user_suite_versions FORCE ROW LEVEL SECURITY;
CREATE POLICY of_projects ON user_suite_versions USING (is_readable(project_id)) WITH CHECK (is_writable(project_id));

CREATE TABLE user_suite_files (
    suite text NOT NULL,
    version integer NOT NULL,
    path text NOT NULL,
    content bytea NOT NULL,
    PRIMARY KEY (suite, version, path),
    FOREIGN KEY (suite, version) REFERENCES user_suite_versions ON DELETE CASCADE
);

-- == uploads ==

-- The bytes of data sets and files that users upload are in the object store, under prefixes that are all recorded here.

-- The checked rows of an uploaded file. Equal uploads share one content, those of a declared project among themselves: the
-- time that an upload or a deletion takes tells nobody what others have.
CREATE TABLE dataset_contents (
    -- SHA-256 of the file as uploaded.
    digest text NOT NULL,
    format text NOT NULL,
    prefix text NOT NULL UNIQUE,
    size_bytes bigint NOT NULL,
    row_count bigint NOT NULL CHECK (row_count > 0),
    target_count bigint NOT NULL,
    models text[] NOT NULL,
    endpoint text NOT NULL,
    -- Bytes of the rows as stored, packed.
    stored_bytes bigint NOT NULL,
    -- 0 for uploads that are in no declared project.
    content_project_id bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (content_project_id, digest, format)
);

CREATE TABLE datasets (
    dataset_id text PRIMARY KEY,
    name text NOT NULL,
    username text NOT NULL,
    uploaded_at timestamptz NOT NULL,
    digest text NOT NULL,
    format text NOT NULL,
    -- Derived from the user and the request id, so that a repeated upload finds the data set of the first one.
    request_id uuid UNIQUE,
    -- 0 is no project.
    project_id bigint NOT NULL DEFAULT 0,
    -- As in dataset_contents.
    content_project_id bigint NOT NULL
        GENERATED ALWAYS AS (CASE WHEN project_id < 9000000000000000 THEN 0 ELSE project_id END) STORED,
    FOREIGN KEY (content_project_id, digest, format) REFERENCES dataset_contents
);

CREATE INDEX datasets_newest ON datasets (uploaded_at DESC, dataset_id DESC);
CREATE INDEX datasets_of_content ON datasets (content_project_id, digest, format);
CREATE INDEX datasets_of_user ON datasets (username);
CREATE INDEX datasets_of_project ON datasets (project_id);

-- Files byte by byte. A valid input file of a batch has a content, as a data set has; an invalid one has faults.
CREATE TABLE files (
    file_id text PRIMARY KEY,
    name text NOT NULL,
    username text NOT NULL,
    -- 'batch' or 'batch_output'.
    purpose text NOT NULL,
    size_bytes bigint NOT NULL,
    created_at timestamptz NOT NULL,
    expires_at timestamptz,
    prefix text NOT NULL UNIQUE,
    -- The content's key; null if the file has no content.
    digest text,
    format text,
    -- The first faults, as [{line, field, problem, kind}].
    faults jsonb NOT NULL DEFAULT '[]',
    fault_count bigint NOT NULL DEFAULT 0,
    -- Derived from the user and the request id, so that a repeated upload finds the file of the first one.
    request_id uuid UNIQUE,
    -- 0 is no project; a batch and its files are of the project of its input file.
    project_id bigint NOT NULL DEFAULT 0,
    -- As in dataset_contents.
    content_project_id bigint NOT NULL
        GENERATED ALWAYS AS (CASE WHEN project_id < 9000000000000000 THEN 0 ELSE project_id END) STORED,
    FOREIGN KEY (content_project_id, digest, format) REFERENCES dataset_contents
);

CREATE INDEX files_newest ON files (created_at DESC, file_id DESC);
CREATE INDEX files_of_content ON files (content_project_id, digest, format);
CREATE INDEX files_of_user ON files (username);
CREATE INDEX files_of_project ON files (project_id);
CREATE INDEX files_expiring ON files (expires_at) WHERE expires_at IS NOT NULL;

-- Prefixes under which objects may exist that no content refers to: of uploads that are under way or were aborted, and
-- of deleted contents. A prefix is recorded before its first object is stored, so garbage collection deletes nothing else.
CREATE TABLE unreferenced_prefixes (
    prefix text PRIMARY KEY,
    since timestamptz NOT NULL DEFAULT now()
);

-- Mappings of the columns of uploads, to be chosen again by name.
CREATE TABLE column_mappings (
    -- 0 is no project.
    project_id bigint NOT NULL,
    name text NOT NULL,
    username text NOT NULL,
    saved_at timestamptz NOT NULL,
    prompt text NOT NULL,
    target text NOT NULL,
    id text NOT NULL,
    PRIMARY KEY (project_id, name)
);

CREATE INDEX column_mappings_newest ON column_mappings (saved_at DESC);

ALTER TABLE column_mappings ENABLE ROW LEVEL SECURITY;
ALTER TABLE column_mappings FORCE ROW LEVEL SECURITY;
CREATE POLICY of_projects ON column_mappings USING (is_readable(project_id)) WITH CHECK (is_writable(project_id));

ALTER TABLE datasets ENABLE ROW LEVEL SECURITY;
ALTER TABLE datasets FORCE ROW LEVEL SECURITY;
CREATE POLICY of_projects ON datasets USING (is_readable(project_id)) WITH CHECK (is_writable(project_id));

ALTER TABLE files ENABLE ROW LEVEL SECURITY;
ALTER TABLE files FORCE ROW LEVEL SECURITY;
CREATE POLICY of_projects ON files USING (is_readable(project_id)) WITH CHECK (is_writable(project_id));

-- Data sets with their contents.
CREATE VIEW dataset_rows WITH (security_invoker) AS
SELECT dataset_id, name, username, uploaded_at, request_id, digest, format, prefix, size_bytes, row_count, target_count,
       models, endpoint, stored_bytes, project_id
FROM datasets
JOIN dataset_contents USING (content_project_id, digest, format);

-- Files with their contents, if they have one. Faults are left out: a page of files needs none.
CREATE VIEW file_rows WITH (security_invoker) AS
SELECT file_id, name, username, purpose, files.size_bytes AS file_bytes, created_at, expires_at,
       files.prefix AS file_prefix, fault_count, digest, format, dataset_contents.prefix, dataset_contents.size_bytes,
       row_count, target_count, models, endpoint, stored_bytes, project_id
FROM files
LEFT JOIN dataset_contents USING (content_project_id, digest, format);

-- == uploads.task_sets ==

-- Tasks for rollouts. Their files are in the object store; a prefix is in unreferenced_prefixes before its first object
-- is stored.
CREATE TABLE task_sets (
    -- SHA-256 of the tasks, which name their files by digest.
    digest text PRIMARY KEY,
    prefix text NOT NULL UNIQUE,
    size_bytes bigint NOT NULL
);

-- Files of tasks by the SHA-256 of their bytes: objects under the prefix of the set.
CREATE TABLE task_bundles (
    tasks_digest text NOT NULL REFERENCES task_sets ON DELETE CASCADE,
    digest text NOT NULL,
    PRIMARY KEY (tasks_digest, digest)
);

CREATE INDEX task_bundles_of_digest ON task_bundles (digest);

-- A user who uploaded a set, or a suite that was written of one. `suite_digest` is that of the version of the suite, "" for
-- an upload.
CREATE TABLE task_set_uses (
    tasks_digest text NOT NULL REFERENCES task_sets,
    username text NOT NULL,
    suite_digest text NOT NULL,
    since timestamptz NOT NULL,
    PRIMARY KEY (tasks_digest, username, suite_digest)
);

CREATE INDEX task_set_uses_of_user ON task_set_uses (username);

-- == limits ==

-- Limits that an operator changes without a restart. One row. A null limit has the value of the settings.
CREATE TABLE limits (
    is_only boolean PRIMARY KEY DEFAULT true CHECK (is_only),
    max_running_runs integer CHECK (max_running_runs > 0),
    max_pending_runs_per_user integer CHECK (max_pending_runs_per_user > 0),
    max_requests_per_minute integer CHECK (max_requests_per_minute > 0),
    run_time_limit_seconds double precision CHECK (run_time_limit_seconds > 0),
    min_run_time_seconds double precision CHECK (min_run_time_seconds >= 0),
    max_stored_bytes_per_user bigint CHECK (max_stored_bytes_per_user > 0),
    max_stored_files_per_user bigint CHECK (max_stored_files_per_user > 0),
    max_stored_rows_per_user bigint CHECK (max_stored_rows_per_user > 0),
    -- 0 is no limit, over that of the settings.
    max_stored_bytes_per_project bigint CHECK (max_stored_bytes_per_project >= 0)
);
INSERT INTO limits (is_only) VALUES (true);

-- The highest priority that a user may order; '*' is every user without a row.
CREATE TABLE user_priorities (
    username text PRIMARY KEY,
    highest smallint NOT NULL
);

-- Requests of each user in the minute that began at `minute`. Unlogged: counts lost in a crash do no harm.
CREATE UNLOGGED TABLE request_counts (
    username text NOT NULL,
    minute timestamptz NOT NULL,
    requests integer NOT NULL,
    -- Reads have a limit of their own.
    is_read boolean NOT NULL,
    PRIMARY KEY (username, is_read)
);

-- == runs.lifecycle ==

CREATE TABLE runs (
    run_id uuid PRIMARY KEY,
    -- Derived from the user and the request id, so that a repeated call finds the run of the first one.
    request_id uuid UNIQUE,
    -- SHA-256 of what the first call sent, which a repeated call is known by whatever has changed since.
    request_digest bytea,
    username text NOT NULL,
    project_id bigint NOT NULL,
    -- What the run evaluates, and its results are listed and compared under: a suite, or the data set or file with this id.
    benchmark text NOT NULL,
    -- Version of a user's suite; null for a suite of the installation.
    suite_version integer,
    -- A data set, or a file of a batch.
    dataset_id text,
    dataset_name text NOT NULL DEFAULT '',
    model text NOT NULL,
    pool text NOT NULL,
    -- 1 high, 2 normal, 3 low: smaller numbers start first.
    priority smallint NOT NULL,
    -- The order as JSON, without its priority.
    ordered jsonb NOT NULL,
    scoring_method text NOT NULL,
    state text NOT NULL
        CHECK (state IN ('pending', 'running', 'paused', 'completed', 'failed', 'cancelled')),
    epoch integer NOT NULL CHECK (epoch > 0),
    -- What the run does now, for people: steps are those of tasks and agents.
    phase text NOT NULL DEFAULT '',
    -- The latest epoch whose shards are stored; 0 before the first planning.
    planned_epoch integer NOT NULL DEFAULT 0,
    -- Whether results has closed the run in its final state.
    is_closed boolean NOT NULL DEFAULT false,
    total bigint NOT NULL DEFAULT 0,
    reused_answers bigint NOT NULL DEFAULT 0,
    created_at timestamptz NOT NULL,
    -- When the run last became pending: a retry goes to the end of the queue.
    queued_at timestamptz NOT NULL,
    started_at timestamptz,
    -- When it got its present slot, and how long it had earlier slots in this epoch.
    admitted_at timestamptz,
    ran_seconds double precision NOT NULL DEFAULT 0,
    -- How long it had slots in earlier epochs.
    earlier_seconds double precision NOT NULL DEFAULT 0,
    finished_at timestamptz,
    deadline timestamptz,
    -- End of the completion window, waiting included; null: the time limit of a running run applies.
    expires_at timestamptz,
    error_reason text,
    error_message text,
    environment jsonb NOT NULL,
    -- Price of its tokens at submission; null if unknown.
    price jsonb,
    -- What results had counted when the run was closed.
    final_counts jsonb,
    -- Nearly the bytes of its outcomes in Postgres. A column: to read it from each run's counts would take most of a sum.
    answer_bytes bigint NOT NULL GENERATED ALWAYS AS (coalesce((final_counts ->> 'answer_bytes')::bigint, 0)) STORED,
    -- What of its cost is in project_costs: a run that is retried is closed again.
    counted_cost double precision NOT NULL DEFAULT 0,
    -- The batch that the run was made for: such a run is not retried, since the files of a batch are written once. Here, so that
    -- no statement about runs reads the tables of batches.
    batch_id text,
    -- The files of the batch are still to be written from what results recorded, so the run is not deleted.
    has_unwritten_files boolean NOT NULL DEFAULT false,
    -- Whether a running run only waits for its figures: it has no slot then.
    is_closing boolean NOT NULL DEFAULT false,
    -- The judges that the order names are ordered once the run has completed.
    has_judges_to_order boolean NOT NULL DEFAULT false,
    -- What was decided between it and the other run of its order; null unless that stopped it.
    decision jsonb,
    -- Words by which people tell runs apart.
    name text NOT NULL DEFAULT '',
    tags text[] NOT NULL DEFAULT '{}',
    note text NOT NULL DEFAULT '',
    -- Searched for a part of it: to lower each name at each search would take most of its time.
    lower_name text NOT NULL GENERATED ALWAYS AS (lower(name)) STORED,
    -- Where the answers of a closed run are; null while they are in Postgres.
    archive_state text CHECK (archive_state IN ('archiving', 'archived', 'restoring')),
    FOREIGN KEY (benchmark, suite_version) REFERENCES user_suite_versions (suite, version)
);

CREATE INDEX runs_newest ON runs (created_at DESC, run_id DESC);
-- Runs that are archived once they are old.
CREATE INDEX runs_to_archive ON runs (finished_at) WHERE is_closed AND archive_state IS NULL;
-- Runs whose answers the leader has to move.
CREATE INDEX runs_moving ON runs (run_id) WHERE archive_state IN ('archiving', 'restoring');
CREATE INDEX runs_newest_of_state ON runs (state, created_at DESC, run_id DESC);
CREATE INDEX runs_newest_of_benchmark ON runs (benchmark, created_at DESC, run_id DESC);
CREATE INDEX runs_newest_of_model ON runs (model, created_at DESC, run_id DESC);
CREATE INDEX runs_newest_of_project ON runs (project_id, created_at DESC, run_id DESC);
CREATE INDEX runs_newest_of_datasets ON runs (created_at DESC, run_id DESC) WHERE dataset_id IS NOT NULL;
CREATE INDEX runs_newest_of_suites ON runs (created_at DESC, run_id DESC) WHERE dataset_id IS NULL;
-- Most runs have neither a name nor a tag: those that do are few to look through.
CREATE INDEX runs_newest_named ON runs (created_at DESC, run_id DESC) INCLUDE (lower_name, state) WHERE lower_name <> '';
-- Not one of tags: the operator of such an index may leak a value into an error, so it cannot be asked before the policy.
CREATE INDEX runs_newest_tagged ON runs (created_at DESC, run_id DESC) WHERE tags <> '{}';
CREATE INDEX runs_of_user_suite ON runs (benchmark, suite_version) WHERE suite_version IS NOT NULL;
CREATE INDEX runs_pending ON runs (priority, queued_at, run_id) WHERE state = 'pending';
CREATE INDEX runs_pending_of_user ON runs (username) WHERE state = 'pending';
CREATE INDEX runs_running ON runs (run_id) WHERE state = 'running';
CREATE INDEX runs_running_of_user ON runs (username) WHERE state = 'running';
CREATE INDEX runs_paused ON runs (queued_at DESC, run_id DESC) WHERE state = 'paused';
CREATE INDEX runs_unclosed ON runs (run_id)
    WHERE state IN ('completed', 'failed', 'cancelled') AND NOT is_closed;
CREATE INDEX runs_to_judge ON runs (finished_at) WHERE has_judges_to_order AND state = 'completed' AND is_closed;
CREATE INDEX runs_history ON runs (benchmark, model, finished_at DESC) WHERE state = 'completed';
CREATE INDEX runs_open_of_project ON runs (project_id) WHERE NOT is_closed AND project_id >= 9000000000000000;
CREATE INDEX runs_expiring ON runs (expires_at)
    WHERE expires_at IS NOT NULL AND state IN ('pending', 'running', 'paused');
-- Data sets that must be kept: planning reads them.
CREATE INDEX runs_using_dataset ON runs (dataset_id)
    WHERE dataset_id IS NOT NULL AND state IN ('pending', 'running', 'paused');

ALTER TABLE runs ENABLE ROW LEVEL SECURITY;
ALTER TABLE runs FORCE ROW LEVEL SECURITY;
CREATE POLICY of_projects ON runs USING (is_readable(project_id)) WITH CHECK (is_writable(project_id));

-- The columns from which a run is read, and those by which runs are filtered and ordered.
CREATE VIEW run_rows WITH (security_invoker) AS
SELECT run_id, username, project_id, benchmark, suite_version, dataset_id, dataset_name, model, pool, priority, ordered,
       scoring_method, state, epoch, phase, planned_epoch, is_closed, total, reused_answers, created_at, queued_at,
       started_at, admitted_at, ran_seconds, earlier_seconds, finished_at, deadline, expires_at, error_reason, error_message,
       environment, price, final_counts, is_closing, decision, name, lower_name, tags, note, archive_state
FROM runs;

-- Tasks of a run as planned.
CREATE TABLE run_tasks (
    run_id uuid NOT NULL REFERENCES runs ON DELETE CASCADE,
    task_index integer NOT NULL,
    task text NOT NULL,
    version text NOT NULL,
    sample_set_id text NOT NULL,
    first_sample bigint NOT NULL,
    sample_count integer NOT NULL,
    output_type text NOT NULL,
    num_fewshot integer NOT NULL,
    is_stand_in boolean NOT NULL,
    -- Whether agents work on its samples.
    is_of_rollouts boolean NOT NULL DEFAULT false,
    row_source text NOT NULL,
    row_source_revision text NOT NULL,
    -- The task's own generation parameters; null for multiple choice.
    generation jsonb,
    PRIMARY KEY (run_id, task_index)
);

-- The trace that a run was ordered in (W3C traceparent), where it is traced: whichever scheduler leads continues it.
CREATE TABLE run_traces (
    run_id uuid PRIMARY KEY REFERENCES runs ON DELETE CASCADE,
    traceparent text NOT NULL
);

-- What runs are compared to once both have completed. A repeated order may add another base or margin.
CREATE TABLE run_gates (
    run_id uuid NOT NULL REFERENCES runs ON DELETE CASCADE,
    base_run_id uuid NOT NULL REFERENCES runs ON DELETE CASCADE,
    margin_points double precision NOT NULL,
    alpha double precision NOT NULL,
    -- Empty until the gate is decided.
    verdict text NOT NULL DEFAULT '',
    gate_text text NOT NULL DEFAULT '',
    PRIMARY KEY (run_id, base_run_id, margin_points)
);
CREATE INDEX run_gates_of_base ON run_gates (base_run_id);
-- What the leader looks through every few seconds.
CREATE INDEX run_gates_awaiting ON run_gates (run_id) WHERE gate_text = '';

-- Runs that were deleted here and that results may still store.
CREATE TABLE deleted_runs (
    run_id uuid PRIMARY KEY,
    deleted_at timestamptz NOT NULL DEFAULT now()
);

-- == runs.admission ==

-- When a run of a user was last admitted: among equal shares, the user who has waited longest comes first.
CREATE TABLE user_admissions (
    username text PRIMARY KEY,
    admitted_at timestamptz NOT NULL
);

-- == planning ==

-- Shards of planned tasks.
CREATE TABLE shards (
    run_id uuid NOT NULL REFERENCES runs ON DELETE CASCADE,
    shard integer NOT NULL,
    epoch integer NOT NULL,
    task_index integer NOT NULL,
    rollout integer NOT NULL,
    -- Numbers (unique in the run) of samples that still miss an outcome; `size` is how many there were at first.
    samples bigint[] NOT NULL,
    size integer NOT NULL,
    state text NOT NULL DEFAULT 'planned' CHECK (state IN ('planned', 'dispatched', 'done')),
    attempt integer NOT NULL DEFAULT 0,
    -- Its rollout waits for its provider without a place in its worker.
    is_resting boolean NOT NULL DEFAULT false,
    PRIMARY KEY (run_id, shard)
)
-- Shards of a run that closes are deleted, so most rows are soon dead.
WITH (autovacuum_vacuum_scale_factor = 0.05);

CREATE INDEX shards_planned ON shards (run_id, epoch, shard) WHERE state = 'planned';
CREATE INDEX shards_dispatched ON shards (run_id, epoch, shard) WHERE state = 'dispatched';

-- Rollouts in flight that orders bound: each is a shard.
CREATE VIEW bounded_rollouts WITH (security_invoker) AS
SELECT run_id, shard, is_resting, ordered ->> 'parallel_group' AS parallel_group
FROM runs
JOIN shards USING (run_id, epoch)
WHERE runs.state = 'running' AND NOT runs.is_closing AND shards.state = 'dispatched';

-- == scaling ==

-- What each pool needs, as the leader has computed it: every replica answers autoscalers from here.
CREATE TABLE pool_demands (
    pool text PRIMARY KEY,
    workers integer NOT NULL CHECK (workers >= 0),
    -- Outstanding samples, and samples per second of one worker, by model.
    backlog_samples jsonb NOT NULL,
    speeds jsonb NOT NULL,
    -- How long the last worker took to load its model; null while none has been seen to.
    load_seconds double precision,
    computed_at timestamptz NOT NULL
);

-- == batches ==

-- Batches of the OpenAI protocol: runs over files, whose outcomes are written to files.
CREATE TABLE batches (
    batch_id text PRIMARY KEY,
    username text NOT NULL,
    input_file_id text NOT NULL,
    endpoint text NOT NULL,
    completion_window text NOT NULL,
    metadata jsonb NOT NULL,
    created_at timestamptz NOT NULL,
    -- Lines of the input file; 0 if the batch failed before it had a run.
    total bigint NOT NULL,
    -- Null if the batch failed before it had a run.
    run_id uuid UNIQUE REFERENCES runs ON DELETE CASCADE,
    -- Why it failed before it had a run, as [{code, message, param, line}].
    errors jsonb NOT NULL DEFAULT '[]',
    -- When its files were written, or turned out to be empty.
    finalized_at timestamptz,
    output_file_id text,
    error_file_id text,
    -- Lifetime of each written file; null: until it is deleted.
    output_expires_after_seconds bigint,
    -- Derived from the user and the request id.
    request_id uuid UNIQUE,
    -- That of the input file.
    project_id bigint NOT NULL DEFAULT 0
);

CREATE INDEX batches_newest ON batches (created_at DESC, batch_id DESC);
CREATE INDEX batches_of_file ON batches (input_file_id);
CREATE INDEX batches_to_finalize ON batches (run_id) WHERE finalized_at IS NULL AND run_id IS NOT NULL;

ALTER TABLE batches ENABLE ROW LEVEL SECURITY;
ALTER TABLE batches FORCE ROW LEVEL SECURITY;
CREATE POLICY of_projects ON batches USING (is_readable(project_id)) WITH CHECK (is_writable(project_id));

-- Batches with their runs, under column names that both can have. The columns of a view are those that it had when it was made:
-- after a change of run_rows this one is replaced too.
CREATE VIEW batch_rows WITH (security_invoker) AS
SELECT batch_id, batches.username AS batch_username, input_file_id, endpoint, completion_window, metadata,
       batches.created_at AS batch_created_at, batches.total AS batch_total, errors, finalized_at, output_file_id,
       error_file_id, output_expires_after_seconds, batches.project_id AS batch_project_id, run_rows.*
FROM batches
LEFT JOIN run_rows USING (run_id);

-- == rollouts ==

-- Orders of rollouts: a set of tasks, an agent, and one run per model.
CREATE TABLE rollouts_orders (
    order_id uuid PRIMARY KEY,
    username text NOT NULL,
    project_id bigint NOT NULL,
    suite text NOT NULL,
    suite_version integer NOT NULL,
    agent jsonb NOT NULL,
    rollouts integer NOT NULL,
    -- The place of a task is the row of its samples.
    task_ids text[] NOT NULL,
    -- One run per model, in the same order. A run is stored after its order, and may be deleted.
    models text[] NOT NULL,
    run_ids uuid[] NOT NULL,
    created_at timestamptz NOT NULL,
    -- A version without a run can be deleted; its orders go with it.
    FOREIGN KEY (suite, suite_version) REFERENCES user_suite_versions (suite, version) ON DELETE CASCADE
);

CREATE INDEX rollouts_orders_newest ON rollouts_orders (created_at DESC, order_id DESC);
CREATE INDEX rollouts_orders_of_suite ON rollouts_orders (suite, suite_version, created_at DESC, order_id DESC);
-- The order of a run is found by the run.
CREATE INDEX rollouts_orders_of_run ON rollouts_orders USING gin (run_ids);

-- What workers stored of rollouts, in parts. The objects are under runs/<run>; a row is here before its object is.
CREATE TABLE rollout_artifacts (
    run_id uuid NOT NULL,
    sample bigint NOT NULL,
    rollout integer NOT NULL,
    -- A rollout that began anew, after its worker ended, has several.
    execution text NOT NULL,
    name text NOT NULL,
    part integer NOT NULL,
    -- Owner of the run, whose storage it counts towards.
    username text NOT NULL,
    size_bytes bigint NOT NULL,
    stored_at timestamptz NOT NULL,
    -- Whether the object of a part is stored, so that it can be read.
    is_stored boolean NOT NULL,
    PRIMARY KEY (run_id, sample, rollout, execution, name, part)
);

CREATE INDEX rollout_artifacts_of_user ON rollout_artifacts (username) INCLUDE (run_id, size_bytes);

-- What each execution of a rollout used of its budgets; a rollout that begins anew in the epoch has the rest of them.
CREATE TABLE rollout_budgets (
    run_id uuid NOT NULL REFERENCES runs ON DELETE CASCADE,
    epoch integer NOT NULL,
    sample bigint NOT NULL,
    rollout integer NOT NULL,
    execution text NOT NULL,
    started_at timestamptz NOT NULL,
    agent_steps integer NOT NULL,
    seconds double precision NOT NULL,
    -- Tokens, as JSON.
    usage jsonb NOT NULL,
    -- Its worker left it without an outcome, for a reason that is not the rollout's: it used no budget.
    is_left boolean NOT NULL DEFAULT false,
    -- No outcome counts its tokens: its rollout had none when the epoch was closed.
    is_unscored boolean NOT NULL DEFAULT false,
    PRIMARY KEY (run_id, epoch, sample, rollout, execution)
);

-- == keys ==

-- The version of the last change of keys and ended sessions. One row: a change locks it, so versions follow the commits.
CREATE TABLE access_version (
    is_only boolean PRIMARY KEY DEFAULT true CHECK (is_only),
    version bigint NOT NULL DEFAULT 0
);
INSERT INTO access_version (is_only) VALUES (true);

-- Keys of users. `code` is an HMAC of the whole key under a secret that Postgres does not have.
CREATE TABLE api_keys (
    key_id text PRIMARY KEY,
    key_number bigint GENERATED ALWAYS AS IDENTITY UNIQUE,
    username text NOT NULL,
    role text NOT NULL CHECK (role IN ('viewer', 'runner', 'maintainer', 'operator')),
    note text NOT NULL,
    code bytea NOT NULL CHECK (octet_length(code) = 32),
    created_by text NOT NULL,
    created_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    last_used_at timestamptz,
    revoked_at timestamptz,
    version bigint NOT NULL UNIQUE,
    -- Null: the key reaches all projects of its user.
    project_id bigint REFERENCES projects
);

-- Whether a user is told of the runs of all. Who was an operator by a key, and has no such key any more, is not; who never
-- had one is an operator otherwise.
CREATE FUNCTION may_hear_of_all(name text, at timestamptz) RETURNS boolean LANGUAGE sql STABLE
RETURN (
    SELECT coalesce(bool_or(revoked_at IS NULL AND expires_at > at), true)
    FROM api_keys
    WHERE username = name AND role = 'operator'
);

-- Whether a key that is taken makes a user an operator.
CREATE FUNCTION has_operator_key(name text, at timestamptz) RETURNS boolean LANGUAGE sql STABLE
RETURN EXISTS (
    SELECT
    FROM api_keys
    WHERE username = name AND role = 'operator' AND revoked_at IS NULL AND expires_at > at
);

-- Sessions of browsers that ended before their time; kept until that time.
CREATE TABLE ended_sessions (
    session_id text PRIMARY KEY,
    expires_at timestamptz NOT NULL,
    version bigint NOT NULL UNIQUE
);

-- == schedules ==

-- Orders that are repeated.
CREATE TABLE schedules (
    schedule_id uuid PRIMARY KEY,
    -- The order of lists.
    schedule_number bigint GENERATED ALWAYS AS IDENTITY UNIQUE,
    username text NOT NULL,
    project_id bigint NOT NULL,
    cron text NOT NULL,
    time_zone text NOT NULL,
    ordered jsonb NOT NULL,
    -- Of its runs.
    name text NOT NULL,
    tags text[] NOT NULL,
    note text NOT NULL,
    created_at timestamptz NOT NULL,
    -- The leader moves it on in the transaction that stores the runs.
    next_due_at timestamptz NOT NULL,
    paused_at timestamptz,
    -- When somebody said that it goes on, whatever became of its user's keys before.
    resumed_at timestamptz,
    -- Why the firing that is due waits, or the schedule was stopped, and when it was tried last.
    problem text NOT NULL DEFAULT '',
    tried_at timestamptz,
    -- {"base_run_id", "margin_points", "alpha"}; none: its runs are not gated.
    gate jsonb
);
CREATE INDEX schedules_due ON schedules (next_due_at) WHERE paused_at IS NULL;
CREATE INDEX schedules_of_user ON schedules (username);

ALTER TABLE schedules ENABLE ROW LEVEL SECURITY;
ALTER TABLE schedules FORCE ROW LEVEL SECURITY;
CREATE POLICY of_projects ON schedules USING (is_readable(project_id)) WITH CHECK (is_writable(project_id));

-- What became of each time. It is read by a schedule that was found first.
CREATE TABLE schedule_firings (
    schedule_id uuid NOT NULL REFERENCES schedules ON DELETE CASCADE,
    due_at timestamptz NOT NULL,
    fired_at timestamptz NOT NULL,
    -- None of an order that was refused. No reference: a run may be deleted, and its firing stays.
    run_ids uuid[] NOT NULL,
    problem text NOT NULL DEFAULT '',
    -- Until the gate is decided.
    awaits_gate boolean NOT NULL DEFAULT false,
    -- Empty without a gate, and until then.
    verdict text NOT NULL DEFAULT '',
    base_run_id uuid,
    gate_text text NOT NULL DEFAULT '',
    -- No time fires twice.
    PRIMARY KEY (schedule_id, due_at)
);
-- What the leader looks through every few seconds.
CREATE INDEX schedule_firings_awaiting ON schedule_firings (due_at) WHERE awaits_gate;

CREATE VIEW schedule_rows WITH (security_invoker = true) AS
SELECT
    schedules.*, last.due_at, last.fired_at, last.run_ids, last.problem AS firing_problem,
    last.verdict, last.base_run_id, last.gate_text
FROM schedules
LEFT JOIN LATERAL (
    SELECT due_at, fired_at, run_ids, problem, verdict, base_run_id, gate_text
    FROM schedule_firings
    WHERE schedule_firings.schedule_id = schedules.schedule_id
    ORDER BY due_at DESC
    LIMIT 1
) AS last ON true;

-- == notices ==

-- Where users are told of what.
CREATE TABLE notice_targets (
    target_id uuid PRIMARY KEY,
    username text NOT NULL,
    channel text NOT NULL CHECK (channel IN ('webhook', 'slack', 'email')),
    address text NOT NULL,
    events text[] NOT NULL,
    scope text NOT NULL CHECK (scope IN ('own', 'project', 'all')),
    -- Of the scope 'project'; else 0.
    project_id bigint NOT NULL,
    created_at timestamptz NOT NULL
);
CREATE INDEX notice_targets_of_user ON notice_targets (username);

-- Members of a project may be told of it, also those who only view it.
ALTER TABLE notice_targets ENABLE ROW LEVEL SECURITY;
ALTER TABLE notice_targets FORCE ROW LEVEL SECURITY;
CREATE POLICY of_readable_projects ON notice_targets USING (is_readable(project_id))
    WITH CHECK (is_readable(project_id));

-- The ledger and the outbox: rows are added by the transaction of the event, and sent afterwards. They are read by a
-- target that was found first.
CREATE TABLE notices (
    notice_id uuid PRIMARY KEY,
    -- The order of lists.
    notice_number bigint GENERATED ALWAYS AS IDENTITY UNIQUE,
    target_id uuid NOT NULL REFERENCES notice_targets ON DELETE CASCADE,
    event_key text NOT NULL,
    event text NOT NULL,
    text text NOT NULL,
    facts jsonb NOT NULL,
    created_at timestamptz NOT NULL,
    attempts integer NOT NULL DEFAULT 0,
    -- NULL once it is delivered or given up.
    next_try_at timestamptz,
    delivered_at timestamptz,
    problem text NOT NULL DEFAULT '',
    -- Nobody is told twice of the same thing.
    UNIQUE (target_id, event_key)
);
CREATE INDEX notices_due ON notices (next_try_at) WHERE next_try_at IS NOT NULL;
CREATE INDEX notices_of_target ON notices (target_id, notice_number DESC);
CREATE INDEX notices_over ON notices (created_at) WHERE next_try_at IS NULL;

-- == audit ==

-- Who did what, from where. The row of a change is written in the transaction that makes the change, and stays when its
-- object is deleted; the gateway adds what it alone sees.
CREATE TABLE audit_records (
    record_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    recorded_at timestamptz NOT NULL,
    username text NOT NULL,
    key_id text NOT NULL DEFAULT '',
    address text NOT NULL DEFAULT '',
    action text NOT NULL,
    kind text NOT NULL,
    object_id text NOT NULL,
    detail text NOT NULL DEFAULT '',
    outcome text NOT NULL DEFAULT 'done' CHECK (outcome IN ('done', 'admitted', 'refused')),
    times integer NOT NULL DEFAULT 1,
    -- One of the changes that every user sees.
    is_listed boolean NOT NULL,
    -- Of the object, as far as users see the change.
    project_id bigint NOT NULL DEFAULT 0,
    -- A transaction that is repeated, because its answer was lost, makes no second row.
    UNIQUE (object_id, recorded_at, action, kind, username, address)
);
CREATE INDEX audit_records_listed ON audit_records (record_id) WHERE is_listed;
CREATE INDEX audit_records_of_user ON audit_records (username, record_id);

ALTER TABLE audit_records ENABLE ROW LEVEL SECURITY;
ALTER TABLE audit_records FORCE ROW LEVEL SECURITY;
CREATE POLICY of_readable_projects ON audit_records USING (is_readable(project_id)) WITH CHECK (true);

-- Rows are added, and deleted by the sweep of old ones alone, which says so in its transaction.
CREATE FUNCTION refuse_audit_edit() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' AND current_setting('proctor.deletes_old_audit_records', true) = 'on' THEN
        RETURN OLD;
    END IF;
    RAISE EXCEPTION 'audit records are kept as they are' USING ERRCODE = 'insufficient_privilege';
END;
$$;
CREATE TRIGGER audit_records_stay BEFORE UPDATE OR DELETE ON audit_records
    FOR EACH ROW EXECUTE FUNCTION refuse_audit_edit();
CREATE TRIGGER audit_records_stay_all BEFORE TRUNCATE ON audit_records
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_audit_edit();
