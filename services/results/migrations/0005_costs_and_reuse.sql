-- Tokens beside the counts, times between tokens, prices, and answers that are taken from earlier runs.

ALTER TABLE task_counts
    ADD COLUMN prompt_tokens bigint NOT NULL DEFAULT 0,
    ADD COLUMN completion_tokens bigint NOT NULL DEFAULT 0,
    ADD COLUMN cached_tokens bigint NOT NULL DEFAULT 0,
    ADD COLUMN reasoning_tokens bigint NOT NULL DEFAULT 0;

-- Runs that are under way, or may be retried, go on counting from what they have.
UPDATE task_counts AS c
SET prompt_tokens = had.prompt_tokens,
    completion_tokens = had.completion_tokens,
    cached_tokens = had.cached_tokens,
    reasoning_tokens = had.reasoning_tokens
FROM (
    SELECT
        o.run_id, o.task_index, o.failure_class, sum(o.prompt_tokens) AS prompt_tokens,
        sum(o.completion_tokens) AS completion_tokens, sum(o.cached_tokens) AS cached_tokens,
        sum(o.reasoning_tokens) AS reasoning_tokens
    FROM outcomes AS o
    JOIN run_records AS r USING (run_id)
    WHERE r.state <> 4 AND (o.failure_class = 0 OR o.epoch = r.epoch)
    GROUP BY o.run_id, o.task_index, o.failure_class
) AS had
WHERE (c.run_id, c.task_index, c.failure_class) = (had.run_id, had.task_index, had.failure_class);

ALTER TABLE outcomes
    ADD COLUMN between_tokens_seconds double precision,
    -- Taken from an earlier run: it carries no times, and its tokens cost nothing here.
    ADD COLUMN is_reused boolean NOT NULL DEFAULT false;

CREATE INDEX outcomes_reused ON outcomes (run_id) WHERE is_reused;

-- What tokens of the run's model cost; null without a price.
ALTER TABLE run_records ADD COLUMN price jsonb;

-- Of all that makes two runs ask the same of a sample beside the sample itself; null for runs of earlier releases.
ALTER TABLE run_tasks ADD COLUMN request_digest bytea;

-- Runs whose answers another run might take.
CREATE INDEX run_tasks_same_requests ON run_tasks (request_digest) WHERE request_digest IS NOT NULL;
