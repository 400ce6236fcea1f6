-- The schema of results in 0.1.0, by topic. `schema.sql` beside this folder shows what all migrations make.

-- == projects ==

-- Whether only members see what is in a project: the scheduler gives such numbers to declared ones.
CREATE FUNCTION is_declared(project_id bigint) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN project_id >= 9000000000000000;

-- Whether the caller, or the service in its own work, sees what a project has. Sessions have the setting (`RowScope`); without
-- it nothing of a declared project is seen. A key that is bound to a project leaves out what is in none.
CREATE FUNCTION is_readable(project_id bigint) RETURNS boolean LANGUAGE sql STABLE PARALLEL SAFE
RETURN (
        project_id < 9000000000000000
        AND NOT coalesce(starts_with(current_setting('proctor.readable_projects', true), 'without_open'), false)
    )
    OR current_setting('proctor.readable_projects', true) = 'all'
    OR project_id::text = ANY (string_to_array(current_setting('proctor.readable_projects', true), ','));

-- == samples ==

-- Sample sets: staged chunk by chunk, committed as a whole, equal ones stored once in each declared project, and once outside.
CREATE TABLE sample_sets (
    sample_set_id uuid PRIMARY KEY,
    -- SHA-256 over the ordered sample digests; set by the commit.
    digest bytea,
    -- SHA-256 over the declared project and the hash of all that is stored of the samples, their rows too; set by the
    -- commit. Nobody reads a row, or learns that it is there, by asking the same elsewhere.
    content_key bytea UNIQUE,
    -- The committed set that a staged one turned out to equal; kept a while for a repeated commit.
    same_as uuid REFERENCES sample_sets,
    -- When the last chunk came: a set that is still being staged is no leftover, however long that takes.
    touched_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT sample_sets_committed_or_alias CHECK (digest IS NULL OR same_as IS NULL)
);

-- Garbage collection deletes staged sets that were never committed, and aliases.
CREATE INDEX sample_sets_uncommitted ON sample_sets (touched_at) WHERE digest IS NULL;
CREATE INDEX sample_sets_aliases ON sample_sets (same_as) WHERE same_as IS NOT NULL;

-- No foreign key to sample_sets: it would look the set up once per row.
CREATE TABLE samples (
    sample_set_id uuid NOT NULL,
    position integer NOT NULL,
    doc_id bigint NOT NULL,
    digest bytea NOT NULL,
    prompt_text text,
    -- [[role, content, further fields as JSON object text, if any], …]
    prompt_messages jsonb,
    choices text[] NOT NULL DEFAULT '{}',
    target_choice integer,
    target_texts text[] NOT NULL DEFAULT '{}',
    -- The passage that several samples share; empty for none.
    cluster text NOT NULL DEFAULT '',
    right_choices integer[] NOT NULL DEFAULT '{}',
    wrong_texts text[] NOT NULL DEFAULT '{}',
    choice_texts text[] NOT NULL DEFAULT '{}',
    -- The end of every choice where only its log-probability counts; empty for none.
    choice_ending text NOT NULL DEFAULT '',
    -- The row of the source: text and not jsonb, since it is only ever handed on.
    doc_json text NOT NULL DEFAULT '',
    -- Empty for a row of a suite.
    row_id text NOT NULL DEFAULT '',
    -- Parameters of the row's own, as JSON object text; empty for none.
    params_json text NOT NULL DEFAULT '',
    -- The message CodeCheck as it is sent to a worker, which nothing here reads; empty where the answer is a text only.
    code_check bytea NOT NULL DEFAULT '',
    -- The message RolloutSpec as it is sent to a worker, which nothing here reads; empty where a model is asked once.
    rollout_spec bytea NOT NULL DEFAULT '',
    PRIMARY KEY (sample_set_id, position)
)
-- Rows are added once and deleted by the set: the first vacuum that sees them freezes them, so that no later one writes them
-- again. Dead ones are cleared after a twentieth, since a fifth of a large table is more than a disk has to spare.
WITH (autovacuum_freeze_min_age = 0, autovacuum_vacuum_scale_factor = 0.05);

