-- name: read_archive_phase: Return the phase of a run's archive
SELECT archive_phase FROM run_records WHERE run_id = :run_id;

-- name: find_archived: Return those of some runs whose outcomes are read from the object store, with their epochs
SELECT run_id::text AS run_id, epoch
FROM run_records
WHERE run_id = ANY (:run_ids) AND archive_phase IN ('clearing', 'archived', 'restoring');

-- name: is_backup_running: Return whether a backup holds its lock
-- Taken as shared and released with the statement; the backup waits that long.
SELECT NOT pg_try_advisory_xact_lock_shared(hashtext('proctor backup'), hashtext('scheduler'));

-- name: measure_answers: Return nearly the bytes of a run's outcomes, by 1,000 of them from all parts of the run
-- Beside its texts an outcome has the head of its row, numbers, and its place in the index: 200 bytes.
WITH starts AS (
    SELECT (SELECT coalesce(max(sample), 0) FROM outcomes WHERE run_id = :run_id) * n / 20 AS sample
    FROM generate_series(0, 19) AS n
)
SELECT
    (
        coalesce(avg(
            pg_column_size(o.failure_message) + pg_column_size(o.answer_text) + pg_column_size(o.reasoning)
            + pg_column_size(o.choices) + pg_column_size(o.prediction) + pg_column_size(o.scores)
            + pg_column_size(o.body_json) + 200
        ), 0)
        * (SELECT coalesce(sum(recorded), 0) FROM task_counts WHERE run_id = :run_id)
    )::bigint AS size_bytes
FROM starts
CROSS JOIN LATERAL (
    SELECT * FROM outcomes
    WHERE run_id = :run_id AND (sample, rollout) >= (starts.sample, 0)
    ORDER BY sample, rollout
    LIMIT 50
) AS o;

-- name: begin_archive: Begin to archive a closed run that waits for no comparison
UPDATE run_records AS r
SET archive_phase = 'writing', archive_since = now()
WHERE run_id = :run_id
    AND archive_phase IS NULL
    AND is_frozen
    AND (state <> 'completed' OR compared_epoch >= epoch)
    AND EXISTS (SELECT FROM run_summaries AS s WHERE s.run_id = r.run_id AND s.epoch = r.epoch)
RETURNING run_id;

-- name: advance_archive: Bring an archive from one phase into another
UPDATE run_records
SET archive_phase = :phase, archive_since = now()
WHERE run_id = :run_id AND archive_phase = :before
RETURNING run_id;

-- name: is_phase_settled: Return whether an archive is in a phase, and no reader is left that began before it
SELECT archive_since <= now() - make_interval(secs => :seconds) AS is_settled
FROM run_records
WHERE run_id = :run_id AND archive_phase = :phase;

-- name: list_archive_parts: Return the parts of an archive in order
SELECT
    part, first_sample, first_rollout, last_sample, last_rollout, outcomes, size_bytes, file_digest, rows_digest, is_restored
FROM archive_parts
WHERE run_id = :run_id
ORDER BY part;

-- name: count_unarchived: Return how many outcomes of a run no part has
SELECT
    (SELECT count(*) FROM outcomes WHERE run_id = :run_id)
    - (SELECT coalesce(sum(outcomes), 0) FROM archive_parts WHERE run_id = :run_id)::bigint AS unarchived;

-- name: list_outcomes_to_archive: Return the next outcomes of a run, up to some bytes
SELECT
    sample, rollout, task_index, shard, epoch, attempt, status, failure_class, failure_message, answer_text, reasoning,
    finish_reason, choices, prediction, scores, prompt_tokens, completion_tokens, cached_tokens, reasoning_tokens,
    total_seconds, queue_seconds, first_token_seconds, between_tokens_seconds, body_json, is_reused, recorded_at
