-- compatible-from: 0005_rollouts.sql
-- Who marked an answer as golden, and who removed a mark. Code before it changes marks without a line here.

CREATE TABLE mark_changes (
    change_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    run_id uuid NOT NULL REFERENCES run_records ON DELETE CASCADE,
    sample bigint NOT NULL,
    rollout integer NOT NULL,
    is_golden boolean NOT NULL,
    username text NOT NULL,
    changed_at timestamptz NOT NULL DEFAULT now()
);

CREATE INDEX mark_changes_of_run ON mark_changes (run_id, change_id);