-- No query looks for these values, and to read long ones is three quarters of what ANALYZE costs.
ALTER TABLE samples
    ALTER COLUMN prompt_text SET STATISTICS 0,
    ALTER COLUMN prompt_messages SET STATISTICS 0,
    ALTER COLUMN target_texts SET STATISTICS 0,
    ALTER COLUMN wrong_texts SET STATISTICS 0,
    ALTER COLUMN choice_texts SET STATISTICS 0,
    ALTER COLUMN doc_json SET STATISTICS 0,
    ALTER COLUMN params_json SET STATISTICS 0,
    ALTER COLUMN code_check SET STATISTICS 0,
    ALTER COLUMN rollout_spec SET STATISTICS 0;

-- The samples of a set that share a passage: none in most sets, which takes one look to see.
CREATE INDEX samples_in_clusters ON samples (sample_set_id, position) WHERE cluster <> '';

-- Begins with the set, so that those of one set lie side by side.
CREATE FUNCTION sample_key(sample_set_id uuid, digest bytea) RETURNS bytea
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN uuid_send(sample_set_id) || digest;

-- As long as Postgres has not counted a new set, it takes an index that begins with the set for one that leads to few rows,
-- and reads all of the set for some of its positions: this one can only be entered with a digest. The position is an expression
-- here, so that no look-up by position takes it either.
CREATE INDEX samples_of_key ON samples (sample_key(sample_set_id, digest), (position::bigint));

-- Sample sets that are deleted, whose samples are still to be deleted: a few at a time, and on after a kill.
CREATE TABLE deleted_sample_sets (sample_set_id uuid PRIMARY KEY);

-- == runs ==

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
    -- What the run evaluates, a suite or the data set with this id: its figures are listed and compared by this.
    benchmark text NOT NULL DEFAULT '',
    suite_version integer NOT NULL DEFAULT 0,
    model text NOT NULL DEFAULT '',
    project_id bigint NOT NULL DEFAULT 0,
    username text NOT NULL DEFAULT '',
    created_at timestamptz,
    row_limit integer,
    num_fewshot integer,
    missing_tasks text[] NOT NULL DEFAULT '{}',
    -- Name of the data set whose id is the benchmark; empty for a suite.
    dataset_name text NOT NULL DEFAULT '',
    -- Tasks that are summed up together.
    groups jsonb NOT NULL DEFAULT '[]',
    -- What tokens of the model cost; a null of JSON without a price.
    price jsonb NOT NULL DEFAULT 'null',
    -- A task counts as failing if more of its samples failed.
    max_failed_share double precision NOT NULL DEFAULT 0.05,
    -- completed, failed, cancelled; null while the run is open.
    state text,
    -- Results takes no more outcomes from then on. A run is closed when its summary is stored, which is later.
    frozen_at timestamptz,
    -- The epoch that was last compared with the runs beside it; a crash between the close and its comparisons leaves it
    -- behind `epoch`.
    compared_epoch integer NOT NULL DEFAULT 0,
    -- The rollouts of each sample, where some have fewer; 0 for those that are not asked.
    row_rollouts integer[] NOT NULL DEFAULT '{}',
    -- Of a judging run the other run of its pairs of answers.
    against_run_id uuid,
    -- How far the outcomes of a closed run are on their way to the object store or back; null while they are here.
    archive_phase text CHECK (archive_phase IN ('writing', 'clearing', 'archived', 'restoring', 'removing')),
    -- When the phase began: readers that began before it may still read what the phase before has left.
    archive_since timestamptz
);
-- Ratings find the judged pairs of a benchmark by the runs of it.
CREATE INDEX judgings_of_pairs ON run_records (against_run_id) WHERE against_run_id IS NOT NULL;

ALTER TABLE run_records ENABLE ROW LEVEL SECURITY;
-- Forced: the owner of the tables is the service itself.
ALTER TABLE run_records FORCE ROW LEVEL SECURITY;
CREATE POLICY of_readable_projects ON run_records USING (is_readable(project_id)) WITH CHECK (true);

-- Runs that are deleted, whose outcomes are still to be deleted: a few at a time, and on after a kill.
CREATE TABLE deleted_runs (run_id uuid PRIMARY KEY);

-- Completed runs that wait to be compared.
CREATE INDEX run_records_to_compare ON run_records (frozen_at) WHERE state = 'completed' AND compared_epoch < epoch;

