-- compatible-from: 0005_rollouts.sql
-- The columns of before; what counts as answered is asked of the function that every other query asks.

CREATE OR REPLACE VIEW outcome_records AS
SELECT
    o.run_id, o.sample, o.rollout, o.epoch, o.recorded_at,
    given.is_answered, s.is_chat, t.task, s.doc_id, s.row_id,
    o.status::text AS status,
    s.prompt, s.choices,
    CASE
        WHEN s.target_choice >= 0 AND s.target_choice < cardinality(s.choices)
            THEN without_prefix(s.choices[s.target_choice + 1], t.target_delimiter)
        WHEN cardinality(s.right_choices) > 0 THEN (
            SELECT coalesce(string_agg(without_prefix(s.choices[choice + 1], t.target_delimiter), ' | '), '')
            FROM unnest(s.right_choices) AS choice
            WHERE choice < cardinality(s.choices)
        )
        ELSE array_to_string(s.target_texts, ' | ')
    END AS target,
    o.prediction,
    CASE WHEN given.is_answered THEN o.answer_text ELSE '' END AS answer,
    CASE WHEN given.is_answered THEN o.finish_reason ELSE '' END AS finish_reason,
    CASE
        WHEN given.is_answered AND o.choices <> '[]' THEN jsonb_path_query_array(o.choices, '$[*][0]')
        ELSE '[]'
    END AS choice_logprobs,
    CASE WHEN given.is_answered AND o.body_json IS JSON OBJECT THEN one_line(o.body_json)::json END AS body,
    coalesce(o.failure_class::text, '') AS failure_class,
    o.failure_message, o.scores, o.usage,
    CASE WHEN NOT o.is_reused THEN finite(o.total_seconds) END AS total_seconds,
    finite(o.queue_seconds) AS queue_seconds, finite(o.first_token_seconds) AS first_token_seconds,
    finite(o.between_tokens_seconds) AS between_tokens_seconds, o.is_reused, encode(s.digest, 'hex') AS digest,
    octet_length(o.answer_text) + octet_length(o.body_json) + octet_length(o.failure_message)
        + pg_column_size(o.choices) + s.bytes AS bytes
FROM outcomes AS o
CROSS JOIN LATERAL (SELECT is_answered(o.status, o.failure_class) AS is_answered) AS given
CROSS JOIN LATERAL (
    SELECT task, set_id, first_sample, scoring ->> 'target_delimiter' AS target_delimiter
    FROM run_tasks
    WHERE run_id = o.run_id AND task_index = o.task_index
    LIMIT 1
) AS t
CROSS JOIN LATERAL (
    SELECT
        doc_id, row_id, digest, choices, target_choice, target_texts, right_choices, prompt_text IS NULL AS is_chat,
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
        END, '') AS prompt,
        coalesce(octet_length(prompt_text), 0) + coalesce(pg_column_size(prompt_messages), 0)
            + pg_column_size(choices) + pg_column_size(target_texts) AS bytes
    FROM samples
    WHERE set_id = t.set_id AND position = o.sample - t.first_sample
    LIMIT 1
) AS s;
