-- compatible-from: 0005_rollouts.sql
-- The times of an answer, which counts and figures of times share. The planner puts them into the query that calls them.

CREATE FUNCTION reported_times(answer outcomes) RETURNS TABLE (name text, value double precision)
LANGUAGE sql IMMUTABLE PARALLEL SAFE
BEGIN ATOMIC
    VALUES
        ('queue', (answer).queue_seconds),
        ('first_token', (answer).first_token_seconds),
        ('between_tokens', (answer).between_tokens_seconds),
        ('total', (answer).total_seconds),
        ('tokens_per_second', nullif((answer).completion_tokens, 0) / nullif((answer).total_seconds, 0));
END;