CREATE TABLE run_tasks (
    run_id uuid NOT NULL REFERENCES run_records ON DELETE CASCADE,
    task_index smallint NOT NULL,
    task text NOT NULL,
    sample_set_id uuid NOT NULL REFERENCES sample_sets,
    first_sample bigint NOT NULL,
    sample_count integer NOT NULL,
    -- How answers are scored and where the rows came from, as planned.
    scoring jsonb NOT NULL,
    provenance jsonb NOT NULL,
    -- Digest of all that makes two runs send the same request for a sample, beside the sample itself; null where unknown.
    request_digest bytea,
    PRIMARY KEY (run_id, task_index)
);

CREATE INDEX run_tasks_of_sample_set ON run_tasks (sample_set_id);
-- Runs whose answers another run might reuse.
CREATE INDEX run_tasks_same_requests ON run_tasks (request_digest) WHERE request_digest IS NOT NULL;

-- Python code that scores answers, by the digest that the scoring of tasks names.
CREATE TABLE run_codes (
    run_id uuid NOT NULL REFERENCES run_records ON DELETE CASCADE,
    digest text NOT NULL,
    paths text[] NOT NULL,
    contents bytea[] NOT NULL,
    PRIMARY KEY (run_id, digest)
);

-- What was decided between a run and the other run of its order. A row for each of the two: one may be deleted.
CREATE TABLE run_decisions (
    run_id uuid PRIMARY KEY REFERENCES run_records ON DELETE CASCADE,
    against_run_id uuid NOT NULL,
    decision json NOT NULL
);

-- What engines report about themselves. Several workers may report different values; each is kept.
CREATE TABLE run_environments (
    run_id uuid NOT NULL REFERENCES run_records ON DELETE CASCADE,
    name text NOT NULL,
    value text NOT NULL,
    PRIMARY KEY (run_id, name, value)
);

-- == leases ==

-- Which replica does a work on an epoch of a run, and how far it is. A lease that is not renewed ends by the clock of
-- Postgres.
CREATE TABLE leases (
    run_id uuid NOT NULL REFERENCES run_records ON DELETE CASCADE,
    -- close, comparison or baselines
    work text NOT NULL,
    epoch integer NOT NULL,
    holder uuid NOT NULL,
    -- How often the work was begun.
    starts integer NOT NULL,
    share double precision NOT NULL DEFAULT 0,
    -- The run was cancelled while it was closing: it is closed without figures.
    is_withdrawn boolean NOT NULL DEFAULT false,
    leased_until timestamptz NOT NULL,
    PRIMARY KEY (run_id, work)
);

-- == outcomes ==

CREATE TYPE outcome_status AS ENUM ('scored', 'unparsed', 'failed');
CREATE TYPE failure_class AS ENUM (
    'rate_limit', 'timeout', 'provider_error', 'refused', 'prompt_too_long', 'engine', 'scoring', 'sandbox', 'verifier'
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
    -- As the model's server sent it: reasoning between marks in the text is separated where the answer is shown.
    answer_text text NOT NULL,
    -- What the server sent apart from the text.
    reasoning text NOT NULL DEFAULT '',
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
    CONSTRAINT outcomes_failed_with_class CHECK ((status = 'failed') = (failure_class IS NOT NULL))
)
-- As for samples.
WITH (autovacuum_freeze_min_age = 0, autovacuum_vacuum_scale_factor = 0.05);

ALTER TABLE outcomes
    ALTER COLUMN failure_message SET STATISTICS 0,
    ALTER COLUMN answer_text SET STATISTICS 0,
    ALTER COLUMN reasoning SET STATISTICS 0,
    ALTER COLUMN choices SET STATISTICS 0,
    ALTER COLUMN body_json SET STATISTICS 0;

-- Pages of failures and unparsed answers in a run where nearly everything is scored.
CREATE INDEX outcomes_not_scored ON outcomes (run_id, status, sample, rollout) WHERE status <> 'scored';
CREATE INDEX outcomes_reused ON outcomes (run_id) WHERE is_reused;

-- The outcomes that count: answers, and failures of the run's present epoch. The epoch is looked up for failures only.
CREATE VIEW current_outcomes WITH (security_invoker) AS
SELECT o.*
FROM outcomes AS o
WHERE o.status <> 'failed' OR o.epoch = (SELECT r.epoch FROM run_records AS r WHERE r.run_id = o.run_id);

-- Outcomes of an archive, which a query is sent. Being strict, it is not put into the query that calls it: the planner takes its
-- word for the number of rows, and joins them by hashing. It takes those of an array for ten.
CREATE FUNCTION sent_outcomes(sent outcomes[]) RETURNS SETOF outcomes
LANGUAGE sql STABLE STRICT PARALLEL SAFE ROWS 5000
BEGIN ATOMIC
    SELECT * FROM unnest(sent);
