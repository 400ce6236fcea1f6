-- name: lock_leadership: Lock leadership for this connection; false if another one has it
-- Two schemas in one database have a leader each, so the schema is part of the key.
SELECT pg_try_advisory_lock(hashtext('proctor leader'), hashtext(current_schema()));

-- name: begin_term: Start a term of leadership and return its fencing token
UPDATE leadership SET fencing_token = fencing_token + 1 RETURNING fencing_token;

-- name: lock_term: Keep the term from ending before this transaction; no row if it has ended
-- FOR SHARE: writes of one leader run side by side, and `begin_term` waits for all of them.
-- A leader that hangs in the transaction would keep the next one from its term: the server ends it.
SELECT fencing_token, set_config('idle_in_transaction_session_timeout', '15s', true)
FROM leadership WHERE fencing_token = :fencing_token FOR SHARE;

-- name: read_time: Return the time of Postgres, by which all replicas decide
-- Not now(): that is the start of the transaction, which may have waited for a connection.
SELECT clock_timestamp();
