-- Rows of data sets: what names them, what they ask for themselves, and marks on answers to them.

ALTER TABLE samples
    -- Empty for a row of a suite.
    ADD COLUMN row_id text NOT NULL DEFAULT '',
    -- Parameters of the row's own, as JSON object text; empty for none.
    ADD COLUMN params_json text NOT NULL DEFAULT '';

-- The provider's whole answer, as JSON object text, where more was asked for than a text; empty else. Text and not jsonb:
-- it is only ever handed on.
ALTER TABLE outcomes ADD COLUMN body_json text NOT NULL DEFAULT '';

-- What lines of exports are made of. Numbers as JSON says them: the shortest text that is read back as the same, with a
-- point where it is whole; null for what JSON has no word for.
CREATE FUNCTION json_number(value double precision) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE
    WHEN value = trunc(value) AND abs(value) < 1e15 THEN value::text || '.0'
    WHEN abs(value) < 'infinity' THEN value::text
    ELSE 'null'
END;

-- A text without what it begins with.
CREATE FUNCTION without_prefix(value text, prefix text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN starts_with(value, prefix) THEN substr(value, length(prefix) + 1) ELSE value END;

-- JSON whose white space breaks no line; within its strings there are no breaks.
CREATE FUNCTION one_line(value text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN translate(value, E'\n\r', '  ');

-- Whether a text has a part, whatever the case of letters. The collation is Unicode's own, whichever the database has.
CREATE FUNCTION has_part(value text, part text) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN strpos(casefold(value COLLATE pg_unicode_fast), casefold(part COLLATE pg_unicode_fast)) > 0;

-- What a row of a set is called: its id, else its place in its split.
CREATE FUNCTION row_name(row_id text, doc_id bigint) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN row_id = '' THEN doc_id::text ELSE row_id END;

-- The samples of another set that are those of one.
CREATE INDEX samples_of_digest ON samples (set_id, digest, position);

-- Name of the data set whose id stands in `suite`; empty for a suite.
ALTER TABLE run_records ADD COLUMN dataset_name text NOT NULL DEFAULT '';

-- Answers that somebody found right.
CREATE TABLE golden_answers (
    run_id     uuid NOT NULL REFERENCES run_records ON DELETE CASCADE,
    sample     bigint NOT NULL,
    rollout    integer NOT NULL,
    username   text NOT NULL,
    marked_at  timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (run_id, sample, rollout)
);

-- How many bytes the export of a closed run has up to some outcomes, so that one that was cut off is gone on with
-- without being made anew from its first byte.
CREATE TABLE export_marks (
    run_id       uuid NOT NULL REFERENCES run_records ON DELETE CASCADE,
    epoch        integer NOT NULL,
    -- The tag of the file's content, which tells formats and tasks apart.
    form         text NOT NULL,
    -- Bytes of the file before the outcomes behind (sample, rollout); the last mark of a file that is measured to its end
    -- has no outcome behind it.
    first_byte   bigint NOT NULL,
    sample       bigint NOT NULL,
    rollout      integer NOT NULL,
    is_end       boolean NOT NULL,
    PRIMARY KEY (run_id, epoch, form, first_byte, is_end)
);

-- Sample sets that are gone, whose samples are still to be removed: a few at a time, and on after a kill.
CREATE TABLE dropped_sample_sets (set_id uuid PRIMARY KEY);

-- Which sets are used, and by which names.
CREATE INDEX run_tasks_of_set ON run_tasks (set_id);
CREATE INDEX sample_sets_aliases ON sample_sets (same_as) WHERE same_as IS NOT NULL;