END;

-- Whether the model answered: also where the answer could not be scored. The planner puts it into the query that calls it.
CREATE FUNCTION is_answered(status outcome_status, failed_as failure_class) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN status <> 'failed' OR failed_as = 'scoring';

-- The text of an answer that is shown and searched: a choice has no text of its own.
CREATE FUNCTION shown_text(answer_text text, prediction text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN answer_text = '' THEN prediction ELSE answer_text END;

-- Whether the text of an answer may hold reasoning, which proctor/values/reasoning separates: true for more texts than hold any.
-- Searches for the signs of marks: a pattern would take several times as long.
CREATE FUNCTION may_hold_reasoning(answer_text text) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN strpos(answer_text, '</') > 0
    OR strpos(answer_text, '|>') > 0
    OR strpos(answer_text, '｜>') > 0
    OR strpos(answer_text, '[/') > 0
    OR strpos(answer_text, '◁/') > 0
    OR strpos(answer_text, '&lt;/') > 0
    OR strpos(answer_text, '\u003c/') > 0
    OR strpos(answer_text, 'assistantfinal') > 0
    OR strpos(answer_text, '<unused95>') > 0
    OR left(answer_text, 100) ~* '^\s*([<[◁]|&lt;|\\u003c|assistant|analysis|thought|here)';

-- The times of an answer, which counts and figures of times share. The planner puts them into the query that calls them.
CREATE FUNCTION reported_times(answer outcomes) RETURNS TABLE (name text, value double precision)
LANGUAGE sql IMMUTABLE PARALLEL SAFE
BEGIN ATOMIC
    VALUES
        ('queue', (answer).queue_seconds),
        ('first_token', (answer).first_token_seconds),
        ('between_tokens', (answer).between_tokens_seconds),
        ('total', (answer).total_seconds),
        ('tokens_per_second', nullif((answer).completion_tokens, 0) / nullif((answer).total_seconds, 0));
END;

-- GPU time of a run's recorded outcomes, with that of failures which were asked again. No row: none was used.
CREATE TABLE run_gpu_seconds (
    run_id uuid PRIMARY KEY REFERENCES run_records ON DELETE CASCADE,
    seconds double precision NOT NULL
);

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
    CONSTRAINT task_counts_key UNIQUE NULLS NOT DISTINCT (run_id, task_index, failure_class)
)
-- Each batch of outcomes changes the same rows: with room in their page the index needs no new entry.
WITH (fillfactor = 50);

-- The tokens of a row of either table: statements that read them ask for `usage`, as if it were a column. It is none, since a
-- column of a type of its own could not be given one more number without rewriting the table.
CREATE TYPE token_usage AS (prompt_tokens bigint, completion_tokens bigint, cached_tokens bigint, reasoning_tokens bigint);

CREATE FUNCTION usage(source outcomes) RETURNS token_usage
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN ROW (source.prompt_tokens, source.completion_tokens, source.cached_tokens, source.reasoning_tokens)::token_usage;

CREATE FUNCTION usage(source task_counts) RETURNS token_usage
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN ROW (source.prompt_tokens, source.completion_tokens, source.cached_tokens, source.reasoning_tokens)::token_usage;

-- Outcomes recorded per shard of the present epoch: shards get new numbers in each.
CREATE TABLE shard_counts (
    run_id uuid NOT NULL,
    shard integer NOT NULL,
    recorded integer NOT NULL,
    PRIMARY KEY (run_id, shard)
)
WITH (fillfactor = 50);

-- == archives ==

-- The files in the object store that have the outcomes of a run, each those of a range of keys.
CREATE TABLE archive_parts (
    run_id uuid NOT NULL REFERENCES run_records ON DELETE CASCADE,
    part integer NOT NULL,
    first_sample bigint NOT NULL,
    first_rollout integer NOT NULL,
    last_sample bigint NOT NULL,
    last_rollout integer NOT NULL,
    outcomes integer NOT NULL,
    size_bytes bigint NOT NULL,
    -- SHA-256 of the file, and of the rows as Postgres writes them.
    file_digest bytea NOT NULL,
    rows_digest bytea NOT NULL,
    -- Its rows are stored again.
    is_restored boolean NOT NULL DEFAULT false,
    PRIMARY KEY (run_id, part)
);

