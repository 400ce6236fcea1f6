-- Tokens beside the counts, times between tokens, prices, and answers that are taken from earlier runs.

ALTER TABLE task_counts
    ADD COLUMN prompt_tokens bigint NOT NULL DEFAULT 0,
    ADD COLUMN completion_tokens bigint NOT NULL DEFAULT 0,
    ADD COLUMN cached_tokens bigint NOT NULL DEFAULT 0,
    ADD COLUMN reasoning_tokens bigint NOT NULL DEFAULT 0;

ALTER TABLE outcomes
    ADD COLUMN between_tokens_seconds double precision,
    -- Taken from an earlier run: it carries no times, and its tokens cost nothing here.
    ADD COLUMN is_reused boolean NOT NULL DEFAULT false;

-- What tokens of the run's model cost; null without a price.
ALTER TABLE run_records ADD COLUMN price jsonb;

-- Of all that makes two runs ask the same of a sample beside the sample itself; null for runs of earlier releases.
ALTER TABLE run_tasks ADD COLUMN request_digest bytea;

-- Runs whose answers another run might take.
CREATE INDEX run_tasks_same_requests ON run_tasks (request_digest) WHERE request_digest IS NOT NULL;
