-- compatible-from: 0005_rollouts.sql
-- Which replica computes the figures of a closed epoch, and how far it is. A claim that is not renewed ends by the clock of Postgres.
-- Code before it claims nothing: it computes the same figures as well, and the first summary stays.

CREATE TABLE close_claims (
    run_id uuid PRIMARY KEY REFERENCES run_records ON DELETE CASCADE,
    epoch integer NOT NULL,
    holder uuid NOT NULL,
    -- How often it was begun.
    tries integer NOT NULL,
    share double precision NOT NULL DEFAULT 0,
    -- The run was cancelled meanwhile: it is closed without figures.
    is_withdrawn boolean NOT NULL DEFAULT false,
    claimed_until timestamptz NOT NULL
);
