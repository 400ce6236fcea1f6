-- Sample sets: staged chunk by chunk, committed as a whole, the same ordered digests stored once.
CREATE TABLE sample_sets (
    set_id uuid PRIMARY KEY,
    -- SHA-256 over the ordered sample digests; set by the commit.
    digest bytea UNIQUE,
    -- The committed set that a staged one turned out to equal; kept a while for a repeated commit.
    same_as uuid REFERENCES sample_sets,
    -- When the last chunk came: a set that is still being staged is no leftover, however long that takes.
    touched_at timestamptz NOT NULL DEFAULT now(),
    CHECK (digest IS NULL OR same_as IS NULL)
);

-- What garbage collection drops: staged sets that were never committed, and aliases.
CREATE INDEX sample_sets_uncommitted ON sample_sets (touched_at) WHERE digest IS NULL;
CREATE INDEX sample_sets_aliases ON sample_sets (same_as) WHERE same_as IS NOT NULL;

-- No foreign key to sample_sets: it would look the set up once per row.
CREATE TABLE samples (
    set_id uuid NOT NULL,
    position integer NOT NULL,
    doc_id bigint NOT NULL,
    digest bytea NOT NULL,
    prompt_text text,
    -- [[role, content, further fields as JSON object text, if any], …]
    prompt_messages jsonb,
    choices text[] NOT NULL,
    target_choice integer,
    target_texts text[] NOT NULL,
    -- The passage that several samples share; empty for none.
    cluster text NOT NULL,
    right_choices integer[] NOT NULL DEFAULT '{}',
    wrong_texts text[] NOT NULL DEFAULT '{}',
    choice_texts text[] NOT NULL DEFAULT '{}',
    -- The row of the source: text and not jsonb, since it is only ever handed on.
    doc_json text NOT NULL DEFAULT '',
    -- Empty for a row of a suite.
    row_id text NOT NULL DEFAULT '',
    -- Parameters of the row's own, as JSON object text; empty for none.
    params_json text NOT NULL DEFAULT '',
    PRIMARY KEY (set_id, position)
);

-- The samples of a set that share a passage: none in most sets, which takes one look to see.
CREATE INDEX samples_in_clusters ON samples (set_id, position) WHERE cluster <> '';

-- Begins with the set, so that those of one set lie side by side.
CREATE FUNCTION sample_key(set_id uuid, digest bytea) RETURNS bytea
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN uuid_send(set_id) || digest;

-- As long as Postgres has not counted a new set, it takes an index that begins with the set for one that leads to few rows,
-- and reads all of the set for some of its positions: this one can only be entered with a digest. The position is an expression
-- here, so that no look-up by position takes it either.
CREATE INDEX samples_of_key ON samples (sample_key(set_id, digest), (position::bigint));

-- Sample sets that are gone, whose samples are still to be removed: a few at a time, and on after a kill.
CREATE TABLE dropped_sample_sets (set_id uuid PRIMARY KEY);

CREATE TABLE run_records (
    run_id uuid PRIMARY KEY,
    epoch integer NOT NULL,
    -- A frozen run rejects outcomes; opening a later epoch thaws it.
    is_frozen boolean NOT NULL DEFAULT false,
    rollouts integer NOT NULL CHECK (rollouts > 0),
    -- loglikelihood, generate, constrained; null where no task has choices.
    scoring_method text,
    is_truncated_left boolean NOT NULL,
    opened_at timestamptz NOT NULL DEFAULT now(),
    -- What the run was ordered as: its figures are listed and compared by this.
    suite text NOT NULL DEFAULT '',
    suite_version integer NOT NULL DEFAULT 0,
    model text NOT NULL DEFAULT '',
    project_id bigint NOT NULL DEFAULT 0,
    username text NOT NULL DEFAULT '',
    created_at timestamptz,
    row_limit integer,
    num_fewshot integer,
    missing_tasks text[] NOT NULL DEFAULT '{}',
    -- Name of the data set whose id is the suite; empty for a suite.
    dataset_name text NOT NULL DEFAULT '',
    -- Tasks that are summed up together.
    groups jsonb NOT NULL DEFAULT '[]',
    -- What tokens of the model cost; a null of JSON without a price.
    price jsonb NOT NULL DEFAULT 'null',
    -- A task counts as failing if more of its samples failed.
    max_failed_share double precision NOT NULL DEFAULT 0.05,
    -- completed, failed, cancelled; null while the run is open.
    state text,
    closed_at timestamptz,
    -- The epoch that was last compared with the runs beside it; a crash between the close and its comparisons leaves it
    -- behind `epoch`.
    compared_epoch integer NOT NULL DEFAULT 0
);

