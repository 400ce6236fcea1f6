-- Limits that change without a restart, users' priorities and requests, and what a run needs to give its place away.

-- One row: what is null is as the settings say.
CREATE TABLE limits (
    is_only                    boolean PRIMARY KEY DEFAULT true CHECK (is_only),
    max_running_runs           integer CHECK (max_running_runs > 0),
    max_pending_runs_per_user  integer CHECK (max_pending_runs_per_user > 0),
    max_requests_per_minute    integer CHECK (max_requests_per_minute > 0),
    run_time_limit_seconds     double precision CHECK (run_time_limit_seconds > 0),
    min_run_time_seconds           double precision CHECK (min_run_time_seconds >= 0)
);
INSERT INTO limits (is_only) VALUES (true);

-- The highest priority that a user may ask for; '*' is everybody who is not named.
CREATE TABLE user_priorities (
    username  text PRIMARY KEY,
    highest   smallint NOT NULL
);

-- One row per user: the requests of the minute that began then. Not logged: what a crash forgets is forgiven.
CREATE UNLOGGED TABLE request_counts (
    username   text PRIMARY KEY,
    minute     timestamptz NOT NULL,
    requests   integer NOT NULL
);

ALTER TABLE runs
    -- What its tokens cost, as it was when the run was submitted; null without a price.
    ADD COLUMN price jsonb,
    ADD COLUMN reused_answers bigint NOT NULL DEFAULT 0,
    -- When it got its present place among the running ones, and how long it had one before, in this epoch.
    ADD COLUMN admitted_at timestamptz,
    ADD COLUMN ran_seconds double precision NOT NULL DEFAULT 0;

UPDATE runs SET admitted_at = started_at WHERE state = 'running';

-- When a user last got a place: among equal shares those go first who had none for longest.
CREATE TABLE user_turns (
    username   text PRIMARY KEY,
    placed_at  timestamptz NOT NULL
);

CREATE INDEX runs_running_of_user ON runs (username) WHERE state = 'running';
CREATE INDEX runs_paused ON runs (queued_at DESC, run_id DESC) WHERE state = 'paused';
