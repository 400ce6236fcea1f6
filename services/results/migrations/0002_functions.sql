-- The outcomes that count: answers, and failures of the run's present epoch. The epoch is looked up for failures only.
CREATE VIEW current_outcomes AS
SELECT o.*
FROM outcomes AS o
WHERE o.status <> 'failed' OR o.epoch = (SELECT r.epoch FROM run_records AS r WHERE r.run_id = o.run_id);

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
