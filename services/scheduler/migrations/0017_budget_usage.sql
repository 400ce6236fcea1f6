-- compatible-from: 0011_run_traces.sql
-- The tokens of a rollout's execution as one value. Code before it counts them in the four columns, which this one leaves at 0.
ALTER TABLE rollout_budgets
    ADD COLUMN usage jsonb NOT NULL DEFAULT '{}',
    ALTER COLUMN prompt_tokens SET DEFAULT 0,
    ALTER COLUMN completion_tokens SET DEFAULT 0,
    ALTER COLUMN cached_tokens SET DEFAULT 0,
    ALTER COLUMN reasoning_tokens SET DEFAULT 0;
UPDATE rollout_budgets
SET usage = jsonb_build_object(
    'prompt_tokens', prompt_tokens, 'completion_tokens', completion_tokens,
    'cached_tokens', cached_tokens, 'reasoning_tokens', reasoning_tokens
);
