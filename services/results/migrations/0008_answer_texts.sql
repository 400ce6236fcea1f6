-- Whether a provider's whole answer says a part: in one of its texts, in what was thought before it, or in the tools that it
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
