-- compatible-from: 0004_code.sql
-- Answers that workers execute. Code before it writes whole rows of samples, without the new column.

-- The message CodeCheck as it is sent to a worker, which nothing here reads; empty where the answer is a text only.
ALTER TABLE samples ADD COLUMN code_check bytea NOT NULL DEFAULT '';

ALTER TYPE failure_class ADD VALUE 'sandbox';