-- == summaries ==

-- Figures are in the order of their tasks, the main one first: json keeps it, jsonb does not.
CREATE TABLE run_summaries (
    run_id uuid NOT NULL REFERENCES run_records ON DELETE CASCADE,
    epoch integer NOT NULL,
    summary json NOT NULL,
    PRIMARY KEY (run_id, epoch)
);

-- == leaderboard ==

-- A run as it was closed last: one row, written with the summary. A later epoch that is closed replaces it.
CREATE TABLE closed_runs (
    run_id uuid PRIMARY KEY REFERENCES run_records ON DELETE CASCADE,
    epoch integer NOT NULL,
    benchmark text NOT NULL,
    model text NOT NULL,
    project_id bigint NOT NULL,
    -- completed, failed or cancelled.
    state text,
    closed_at timestamptz NOT NULL,
    -- Evaluation conditions, counts and the figures of the suite.
    result json NOT NULL,
    -- Figures that need no model, by name and metric; null as long as they are not computed.
    baselines json,
    -- Beside the result: a history sums them over thousands of runs.
    answered bigint GENERATED ALWAYS AS ((result ->> 'answered')::bigint) STORED,
    failed bigint GENERATED ALWAYS AS ((result ->> 'failed')::bigint) STORED,
    -- Null without a price.
    cost double precision GENERATED ALWAYS AS ((result ->> 'cost')::double precision) STORED,
    currency text GENERATED ALWAYS AS (result ->> 'currency') STORED
);

-- Completed runs whose baselines are still to be computed.
CREATE INDEX closed_runs_without_baselines ON closed_runs (closed_at) WHERE baselines IS NULL AND state = 'completed';

ALTER TABLE closed_runs ENABLE ROW LEVEL SECURITY;
-- Forced: the owner of the tables is the service itself.
ALTER TABLE closed_runs FORCE ROW LEVEL SECURITY;
CREATE POLICY of_readable_projects ON closed_runs USING (is_readable(project_id)) WITH CHECK (true);

-- The histories that a closed run is part of: its benchmark's and model's, its benchmark's, its model's, and that of all runs. An
-- empty name stands for all, *suite for all suites and *dataset for all data sets, so every history is one range of the key,
-- read backwards.
CREATE TABLE history_entries (
    benchmark text NOT NULL,
    model text NOT NULL,
    closed_at timestamptz NOT NULL,
    run_id uuid NOT NULL REFERENCES closed_runs ON DELETE CASCADE,
    PRIMARY KEY (benchmark, model, closed_at, run_id)
);

CREATE INDEX history_entries_of_run ON history_entries (run_id);

-- The leaderboards that a completed run is part of: for each metric that of its project and, under an empty name, that of all
-- projects but declared ones. `conditions` is a digest, and empty for runs that cannot be ranked. The latest run of each model and conditions is the end of a range
-- of the key, so a leaderboard is read in as many steps as it has models and conditions, however many runs there are.
CREATE TABLE leaderboard_entries (
    benchmark text NOT NULL,
    -- A text: it is empty for the leaderboard of all projects.
    project_id text NOT NULL,
    metric text NOT NULL,
    model text NOT NULL,
    conditions text NOT NULL,
    closed_at timestamptz NOT NULL,
    run_id uuid NOT NULL REFERENCES closed_runs ON DELETE CASCADE,
    -- -infinity where it is undefined.
    mean double precision NOT NULL,
    -- Whether the run is ranked without being asked for.
    is_whole boolean NOT NULL,
    PRIMARY KEY (benchmark, project_id, metric, model, conditions, closed_at, run_id)
);

CREATE INDEX leaderboard_entries_by_mean ON leaderboard_entries (
    benchmark, project_id, metric, model, conditions, mean, closed_at, run_id
);
CREATE INDEX leaderboard_entries_of_run ON leaderboard_entries (run_id);

-- Baselines of a sample set, scored in some way: computed once, however many runs use it.
CREATE TABLE task_baselines (
    sample_set_id uuid NOT NULL REFERENCES sample_sets ON DELETE CASCADE,
    -- SHA-256 of how answers are scored.
    scoring_digest bytea NOT NULL,
    -- Figures by name and metric.
    baselines json NOT NULL,
    PRIMARY KEY (sample_set_id, scoring_digest)
);

-- == comparison ==

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

