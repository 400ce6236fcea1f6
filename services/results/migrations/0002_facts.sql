-- What a sample was made from, and what targets are made of beside one choice or texts. `doc_json` is the row as its source gave
-- it: text and not jsonb, since it is only ever handed on.
ALTER TABLE samples
    ADD COLUMN right_choices integer[] NOT NULL DEFAULT '{}',
    ADD COLUMN wrong_texts text[] NOT NULL DEFAULT '{}',
    ADD COLUMN choice_texts text[] NOT NULL DEFAULT '{}',
    ADD COLUMN doc_json text NOT NULL DEFAULT '';

-- What a run was ordered as, how its tasks are summed up together, and how it ended: what its figures are listed and
-- compared by. `state` has the numbers of the contract; 0 while it is open.
ALTER TABLE run_records
    ADD COLUMN suite text NOT NULL DEFAULT '',
    ADD COLUMN suite_version integer NOT NULL DEFAULT 0,
    ADD COLUMN model text NOT NULL DEFAULT '',
    ADD COLUMN project_id bigint NOT NULL DEFAULT 0,
    ADD COLUMN username text NOT NULL DEFAULT '',
    ADD COLUMN created_at timestamptz,
    ADD COLUMN row_limit integer,
    ADD COLUMN num_fewshot integer,
    ADD COLUMN missing_tasks text[] NOT NULL DEFAULT '{}',
    ADD COLUMN groups jsonb NOT NULL DEFAULT '[]',
    ADD COLUMN state smallint NOT NULL DEFAULT 0,
    ADD COLUMN closed_at timestamptz;
