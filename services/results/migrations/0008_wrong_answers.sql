-- compatible-from: 0005_rollouts.sql
-- Answers that users marked as wrong. Code before it does not show these marks, and marks such an answer as golden without removing
-- the other mark: golden then counts.

CREATE TABLE wrong_answers (
    run_id uuid NOT NULL REFERENCES run_records ON DELETE CASCADE,
    sample bigint NOT NULL,
    rollout integer NOT NULL,
    username text NOT NULL,
    marked_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (run_id, sample, rollout)
);

ALTER TABLE mark_changes ADD COLUMN is_wrong boolean NOT NULL DEFAULT false;
