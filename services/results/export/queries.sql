-- name: export_outcome_lines: what counts in an epoch of one task, an object of JSON per line, up to some bytes ($1 run, $2 epoch, $3 set, $4 first sample, $5 after sample, $6 after rollout, $7 end, exclusive, $8 bytes, nearly, $9 task as JSON, $10 target delimiter)
-- JSON_SCALAR writes what to_json would, and looks up no type for each value.
SELECT
    convert_to(string_agg(concat(
        '{"task":', $9::text,
        ',"doc_id":', doc_id,
        ',"row_id":', JSON_SCALAR(row_id),
        ',"rollout":', rollout,
        ',"status":"', status,
        '","prompt":', JSON_SCALAR(prompt),
        ',"choices":', to_json(sample_choices),
        ',"target":', JSON_SCALAR(CASE
            WHEN target_choice >= 0 AND target_choice < cardinality(sample_choices)
                THEN without_prefix(sample_choices[target_choice + 1], $10::text)
            WHEN cardinality(right_choices) > 0 THEN (
                SELECT coalesce(string_agg(without_prefix(sample_choices[choice + 1], $10::text), ' | '), '')
                FROM unnest(right_choices) AS choice
                WHERE choice < cardinality(sample_choices)
            )
            ELSE array_to_string(target_texts, ' | ')
        END),
        ',"prediction":', JSON_SCALAR(prediction),
        ',"answer":', JSON_SCALAR(CASE WHEN is_answered THEN answer_text ELSE '' END),
        ',"finish_reason":', JSON_SCALAR(CASE WHEN is_answered THEN finish_reason ELSE '' END),
        ',"choice_logprobs":', CASE
            WHEN is_answered AND choices <> '[]' THEN jsonb_path_query_array(choices, '$[*][0]') ELSE '[]'
        END,
        ',"body":', CASE WHEN is_answered AND body_json <> '' AND body_json IS JSON OBJECT THEN one_line(body_json) ELSE 'null' END,
        ',"failure_class":"', failure_class,
        '","failure_message":', JSON_SCALAR(failure_message),
        ',"scores":', scores,
        ',"prompt_tokens":', prompt_tokens,
        ',"completion_tokens":', completion_tokens,
        ',"cached_tokens":', cached_tokens,
        ',"reasoning_tokens":', reasoning_tokens,
        ',"total_seconds":', CASE WHEN is_reused THEN 'null' ELSE json_number(total_seconds) END,
        ',"queue_seconds":', json_number(queue_seconds),
        ',"first_token_seconds":', json_number(first_token_seconds),
        ',"between_tokens_seconds":', json_number(between_tokens_seconds),
        ',"is_reused":', is_reused::text,
        ',"digest":"', encode(digest, 'hex'), E'"}\n'
    ), '' ORDER BY sample, rollout) FILTER (WHERE bytes_before < $8::bigint), 'UTF8') AS lines,
    max(ARRAY[sample, rollout]) FILTER (WHERE bytes_before < $8::bigint) AS last_key,
    count(*) FILTER (WHERE bytes_before >= $8::bigint) > 0 AS is_cut,
    (SELECT r.epoch FROM run_records AS r WHERE r.run_id = $1::uuid) AS epoch