-- Completed runs that wait to be compared.
CREATE INDEX run_records_to_compare ON run_records (closed_at) WHERE state = 'completed' AND compared_epoch < epoch;

CREATE TABLE run_tasks (
    run_id uuid NOT NULL REFERENCES run_records ON DELETE CASCADE,
    task_index smallint NOT NULL,
    task text NOT NULL,
    set_id uuid NOT NULL REFERENCES sample_sets,
    first_sample bigint NOT NULL,
    sample_count integer NOT NULL,
    -- How answers are scored and where the rows came from, as planned.
    scoring jsonb NOT NULL,
    provenance jsonb NOT NULL,
    -- Digest of all that makes two runs send the same request for a sample, beside the sample itself; null where unknown.
    request_digest bytea,
    PRIMARY KEY (run_id, task_index)
);

CREATE INDEX run_tasks_of_set ON run_tasks (set_id);
-- Runs whose answers another run might reuse.
CREATE INDEX run_tasks_same_requests ON run_tasks (request_digest) WHERE request_digest IS NOT NULL;

-- What engines report about themselves. Several workers may report different values; each is kept.
CREATE TABLE run_environments (
    run_id uuid NOT NULL REFERENCES run_records ON DELETE CASCADE,
    name text NOT NULL,
    value text NOT NULL,
    PRIMARY KEY (run_id, name, value)
);

CREATE TYPE outcome_status AS ENUM ('scored', 'unparsed', 'failed');
CREATE TYPE failure_class AS ENUM (
    'rate_limit', 'timeout', 'provider_error', 'refused', 'prompt_too_long', 'engine', 'scoring'
);

-- One row per (run, sample, rollout): that constraint is what makes recording happen once. A recorder sends whole rows, so
-- the columns are listed here, and once where one row replaces another.
-- Ready to be partitioned: its only key begins with run_id, nothing refers to it and it refers to nothing.
CREATE TABLE outcomes (
    run_id uuid NOT NULL,
    sample bigint NOT NULL,
    rollout integer NOT NULL,
    task_index smallint NOT NULL,
    shard integer NOT NULL,
    epoch integer NOT NULL,
    attempt integer NOT NULL,
    status outcome_status NOT NULL,
    failure_class failure_class,
    failure_message text NOT NULL,
    answer_text text NOT NULL,
    finish_reason text NOT NULL,
    -- [[log-probability or null for -infinity, is greedy, tokens], …]
    choices jsonb NOT NULL,
    prediction text NOT NULL,
    -- metric to number, or to [gold, predicted]
    scores jsonb NOT NULL,
    prompt_tokens bigint NOT NULL,
    completion_tokens bigint NOT NULL,
    cached_tokens bigint NOT NULL,
    reasoning_tokens bigint NOT NULL,
    total_seconds double precision NOT NULL,
    queue_seconds double precision,
    first_token_seconds double precision,
    between_tokens_seconds double precision,
    -- The provider's whole answer, as JSON object text, where more was asked for than a text; empty otherwise. Text and not
    -- jsonb: it is only ever handed on.
    body_json text NOT NULL DEFAULT '',
    -- Copied from an earlier run: it carries no times, and its tokens cost nothing here.
    is_reused boolean NOT NULL DEFAULT false,
    recorded_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (run_id, sample, rollout),
    CHECK ((status = 'failed') = (failure_class IS NOT NULL))
);

