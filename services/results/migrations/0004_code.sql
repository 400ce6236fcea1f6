-- Answers that workers execute.

-- The message CodeCheck as it is sent to a worker, which nothing here reads; empty where the answer is a text only.
ALTER TABLE samples ADD COLUMN code_check bytea NOT NULL DEFAULT '';

ALTER TYPE failure_class ADD VALUE 'sandbox';