FROM (
    SELECT
        o.*,
        coalesce(sum(octet_length(answer_text) + octet_length(reasoning) + octet_length(body_json)) OVER (
            ORDER BY sample, rollout ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ), 0) AS bytes_before
    FROM outcomes AS o
    WHERE run_id = :run_id AND (sample, rollout) > (:after_sample, :after_rollout)
    ORDER BY sample, rollout
    LIMIT :limit::integer
) AS next
WHERE bytes_before < :max_bytes
ORDER BY sample, rollout;

-- name: write_rows_alike: Let this transaction write rows as every session does
SELECT
    set_config('TimeZone', 'UTC', true), set_config('DateStyle', 'ISO, YMD', true),
    set_config('extra_float_digits', '1', true);

-- name: digest_stored_outcomes: Return the digest of the outcomes between two keys, as text
SELECT sha256(convert_to(coalesce(string_agg(o::text, E'\n' ORDER BY sample, rollout), ''), 'UTF8')) AS digest
FROM outcomes AS o
WHERE run_id = :run_id
    AND (sample, rollout) >= (:first_sample, :first_rollout)
    AND (sample, rollout) <= (:last_sample, :last_rollout);

-- name: digest_given_outcomes: Return the same digest of rows that are given
SELECT sha256(convert_to(coalesce(string_agg(o::text, E'\n' ORDER BY sample, rollout), ''), 'UTF8')) AS digest
FROM unnest(:outcomes::outcomes[]) AS o;

-- name: add_archive_part: Store a part of an archive that is being written
INSERT INTO archive_parts (
    run_id, part, first_sample, first_rollout, last_sample, last_rollout, outcomes, size_bytes, file_digest, rows_digest
)
SELECT
    run_id, :part, :first_sample, :first_rollout, :last_sample, :last_rollout, :outcomes, :size_bytes, :file_digest, :rows_digest
FROM run_records
WHERE run_id = :run_id AND archive_phase = 'writing'
-- Two leaders may write the same part at once: the file of the second one is deleted with the folder.
ON CONFLICT (run_id, part) DO NOTHING
RETURNING part;

-- name: clear_outcomes: Delete some outcomes of a run that are in its archive; returns the last one
-- A restoration waits for it: what it has found stored is not deleted behind its back.
WITH clearing AS (
    SELECT run_id FROM run_records WHERE run_id = :run_id AND archive_phase = 'clearing' FOR SHARE
), chunk AS (
    SELECT o.sample, o.rollout
    FROM outcomes AS o
    WHERE o.run_id = (SELECT run_id FROM clearing) AND (o.sample, o.rollout) > (:after_sample, :after_rollout)
    ORDER BY o.sample, o.rollout
    LIMIT :limit::integer
), deleted AS (
    DELETE FROM outcomes AS o
    USING chunk
    WHERE o.run_id = :run_id AND o.sample = chunk.sample AND o.rollout = chunk.rollout
)
-- Where the next call begins: dead rows before it need not be read again.
SELECT sample, rollout FROM chunk ORDER BY sample DESC, rollout DESC LIMIT 1;

-- name: restore_outcomes: Store outcomes of an archive again, unless they are stored
WITH restored AS (
    SELECT run_id FROM run_records WHERE run_id = :run_id AND archive_phase = 'restoring' FOR SHARE
)
INSERT INTO outcomes
SELECT given.*
FROM unnest(:outcomes::outcomes[]) AS given
JOIN restored USING (run_id)
ORDER BY given.sample, given.rollout
ON CONFLICT (run_id, sample, rollout) DO NOTHING;

-- name: set_part_restored: Record that the rows of a part are stored again
UPDATE archive_parts SET is_restored = true WHERE run_id = :run_id AND part = :part;

-- name: delete_archive_parts: Delete the list of parts of a run that is restored
DELETE FROM archive_parts WHERE run_id = :run_id;

-- name: end_archive: Record that a run has no archive any more
UPDATE run_records
SET archive_phase = NULL, archive_since = NULL
WHERE run_id = :run_id AND archive_phase = 'removing'
RETURNING run_id;

-- name: read_view: Return the statement of a view
SELECT pg_get_viewdef(to_regclass(:name), true);