FROM (
    SELECT
        o.sample, o.rollout, o.status, o.failure_class, o.failure_message, o.answer_text, o.finish_reason, o.choices,
        o.prediction, o.scores, o.prompt_tokens, o.completion_tokens, o.cached_tokens, o.reasoning_tokens,
        o.total_seconds, o.queue_seconds, o.first_token_seconds, o.between_tokens_seconds, o.is_reused, o.body_json,
        s.doc_id, s.row_id, s.digest, s.prompt, s.choices AS sample_choices, s.target_choice,
        s.target_texts, s.right_choices,
        o.status <> 'failed' OR o.failure_class = 'scoring' AS is_answered,
        coalesce(sum(
            octet_length(o.answer_text) + octet_length(o.body_json) + octet_length(o.failure_message)
            + pg_column_size(o.choices) + octet_length(s.prompt) + pg_column_size(s.choices) + pg_column_size(s.target_texts)
        ) OVER (ORDER BY o.sample, o.rollout ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS bytes_before
    FROM (
        SELECT
            sample, rollout, status, failure_class, failure_message, answer_text, finish_reason, choices, prediction,
            scores, prompt_tokens, completion_tokens, cached_tokens, reasoning_tokens, total_seconds, queue_seconds,
            first_token_seconds, between_tokens_seconds, is_reused, body_json
        FROM outcomes
        WHERE run_id = $1::uuid
            AND (sample, rollout) > ($5::bigint, $6::integer)
            AND sample < $7::bigint
            AND (status <> 'failed' OR epoch = $2::integer)
        ORDER BY sample, rollout
        -- Never reached. Without it the planner spreads a few rows over processes, or reads all samples to join them.
        LIMIT 1000000
    ) AS o
    CROSS JOIN LATERAL (
        SELECT
            doc_id, row_id, digest, choices, target_choice, target_texts, right_choices,
            coalesce(prompt_text, CASE jsonb_array_length(prompt_messages)
                -- As below, without a query for each of the rows that nearly all are: it took a quarter of their time.
                WHEN 1 THEN concat(prompt_messages -> 0 ->> 0, ': ', prompt_messages -> 0 ->> 1)
                WHEN 2 THEN concat(
                    prompt_messages -> 0 ->> 0, ': ', prompt_messages -> 0 ->> 1, E'\n\n',
                    prompt_messages -> 1 ->> 0, ': ', prompt_messages -> 1 ->> 1
                )
                ELSE (
                    SELECT string_agg(concat(turn ->> 0, ': ', turn ->> 1), E'\n\n')
                    FROM jsonb_array_elements(prompt_messages) AS turn
                )
            END, '') AS prompt
        FROM samples
        WHERE set_id = $3::uuid AND position = o.sample - $4::bigint
        LIMIT 1
    ) AS s
) AS weighed;

-- name: export_batch_output: the answers to one task as lines of a batch's output file, up to some bytes ($1 run, $2 epoch, $3 set, $4 first sample, $5 after sample, $6 after rollout, $7 end, exclusive, $8 bytes, nearly, $9 beginning of ids, $10 model as JSON)
SELECT
    convert_to(string_agg(concat(
        '{"id":"batch_req_', id,
        '","custom_id":', JSON_SCALAR(custom_id),
        ',"response":{"status_code":200,"request_id":"', id,
        '","body":', CASE
            WHEN body_json <> '' AND body_json IS JSON OBJECT THEN one_line(body_json)
            ELSE concat(
                '{"id":"', CASE WHEN is_chat THEN 'chatcmpl-' ELSE 'cmpl-' END, id,
                '","object":"', CASE WHEN is_chat THEN 'chat.completion' ELSE 'text_completion' END,
                '","created":', floor(extract(epoch FROM recorded_at))::bigint,
                ',"model":', $10::text,
                ',"choices":[{"index":0,', CASE
                    WHEN is_chat
                        THEN concat('"message":{"role":"assistant","content":', JSON_SCALAR(answer_text), ',"refusal":null}')
                    ELSE concat('"text":', JSON_SCALAR(answer_text))
                END,
                ',"logprobs":null,"finish_reason":', coalesce(JSON_SCALAR(nullif(finish_reason, ''))::text, 'null'),
                '}],"usage":{"prompt_tokens":', prompt_tokens,
                ',"completion_tokens":', completion_tokens,
                ',"total_tokens":', prompt_tokens + completion_tokens,
                ',"prompt_tokens_details":{"cached_tokens":', cached_tokens,
                '},"completion_tokens_details":{"reasoning_tokens":', reasoning_tokens, '}}}'
            )
        END,
        E'},"error":null}\n'
    ), '' ORDER BY sample) FILTER (WHERE bytes_before < $8::bigint), 'UTF8') AS lines,
    max(ARRAY[sample, 0]) FILTER (WHERE bytes_before < $8::bigint) AS last_key,
    count(*) FILTER (WHERE bytes_before >= $8::bigint) > 0 AS is_cut,
    (SELECT r.epoch FROM run_records AS r WHERE r.run_id = $1::uuid) AS epoch
FROM (
    SELECT
        o.sample, o.answer_text, o.finish_reason, o.prompt_tokens, o.completion_tokens, o.cached_tokens,
        o.reasoning_tokens, o.recorded_at, o.body_json, s.prompt_text IS NULL AS is_chat,
        CASE WHEN s.row_id = '' THEN s.doc_id::text ELSE s.row_id END AS custom_id,
        $9::text || lpad(to_hex(o.sample), 12, '0') AS id,
        coalesce(sum(octet_length(o.answer_text) + octet_length(o.body_json))
            OVER (ORDER BY o.sample ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS bytes_before
    FROM (
        SELECT
            sample, answer_text, finish_reason, prompt_tokens, completion_tokens, cached_tokens, reasoning_tokens,
            recorded_at, body_json
        FROM outcomes
        WHERE run_id = $1::uuid
            AND (sample, rollout) > ($5::bigint, $6::integer)
            AND sample < $7::bigint
            AND rollout = 0
            AND (status <> 'failed' OR failure_class = 'scoring' AND epoch = $2::integer)
        ORDER BY sample
        LIMIT 1000000
    ) AS o
    CROSS JOIN LATERAL (
        SELECT doc_id, row_id, prompt_text
        FROM samples
        WHERE set_id = $3::uuid AND position = o.sample - $4::bigint
        LIMIT 1
    ) AS s
) AS weighed;

-- name: export_batch_errors: the samples of one task without an answer as lines of a batch's error file, up to some bytes ($1 run, $2 epoch, $3 set, $4 first sample, $5 after sample, $6 after rollout, $7 end, exclusive, $8 bytes, nearly, $9 beginning of ids, $10 code of samples without an outcome, as JSON, $11 why, as JSON)
SELECT
    convert_to(string_agg(concat(
        '{"id":"batch_req_', $9::text, lpad(to_hex(sample), 12, '0'),
        '","custom_id":', JSON_SCALAR(custom_id),
        ',"response":null,"error":', CASE
            WHEN status IS NULL THEN concat('{"code":', $10::text, ',"message":', $11::text)
            ELSE concat('{"code":"', failure_class, '","message":', JSON_SCALAR(failure_message))
        END,
        E'}}\n'
    ), '' ORDER BY sample) FILTER (WHERE bytes_before < $8::bigint), 'UTF8') AS lines,
    max(ARRAY[sample, 0]) FILTER (WHERE bytes_before < $8::bigint) AS last_key,
    count(*) FILTER (WHERE bytes_before >= $8::bigint) > 0 AS is_cut,
    (SELECT r.epoch FROM run_records AS r WHERE r.run_id = $1::uuid) AS epoch
FROM (
    SELECT
        s.position + $4::bigint AS sample, o.status, o.failure_class, o.failure_message,
        CASE WHEN s.row_id = '' THEN s.doc_id::text ELSE s.row_id END AS custom_id,
        coalesce(sum(coalesce(octet_length(o.failure_message), 0) + octet_length($11::text))
            OVER (ORDER BY s.position ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS bytes_before
    FROM samples AS s
    LEFT JOIN LATERAL (
        SELECT status, failure_class, failure_message
        FROM outcomes
        WHERE run_id = $1::uuid
            AND sample = s.position + $4::bigint
            AND rollout = 0
            AND (status <> 'failed' OR epoch = $2::integer)
        LIMIT 1
    ) AS o ON true
    WHERE s.set_id = $3::uuid
        AND s.position >= $5::bigint - $4::bigint
        AND (s.position + $4::bigint, 0) > ($5::bigint, $6::integer)
        AND s.position < $7::bigint - $4::bigint
        AND (o.status IS NULL OR o.status = 'failed' AND o.failure_class <> 'scoring')
) AS weighed;

-- name: read_export_end: where the file of a closed run ends ($1 run, $2 epoch, $3 form)
SELECT first_byte, sample, rollout
FROM export_marks
WHERE run_id = $1::uuid AND epoch = $2::integer AND form = $3::text AND is_end
LIMIT 1;

-- name: read_last_export_mark: from where the file of a closed run can be made on ($1 run, $2 epoch, $3 form, $4 at or before this byte, null for all)
SELECT first_byte, sample, rollout
FROM export_marks
WHERE run_id = $1::uuid
    AND epoch = $2::integer
    AND form = $3::text
    AND NOT is_end
    AND first_byte <= coalesce($4::bigint, 9223372036854775807)
ORDER BY first_byte DESC
LIMIT 1;

-- name: add_export_mark: keep a mark of a run that is still there ($1 run, $2 epoch, $3 form, $4 first byte, $5 sample, $6 rollout, $7 whether it is the end)
INSERT INTO export_marks (run_id, epoch, form, first_byte, sample, rollout, is_end)
SELECT $1::uuid, $2::integer, $3::text, $4::bigint, $5::bigint, $6::integer, $7::boolean
WHERE EXISTS (SELECT FROM run_records WHERE run_id = $1::uuid AND epoch = $2::integer AND is_frozen)
ON CONFLICT DO NOTHING;