-- == answers ==

CREATE TYPE answer_mark AS ENUM ('golden', 'wrong');

-- Marks of users. An answer has one at most, whoever sets which at the same time.
CREATE TABLE marks (
    run_id uuid NOT NULL REFERENCES run_records ON DELETE CASCADE,
    sample bigint NOT NULL,
    rollout integer NOT NULL,
    mark answer_mark NOT NULL,
    username text NOT NULL,
    marked_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (run_id, sample, rollout)
);

CREATE INDEX marks_of_kind ON marks (run_id, mark, sample, rollout);

-- Who marked an answer, and who removed a mark.
CREATE TABLE mark_changes (
    change_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    run_id uuid NOT NULL REFERENCES run_records ON DELETE CASCADE,
    sample bigint NOT NULL,
    rollout integer NOT NULL,
    -- NULL: the mark was removed.
    mark answer_mark,
    username text NOT NULL,
    changed_at timestamptz NOT NULL DEFAULT now()
);

CREATE INDEX mark_changes_of_run ON mark_changes (run_id, change_id);

-- == annotations ==

-- Where an answer stands in the random order in which people annotate the answers of a run: the same for all of them.
CREATE FUNCTION drawing_place(run_id uuid, sample bigint, rollout integer) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN md5(run_id::text || ' ' || sample::text || ' ' || rollout::text);

-- The first position in the samples of a judging run that asks about an answer or one behind it. The ids of their rows are
-- SAMPLE.ROLLOUT of the judged answer, in this order: halving takes a dozen reads, where an index would be for all samples of all runs.
CREATE FUNCTION judged_position(judging_set uuid, set_size integer, judged_sample bigint, judged_rollout integer) RETURNS integer
LANGUAGE plpgsql STABLE PARALLEL SAFE
AS $$
DECLARE
    low integer := 0;
    high integer := set_size;
    middle integer;
    judged text;
BEGIN
    WHILE low < high LOOP
        middle := (low + high) / 2;
        SELECT row_id INTO judged FROM samples WHERE sample_set_id = judging_set AND position = middle;
        -- Of a suite that is called as the run is, rows have any id.
        IF judged !~ '^\d{1,18}\.\d{1,9}(\.|$)' THEN
            RETURN set_size;
        END IF;
        IF (split_part(judged, '.', 1)::bigint, split_part(judged, '.', 2)::integer) < (judged_sample, judged_rollout) THEN
            low := middle + 1;
        ELSE
            high := middle;
        END IF;
    END LOOP;
    RETURN low;
END
$$;

-- What a person said of an answer to a question on a scale.
CREATE TABLE annotations (
    run_id uuid NOT NULL REFERENCES run_records ON DELETE CASCADE,
    question text NOT NULL,
    sample bigint NOT NULL,
    rollout integer NOT NULL,
    username text NOT NULL,
    -- Empty without a score: the person could not tell.
    label text NOT NULL,
    score double precision CHECK (score BETWEEN 0 AND 1),
    comment text NOT NULL,
    annotated_at timestamptz NOT NULL DEFAULT now(),
    CHECK ((label = '') = (score IS NULL)),
    PRIMARY KEY (run_id, question, sample, rollout, username)
);

-- == export ==

-- Numbers as JSON spells them: the shortest text that is read back as the same, with a point where it is whole; null for what
-- JSON has no word for.
CREATE FUNCTION json_number(value double precision) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE
    WHEN value = trunc(value) AND abs(value) < 1e15 THEN value::text || '.0'
    WHEN abs(value) < 'infinity' THEN value::text
    ELSE 'null'
END;

