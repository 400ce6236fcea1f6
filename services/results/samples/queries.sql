-- name: stage_sample_set: Store the row of a set, or lock it; returns whether the set is still staged
-- The touch keeps a set that is still being staged from the sweep. Calls for the same set wait for each other.
INSERT INTO sample_sets (sample_set_id)
VALUES (:sample_set_id)
ON CONFLICT (sample_set_id) DO UPDATE SET touched_at = now()
RETURNING digest IS NULL AND same_as IS NULL AS is_staged;

-- name: lock_sample_set: Return whether a set is still staged; calls for the same set wait for each other
SELECT digest, same_as::text AS same_as FROM sample_sets WHERE sample_set_id = :sample_set_id FOR UPDATE;

-- name: unstage_samples: Delete the samples that a repeated chunk replaces
DELETE FROM samples WHERE sample_set_id = :sample_set_id AND position = ANY (:positions);

-- name: measure_samples: Return the count of staged samples, the end of their positions, and a digest
-- The digest covers their digests, passages and named rows. What is sorted is small: with the texts it would go to disk.
SELECT
    count(*) AS staged,
    coalesce(max(position), -1) + 1 AS end_position,
    sha256(coalesce(string_agg(part, ''::bytea ORDER BY position), ''::bytea)) AS digest
FROM (
    SELECT
        position,
        digest || CASE cluster WHEN '' THEN ''::bytea ELSE sha256(convert_to(cluster, 'UTF8')) END
            || CASE row_id WHEN '' THEN ''::bytea ELSE sha256(convert_to(row_id || chr(10) || doc_json, 'UTF8')) END AS part
    FROM samples
    WHERE sample_set_id = :sample_set_id
    ORDER BY position
) AS parts;

-- name: lock_content_key: Let commits of equal sets wait for each other until their transactions end
-- No lock of a row: the set that both would commit may not exist yet.
SELECT pg_advisory_xact_lock(hashtextextended(encode(:content_key, 'hex'), 0));

-- name: touch_content_key: Return the committed set of a key, which is not collected for a while
UPDATE sample_sets SET touched_at = now() WHERE content_key = :content_key RETURNING sample_set_id::text AS sample_set_id;

-- name: touch_sample_set: Return the digest of a committed set, which is not collected for a while
UPDATE sample_sets SET touched_at = now() WHERE sample_set_id = :sample_set_id AND digest IS NOT NULL RETURNING digest;

-- name: commit_sample_set: Name a staged set by its digest, and by its key if it has one
UPDATE sample_sets SET digest = :digest, content_key = :content_key, touched_at = now() WHERE sample_set_id = :sample_set_id;

-- name: alias_sample_set: Store which committed set a staged one equals
UPDATE sample_sets SET same_as = :same_as WHERE sample_set_id = :sample_set_id;

-- name: delete_samples: Delete all samples of a set
DELETE FROM samples WHERE sample_set_id = :sample_set_id;

-- name: delete_staged_sets: Delete uncommitted sets and aliases
WITH deleted AS (
    DELETE FROM sample_sets
    WHERE digest IS NULL AND touched_at < now() - make_interval(secs => :staged_seconds)
    RETURNING sample_set_id
), noted AS (
    INSERT INTO deleted_sample_sets (sample_set_id) SELECT sample_set_id FROM deleted ON CONFLICT (sample_set_id) DO NOTHING
)
SELECT count(*) AS deleted FROM deleted;

-- name: list_deleted_sets: Return sets that are gone and whose samples may still exist
SELECT sample_set_id::text AS sample_set_id FROM deleted_sample_sets LIMIT :limit::integer;

-- name: delete_set_samples: Delete some samples of a set that is gone; returns the last one
-- Nothing is deleted while the set is staged again under the same id.
WITH chunk AS (
    SELECT s.position
    FROM samples AS s
    WHERE s.sample_set_id = :sample_set_id
        AND s.position > :after_position
        AND NOT EXISTS (SELECT FROM sample_sets AS kept WHERE kept.sample_set_id = :sample_set_id)
    ORDER BY s.position
    LIMIT :limit::integer
), deleted AS (
    DELETE FROM samples AS s USING chunk WHERE s.sample_set_id = :sample_set_id AND s.position = chunk.position
)
SELECT max(position) AS position FROM chunk;

-- name: delete_deleted_set: Delete the row of a deleted set whose samples are gone as well
DELETE FROM deleted_sample_sets WHERE sample_set_id = :sample_set_id;

-- name: list_samples: Return samples of a committed set by position
SELECT
    s.position, s.doc_id, s.digest, s.prompt_text, s.prompt_messages, s.choices, s.target_choice,
    s.target_texts, s.right_choices, s.wrong_texts, s.choice_texts, s.choice_ending, s.cluster, s.row_id, s.params_json
FROM samples AS s
WHERE s.sample_set_id = :sample_set_id
    AND s.position = ANY (:positions)
    AND EXISTS (SELECT FROM sample_sets AS c WHERE c.sample_set_id = :sample_set_id AND c.digest IS NOT NULL);

-- name: list_sample_messages: Return samples of a committed set by position, as they are sent to a worker
SELECT
    s.position, s.doc_id, s.prompt_text, s.prompt_messages, s.choices, s.cluster, s.row_id, s.params_json, s.code_check,
    s.rollout_spec, s.choice_ending
FROM samples AS s
WHERE s.sample_set_id = :sample_set_id
    AND s.position = ANY (:positions)
    AND EXISTS (SELECT FROM sample_sets AS c WHERE c.sample_set_id = :sample_set_id AND c.digest IS NOT NULL);

-- name: weigh_samples: Return the approximate bytes of listed samples
SELECT
    position,
    -- Messages and parameters are listed as a request too.
    octet_length(coalesce(prompt_text, ''))
        + 2 * coalesce(octet_length(prompt_messages::text), 0)
        + octet_length(params_json)
        + octet_length(array_to_string(choices, ''))
        + octet_length(array_to_string(target_texts, '')) AS bytes
FROM samples
WHERE sample_set_id = :sample_set_id AND position = ANY (:positions);

-- name: list_targets: Return the targets of samples, each by the columns of `_TARGET` in their order
SELECT position, choices, target_choice, target_texts, right_choices, wrong_texts, choice_texts, choice_ending
FROM samples
WHERE sample_set_id = :sample_set_id AND position = ANY (:positions);

-- name: list_docs: Return the rows of samples
SELECT position, doc_json FROM samples WHERE sample_set_id = :sample_set_id AND position = ANY (:positions);

-- name: list_clusters: Return the samples of a set that share a passage
SELECT position, cluster FROM samples WHERE sample_set_id = :sample_set_id AND cluster <> '' ORDER BY position;

-- name: read_label_count: Return how many choices a sample of a set has, where all have as many
SELECT min(cardinality(choices)) AS labels
FROM samples
WHERE sample_set_id = :sample_set_id
HAVING min(cardinality(choices)) = max(cardinality(choices));