-- Pages of failures and unparsed answers in a run where nearly everything is scored.
CREATE INDEX outcomes_not_scored ON outcomes (run_id, status, sample, rollout) WHERE status <> 'scored';
CREATE INDEX outcomes_reused ON outcomes (run_id) WHERE is_reused;

-- Counts over outcomes, changed in the statement that changes the rows. A row counts when it is an answer (failure_class is
-- null) or a failure of the run's present epoch.
CREATE TABLE task_counts (
    run_id uuid NOT NULL,
    task_index smallint NOT NULL,
    failure_class failure_class,
    recorded bigint NOT NULL,
    unparsed bigint NOT NULL,
    prompt_tokens bigint NOT NULL DEFAULT 0,
    completion_tokens bigint NOT NULL DEFAULT 0,
    cached_tokens bigint NOT NULL DEFAULT 0,
    reasoning_tokens bigint NOT NULL DEFAULT 0,
    UNIQUE NULLS NOT DISTINCT (run_id, task_index, failure_class)
);

-- The tokens of a row of either table: statements that read them ask for `usage`, as if it were a column. It is none, since a
-- column of a type of its own could not be given one more number without rewriting the table.
CREATE TYPE token_usage AS (prompt_tokens bigint, completion_tokens bigint, cached_tokens bigint, reasoning_tokens bigint);

CREATE FUNCTION usage(source outcomes) RETURNS token_usage
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN ROW (source.prompt_tokens, source.completion_tokens, source.cached_tokens, source.reasoning_tokens)::token_usage;

CREATE FUNCTION usage(source task_counts) RETURNS token_usage
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN ROW (source.prompt_tokens, source.completion_tokens, source.cached_tokens, source.reasoning_tokens)::token_usage;

-- Members of an object of JSON.
CREATE FUNCTION usage_members(tokens token_usage) RETURNS text
LANGUAGE sql STABLE PARALLEL SAFE
RETURN concat(
    '"prompt_tokens":', tokens.prompt_tokens,
    ',"completion_tokens":', tokens.completion_tokens,
    ',"cached_tokens":', tokens.cached_tokens,
    ',"reasoning_tokens":', tokens.reasoning_tokens
);

-- Outcomes recorded per shard of the present epoch: shards get new numbers in each.
CREATE TABLE shard_counts (
    run_id uuid NOT NULL,
    shard integer NOT NULL,
    recorded integer NOT NULL,
    PRIMARY KEY (run_id, shard)
);

-- Figures are in the order of their tasks, the main one first: json keeps it, jsonb does not.
CREATE TABLE run_summaries (
    run_id uuid NOT NULL REFERENCES run_records ON DELETE CASCADE,
    epoch integer NOT NULL,
    summary json NOT NULL,
    PRIMARY KEY (run_id, epoch)
);

-- A run as it was closed last: one row, written with the summary. A later epoch that is closed replaces it.
CREATE TABLE closed_runs (
    run_id uuid PRIMARY KEY REFERENCES run_records ON DELETE CASCADE,
    epoch integer NOT NULL,
    suite text NOT NULL,
    model text NOT NULL,
    project_id bigint NOT NULL,
    -- completed, failed or cancelled.
    state text,
    closed_at timestamptz NOT NULL,
    -- Evaluation conditions, counts and the figures of the suite.
    result json NOT NULL,
    -- Figures that need no model, by name and metric; null as long as they are not computed.
    baselines json
);

-- Completed runs whose baselines are still to be computed.
CREATE INDEX closed_runs_without_baselines ON closed_runs (closed_at) WHERE baselines IS NULL AND state = 'completed';

