-- Figures stand in the order of their tasks, the main one first: json keeps it, jsonb does not.
ALTER TABLE run_summaries ALTER COLUMN summary TYPE json USING summary::json;

-- A run as it was closed last: one row, written with the summary. A later epoch that is closed replaces it.
CREATE TABLE closed_runs (
    run_id uuid PRIMARY KEY REFERENCES run_records ON DELETE CASCADE,
    epoch integer NOT NULL,
    suite text NOT NULL,
    model text NOT NULL,
    project_id bigint NOT NULL,
    -- Final state, with the number of the contract.
    state smallint NOT NULL,
    closed_at timestamptz NOT NULL,
    -- Terms, counts and the figures of the suite.
    standing json NOT NULL,
    -- Figures that need no model, by name and metric; null as long as they are not computed.
    baselines json
);

-- Complete runs whose baselines are still to be computed.
CREATE INDEX closed_runs_without_baselines ON closed_runs (closed_at) WHERE baselines IS NULL AND state = 4;

-- The histories that a closed run is part of: its suite's and model's, its suite's, its model's, everybody's. An empty
-- name stands for all, so every history is one range of the key, read backwards.
CREATE TABLE history_entries (
    suite text NOT NULL,
    model text NOT NULL,
    closed_at timestamptz NOT NULL,
    run_id uuid NOT NULL REFERENCES closed_runs ON DELETE CASCADE,
    PRIMARY KEY (suite, model, closed_at, run_id)
);

CREATE INDEX history_entries_of_run ON history_entries (run_id);

-- The boards that a complete run is part of: for each metric that of its project and, under an empty name, that of all
-- projects. `terms` is empty for runs that cannot be ranked. The latest run of each model and terms is the end of a
-- range of the key, so a board is read in as many steps as it has models and terms, however many runs there are.
CREATE TABLE board_entries (
    suite text NOT NULL,
    project text NOT NULL,
    metric text NOT NULL,
    model text NOT NULL,
    terms text NOT NULL,
    closed_at timestamptz NOT NULL,
    run_id uuid NOT NULL REFERENCES closed_runs ON DELETE CASCADE,
    -- -infinity where it is undefined.
    mean double precision NOT NULL,
    PRIMARY KEY (suite, project, metric, model, terms, closed_at, run_id)
);

CREATE INDEX board_entries_by_mean ON board_entries (suite, project, metric, model, terms, mean, closed_at, run_id);
CREATE INDEX board_entries_of_run ON board_entries (run_id);

-- Baselines of a sample set, scored in some way: computed once, however many runs use it.
CREATE TABLE task_baselines (
    set_id uuid NOT NULL REFERENCES sample_sets ON DELETE CASCADE,
    -- SHA-256 of how answers are scored.
    scoring_digest bytea NOT NULL,
    -- Figures by name and metric.
    baselines json NOT NULL,
    PRIMARY KEY (set_id, scoring_digest)
);
