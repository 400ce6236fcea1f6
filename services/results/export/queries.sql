-- `r.*` reads the view outcome_records (schema.sql); Postgres computes only the columns that a query uses. The parts in braces
-- are made in exported_columns.py. `sample >= :after_sample` follows from the comparison of pairs, but the planner estimates the
-- number of rows from it. From that comparison alone it expects half of the run, and starts parallel workers for each chunk.

-- name: export_lines: Return the outcomes of a run that count in an epoch, an object of JSON each, up to some bytes
-- `size_bytes` sums the texts up to each row.
SELECT sample, rollout, size_bytes, {exported_line} AS line
FROM (
    SELECT r.*, sum(bytes) OVER (ORDER BY sample, rollout ROWS UNBOUNDED PRECEDING) AS size_bytes
    FROM outcome_records AS r
    WHERE run_id = :run_id
        AND (sample, rollout) > (:after_sample, :after_rollout)
        AND sample >= :after_sample
        AND sample < :end_sample
        AND (status <> 'failed' OR epoch = :epoch)
) AS measured
-- The row that passes the bytes is still returned: one that is larger than all of them makes a chunk.
WHERE size_bytes - bytes < :max_bytes
ORDER BY sample, rollout;

-- name: export_columns: Return what export_lines does, the fields as columns
SELECT sample, size_bytes, {exported_columns}
FROM (
    SELECT r.*, sum(bytes) OVER (ORDER BY sample, rollout ROWS UNBOUNDED PRECEDING) AS size_bytes
    FROM outcome_records AS r
    WHERE run_id = :run_id
        AND (sample, rollout) > (:after_sample, :after_rollout)
        AND sample >= :after_sample
        AND sample < :end_sample
        AND (status <> 'failed' OR epoch = :epoch)
) AS measured
WHERE size_bytes - bytes < :max_bytes
ORDER BY sample, rollout;

-- name: export_chosen_lines: Return some outcomes as export_lines does, in their order
SELECT {exported_line} AS line
FROM unnest(:samples::bigint[], :rollouts::integer[]) WITH ORDINALITY AS wanted (wanted_sample, wanted_rollout, ordinal)
CROSS JOIN LATERAL (
    SELECT r.*
    FROM outcome_records AS r
    WHERE run_id = :run_id
        AND sample = wanted_sample
        AND rollout = wanted_rollout
        AND (status <> 'failed' OR epoch = :epoch)
    LIMIT 1
) AS found
ORDER BY ordinal;

-- name: export_chosen_columns: Return what export_chosen_lines does, the fields as columns
SELECT {exported_columns}
FROM unnest(:samples::bigint[], :rollouts::integer[]) WITH ORDINALITY AS wanted (wanted_sample, wanted_rollout, ordinal)
CROSS JOIN LATERAL (
    SELECT r.*
    FROM outcome_records AS r
    WHERE run_id = :run_id
        AND sample = wanted_sample
        AND rollout = wanted_rollout
        AND (status <> 'failed' OR epoch = :epoch)
    LIMIT 1
) AS found
ORDER BY ordinal;

-- name: export_batch_answers: Return the answers of a batch, without prompts, up to some bytes
SELECT
    sample, rollout, size_bytes, row_name(row_id, doc_id) AS custom_id, is_chat, answer, reasoning, finish_reason, body,
    recorded_at, {usage_columns}
FROM (
    SELECT r.*, sum(bytes) OVER (ORDER BY sample, rollout ROWS UNBOUNDED PRECEDING) AS size_bytes
    FROM outcome_records AS r
    WHERE run_id = :run_id
        AND (sample, rollout) > (:after_sample, :after_rollout)
        AND sample >= :after_sample
        AND sample < :end_sample
        AND rollout = 0
        AND is_answered
        AND (status <> 'failed' OR epoch = :epoch)
) AS measured
WHERE size_bytes - bytes < :max_bytes
ORDER BY sample;

-- name: export_batch_errors: Return the samples of a batch without an answer in an epoch, up to some bytes
SELECT sample, rollout, size_bytes, custom_id, failure_class, failure_message
FROM (
    SELECT
        s.position + :first_sample AS sample, 0 AS rollout, row_name(s.row_id, s.doc_id) AS custom_id, o.failure_class,
        o.failure_message, coalesce(octet_length(o.failure_message), 0) AS bytes,
        sum(coalesce(octet_length(o.failure_message), 0))
            OVER (ORDER BY s.position ROWS UNBOUNDED PRECEDING) AS size_bytes
    FROM samples AS s
    LEFT JOIN LATERAL (
        SELECT failure_class, failure_message, is_answered
        FROM outcome_records
        WHERE run_id = :run_id
            AND sample = s.position + :first_sample::bigint
            AND rollout = 0
            AND (status <> 'failed' OR epoch = :epoch)
        LIMIT 1
    ) AS o ON true
    WHERE s.sample_set_id = :sample_set_id
        AND s.position >= :after_sample - :first_sample
        AND (s.position + :first_sample, 0) > (:after_sample, :after_rollout)
        AND s.position < :end_sample - :first_sample
        AND o.is_answered IS NOT TRUE
) AS measured
WHERE size_bytes - bytes < :max_bytes
ORDER BY sample;

-- name: read_epoch: Return the epoch of a run
SELECT epoch FROM run_records WHERE run_id = :run_id;

-- name: read_export_end: Return the end of the file of a frozen run
SELECT first_byte, sample, rollout
FROM resume_points
WHERE run_id = :run_id AND epoch = :epoch AND tag = :tag AND is_end
LIMIT 1;

-- name: read_last_resume_point: Return the point from which the file of a frozen run can be resumed
SELECT first_byte, sample, rollout
FROM resume_points
WHERE run_id = :run_id
    AND epoch = :epoch
    AND tag = :tag
    AND NOT is_end
    AND first_byte <= coalesce(:up_to_byte, 9223372036854775807)
ORDER BY first_byte DESC
LIMIT 1;

-- name: add_resume_point: Store a point of a file of a run that still exists
INSERT INTO resume_points (run_id, epoch, tag, first_byte, sample, rollout, is_end)
SELECT :run_id, :epoch, :tag, :first_byte, :sample, :rollout, :is_end
WHERE EXISTS (SELECT FROM run_records WHERE run_id = :run_id AND epoch = :epoch AND is_frozen)
-- Two downloads of the same file store the same points.
ON CONFLICT DO NOTHING;