-- Who works on a closed run: each work is done once, by the replica that claimed it. A claim that is not renewed ends by the
-- clock of Postgres, and a run that was tried before comes after the others.
CREATE TABLE closed_run_claims (
    run_id uuid NOT NULL REFERENCES run_records ON DELETE CASCADE,
    -- comparison or baselines
    work text NOT NULL,
    epoch integer NOT NULL,
    tries integer NOT NULL,
    claimed_until timestamptz NOT NULL,
    PRIMARY KEY (run_id, work)
);

-- The histories that a closed run is part of: its suite's and model's, its suite's, its model's, and that of all runs. An
-- empty name stands for all, *suite for all suites and *dataset for all data sets, so every history is one range of the key,
-- read backwards.
CREATE TABLE history_entries (
    suite text NOT NULL,
    model text NOT NULL,
    closed_at timestamptz NOT NULL,
    run_id uuid NOT NULL REFERENCES closed_runs ON DELETE CASCADE,
    PRIMARY KEY (suite, model, closed_at, run_id)
);

CREATE INDEX history_entries_of_run ON history_entries (run_id);

-- The leaderboards that a completed run is part of: for each metric that of its project and, under an empty name, that of all
-- projects. `conditions` is empty for runs that cannot be ranked, and begins with "limited; " for those that only a limit of
-- their rows keeps from it. The latest run of each model and conditions is the end of a range of
-- the key, so a leaderboard is read in as many steps as it has models and conditions, however many runs there are.
CREATE TABLE leaderboard_entries (
    suite text NOT NULL,
    project text NOT NULL,
    metric text NOT NULL,
    model text NOT NULL,
    conditions text NOT NULL,
    closed_at timestamptz NOT NULL,
    run_id uuid NOT NULL REFERENCES closed_runs ON DELETE CASCADE,
    -- -infinity where it is undefined.
    mean double precision NOT NULL,
    PRIMARY KEY (suite, project, metric, model, conditions, closed_at, run_id)
);

CREATE INDEX leaderboard_entries_by_mean ON leaderboard_entries (suite, project, metric, model, conditions, mean, closed_at, run_id);
CREATE INDEX leaderboard_entries_of_run ON leaderboard_entries (run_id);

-- Baselines of a sample set, scored in some way: computed once, however many runs use it.
CREATE TABLE task_baselines (
    set_id uuid NOT NULL REFERENCES sample_sets ON DELETE CASCADE,
    -- SHA-256 of how answers are scored.
    scoring_digest bytea NOT NULL,
    -- Figures by name and metric.
    baselines json NOT NULL,
    PRIMARY KEY (set_id, scoring_digest)
);

-- What two completed runs prove about each other, first minus second: one row per metric of the suite as a whole (task
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
    -- The verdict on it alone.
    verdict text NOT NULL,
    pairs bigint NOT NULL,
    test text NOT NULL,
    -- In this order a leaderboard reads what it needs of a run in one piece, whatever else was compared.
    PRIMARY KEY (first_run_id, task, metric, second_run_id)
);

CREATE INDEX run_comparisons_of_second ON run_comparisons (second_run_id);

-- Answers that users marked as right.
CREATE TABLE golden_answers (
    run_id uuid NOT NULL REFERENCES run_records ON DELETE CASCADE,
    sample bigint NOT NULL,
    rollout integer NOT NULL,
    username text NOT NULL,
    marked_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (run_id, sample, rollout)
);

-- How many bytes the export of a closed run has up to some outcomes, so that one that was cut off is continued without being
-- made anew from its first byte.
CREATE TABLE export_marks (
    run_id uuid NOT NULL REFERENCES run_records ON DELETE CASCADE,
    epoch integer NOT NULL,
    -- The tag of the file's content, which tells formats and tasks apart.
    form text NOT NULL,
    -- Bytes of the file before the outcomes behind (sample, rollout); the last mark of a file that is measured to its end
    -- has no outcome behind it.
    first_byte bigint NOT NULL,
    sample bigint NOT NULL,
    rollout integer NOT NULL,
    is_end boolean NOT NULL,
    PRIMARY KEY (run_id, epoch, form, first_byte, is_end)
);
