-- Limits that an operator changes without a restart, and requests counted against them.

-- One row. A null limit has the value of the settings.
CREATE TABLE limits (
    is_only                    boolean PRIMARY KEY DEFAULT true CHECK (is_only),
    max_running_runs           integer CHECK (max_running_runs > 0),
    max_pending_runs_per_user  integer CHECK (max_pending_runs_per_user > 0),
    max_requests_per_minute    integer CHECK (max_requests_per_minute > 0),
    run_time_limit_seconds     double precision CHECK (run_time_limit_seconds > 0),
    min_run_time_seconds       double precision CHECK (min_run_time_seconds >= 0)
);
INSERT INTO limits (is_only) VALUES (true);

-- The highest priority that a user may order; '*' is every user without a row.
CREATE TABLE user_priorities (
    username  text PRIMARY KEY,
    highest   smallint NOT NULL
);

-- Requests of each user in the minute that began at `minute`. Unlogged: counts lost in a crash do no harm.
CREATE UNLOGGED TABLE request_counts (
    username  text PRIMARY KEY,
    minute    timestamptz NOT NULL,
    requests  integer NOT NULL
);
