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

-- What is swept: staged sets that nobody committed, and aliases.
CREATE INDEX sample_sets_uncommitted ON sample_sets (touched_at) WHERE digest IS NULL;

-- No foreign key to sample_sets: it would look the set up once per row.
CREATE TABLE samples (
    set_id uuid NOT NULL,
    position integer NOT NULL,
    doc_id bigint NOT NULL,
    digest bytea NOT NULL,
    prompt_text text,
    prompt_messages jsonb,
    choices text[] NOT NULL,
    target_choice integer,
    target_texts text[] NOT NULL,
    cluster text NOT NULL,
    PRIMARY KEY (set_id, position)
);

CREATE TABLE run_records (
    run_id uuid PRIMARY KEY,
    epoch integer NOT NULL,
    -- A frozen run refuses outcomes; opening a later epoch thaws it.
    is_frozen boolean NOT NULL DEFAULT false,
    rollouts integer NOT NULL CHECK (rollouts > 0),
    scoring_method smallint NOT NULL,
    is_truncated_left boolean NOT NULL,
    opened_at timestamptz NOT NULL DEFAULT now()
);

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
    PRIMARY KEY (run_id, task_index)
);

-- What engines said of themselves. Several workers may say different things; each is kept.
CREATE TABLE run_environments (
    run_id uuid NOT NULL REFERENCES run_records ON DELETE CASCADE,
    name text NOT NULL,
    value text NOT NULL,
    PRIMARY KEY (run_id, name, value)
);

-- One row per (run, sample, rollout): that constraint is what makes recording happen once.
-- Ready to be partitioned: its only key begins with run_id, nothing refers to it and it refers to nothing.
CREATE TABLE outcomes (
    run_id uuid NOT NULL,
    sample bigint NOT NULL,
    rollout integer NOT NULL,
    task_index smallint NOT NULL,
    shard integer NOT NULL,
    epoch integer NOT NULL,
    attempt integer NOT NULL,
    -- 1 scored, 2 unparsed, 3 failed
    status smallint NOT NULL,
    -- 0 answered, else the number of FailureClass
    failure_class smallint NOT NULL,
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
    recorded_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (run_id, sample, rollout),
    CHECK ((status = 3) = (failure_class > 0))
);

-- Pages of failures and unparsed answers in a run where nearly everything is scored.
CREATE INDEX outcomes_not_scored ON outcomes (run_id, status, sample, rollout) WHERE status <> 1;

-- Counts over outcomes, changed in the statement that changes the rows. A row counts when it is an answer or a
-- failure of the run's present epoch.
CREATE TABLE task_counts (
    run_id uuid NOT NULL,
    task_index smallint NOT NULL,
    failure_class smallint NOT NULL,
    recorded bigint NOT NULL,
    unparsed bigint NOT NULL,
    PRIMARY KEY (run_id, task_index, failure_class)
);

-- Outcomes recorded per shard of the present epoch: shards get new numbers in each.
CREATE TABLE shard_counts (
    run_id uuid NOT NULL,
    shard integer NOT NULL,
    recorded integer NOT NULL,
    PRIMARY KEY (run_id, shard)
);

CREATE TABLE run_summaries (
    run_id uuid NOT NULL REFERENCES run_records ON DELETE CASCADE,
    epoch integer NOT NULL,
    summary jsonb NOT NULL,
    PRIMARY KEY (run_id, epoch)
);