-- A text without the prefix it begins with.
CREATE FUNCTION without_prefix(value text, prefix text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN starts_with(value, prefix) THEN substr(value, length(prefix) + 1) ELSE value END;

-- JSON whose white space breaks no line; within its strings there are no breaks.
CREATE FUNCTION one_line(value text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN translate(value, E'\n\r', '  ');

-- A JSON object, open at its end, with the members of another one behind its own; what is none adds nothing. Only those are made
-- one line, as the rest is: of half a kilobyte it takes 12 µs.
CREATE FUNCTION with_members(object text, members_json text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN object || CASE
    WHEN members_json <> '{}' AND members_json IS JSON OBJECT THEN ',' || one_line(substr(members_json, 2))
    ELSE '}'
END;

-- A stored message, [role, content] or [role, content, its other fields], as JSON.
CREATE FUNCTION message_json(message jsonb) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE jsonb_array_length(message)
    WHEN 2 THEN '{"role":' || (message -> 0)::text || ',"content":' || (message -> 1)::text || '}'
    ELSE with_members('{"role":' || (message -> 0)::text || ',"content":' || (message -> 1)::text, message ->> 2)
END;

-- Functions of SQL are made part of a query only while they hold neither queries nor functions that are merely stable, such as
-- concat and to_json: so this one stands apart, and row_request calls it for long chats.
CREATE FUNCTION messages_json(messages jsonb) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN (SELECT coalesce(string_agg(message_json(message), ','), '') FROM jsonb_array_elements(messages) AS message);

-- The request of a row in the form of the OpenAI protocol, as JSON: what is asked, and the row's own parameters. Null for a plain
-- prompt without parameters. Texts are joined: jsonb takes no NUL character. A field that a message has twice counts as it stands
-- last.
CREATE FUNCTION row_request(prompt_text text, prompt_messages jsonb, params_json text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE
    WHEN prompt_messages IS NULL AND params_json = '' THEN NULL
    ELSE with_members(
        CASE jsonb_array_length(prompt_messages)
            WHEN 1 THEN '{"messages":[' || message_json(prompt_messages -> 0) || ']'
            WHEN 2 THEN '{"messages":[' || message_json(prompt_messages -> 0) || ',' || message_json(prompt_messages -> 1) || ']'
            ELSE CASE
                WHEN prompt_messages IS NULL THEN '{"prompt":' || JSON_SCALAR(coalesce(prompt_text, ''))::text
                ELSE '{"messages":[' || messages_json(prompt_messages) || ']'
            END
        END,
        params_json
    )
END;

-- Whether a text has a part, whatever the case of letters. The collation is Unicode's own, whichever the database has.
CREATE FUNCTION has_part(value text, part text) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN strpos(casefold(value COLLATE pg_unicode_fast), casefold(part COLLATE pg_unicode_fast)) > 0;

-- The name of a row of a set: its id, else its number in its split.
CREATE FUNCTION row_name(row_id text, doc_id bigint) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN row_id = '' THEN doc_id::text ELSE row_id END;

-- Whether a provider's whole answer contains a part: in one of its texts, in what was thought before it, or in the tools that it
-- calls. Postgres's jsonb has no NUL; the escape that stands for one is read as that of a replacement character.
-- Step by step: of an expression, Postgres may reckon any piece ahead, also what its conditions rule out.
CREATE FUNCTION body_has_part(body text, part text) RETURNS boolean
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
AS $$
DECLARE
    answer jsonb;
BEGIN
    IF body = '' OR body IS NOT JSON OBJECT THEN
        RETURN false;
    END IF;
    answer := replace(body, '\u0000', '\ufffd')::jsonb;
    RETURN EXISTS (
        SELECT
        FROM
            unnest(ARRAY[
                '$.choices[*].text',
                '$.choices[*].message.content',
                '$.choices[*].message.content[*].text',
                '$.choices[*].message.refusal',
                '$.choices[*].message.reasoning',
                '$.choices[*].message.reasoning_content',
                '$.choices[*].message.tool_calls[*].function.name',
                '$.choices[*].message.tool_calls[*].function.arguments'
            ]::jsonpath[]) AS place,
            jsonb_path_query(answer, place) AS said
        WHERE jsonb_typeof(said) = 'string' AND has_part(said #>> '{}', part)
    );
END
$$;

-- Null for what JSON has no number for.
CREATE FUNCTION finite(value double precision) RETURNS double precision
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN abs(value) < 'infinity' THEN value END;

-- Outcomes beside their samples; export/exported_columns.py lists the columns that files show. Each sample and task is looked up:
-- statistics that do not know a run yet cannot lead to a join that compares all with all.
CREATE VIEW outcome_records AS
SELECT
    o.run_id, o.sample, o.rollout, o.epoch, o.recorded_at,
    given.is_answered, s.is_chat, t.task, s.doc_id, s.row_id,
    o.status::text AS status,
    s.prompt, row_request(s.prompt_text, s.prompt_messages, s.params_json)::json AS request, s.choices,
    CASE
        WHEN s.target_choice >= 0 AND s.target_choice < cardinality(s.choices)
            THEN without_prefix(s.choices[s.target_choice + 1], t.target_delimiter)
        WHEN cardinality(s.right_choices) > 0 THEN (
            SELECT coalesce(string_agg(without_prefix(s.choices[choice + 1], t.target_delimiter), ' | '), '')
            FROM unnest(s.right_choices) AS choice
            WHERE choice < cardinality(s.choices)
        )
        ELSE array_to_string(s.target_texts, ' | ')
    END AS target,
    o.prediction,
    CASE WHEN given.is_answered THEN o.answer_text ELSE '' END AS answer,
    CASE WHEN given.is_answered THEN o.reasoning ELSE '' END AS reasoning,
    CASE WHEN given.is_answered THEN o.finish_reason ELSE '' END AS finish_reason,
    CASE
        WHEN given.is_answered AND o.choices <> '[]' THEN jsonb_path_query_array(o.choices, '$[*][0]')
        ELSE '[]'
    END AS choice_logprobs,
    CASE WHEN given.is_answered AND o.body_json IS JSON OBJECT THEN one_line(o.body_json)::json END AS body,
    coalesce(o.failure_class::text, '') AS failure_class,
    o.failure_message, o.scores, o.prompt_tokens, o.completion_tokens, o.cached_tokens, o.reasoning_tokens,
    CASE WHEN NOT o.is_reused THEN finite(o.total_seconds) END AS total_seconds,
    finite(o.queue_seconds) AS queue_seconds, finite(o.first_token_seconds) AS first_token_seconds,
    finite(o.between_tokens_seconds) AS between_tokens_seconds, o.is_reused, encode(s.digest, 'hex') AS digest,
    octet_length(o.answer_text) + octet_length(o.reasoning) + octet_length(o.body_json) + octet_length(o.failure_message)
        + pg_column_size(o.choices) + s.bytes AS bytes
FROM outcomes AS o
CROSS JOIN LATERAL (SELECT is_answered(o.status, o.failure_class) AS is_answered) AS given
CROSS JOIN LATERAL (
    SELECT task, sample_set_id AS set_id, first_sample, scoring ->> 'target_delimiter' AS target_delimiter
    FROM run_tasks
    WHERE run_id = o.run_id AND task_index = o.task_index
    LIMIT 1
) AS t
CROSS JOIN LATERAL (
    SELECT
        doc_id, row_id, digest, choices, target_choice, target_texts, right_choices, prompt_text IS NULL AS is_chat,
        prompt_text, prompt_messages, params_json,
        coalesce(prompt_text, CASE jsonb_array_length(prompt_messages)
            -- As below, without a query for each of the rows that nearly all are: it took a quarter of their time.
            WHEN 1 THEN concat(prompt_messages -> 0 ->> 0, ': ', prompt_messages -> 0 ->> 1)
            WHEN 2 THEN concat(
                prompt_messages -> 0 ->> 0, ': ', prompt_messages -> 0 ->> 1, E'\n\n',
                prompt_messages -> 1 ->> 0, ': ', prompt_messages -> 1 ->> 1
            )
            ELSE (
                SELECT string_agg(concat(turn ->> 0, ': ', turn ->> 1), E'\n\n')
                FROM jsonb_array_elements(prompt_messages) AS turn
            )
        END, '') AS prompt,
        -- Messages count twice: as the prompt and in the request.
        coalesce(octet_length(prompt_text), 0) + 2 * coalesce(pg_column_size(prompt_messages), 0)
            + octet_length(params_json) + pg_column_size(choices) + pg_column_size(target_texts) AS bytes
    FROM samples
    WHERE sample_set_id = t.set_id AND position = o.sample - t.first_sample
    LIMIT 1
) AS s;

-- How many bytes the export of a closed run has up to some outcomes, so that one that was cut off is continued without being
-- made anew from its first byte.
CREATE TABLE resume_points (
    run_id uuid NOT NULL REFERENCES run_records ON DELETE CASCADE,
    epoch integer NOT NULL,
    -- The tag of the file's content, which tells formats and tasks apart.
    tag text NOT NULL,
    -- Bytes of the file before the outcomes behind (sample, rollout); the last point of a file that is measured to its end
    -- has no outcome behind it.
    first_byte bigint NOT NULL,
    sample bigint NOT NULL,
    rollout integer NOT NULL,
    is_end boolean NOT NULL,
    PRIMARY KEY (run_id, epoch, tag, first_byte, is_end)
);
