-- name: begin_term: Start a term of leadership and return its fencing token ()
UPDATE leadership SET fencing_token = fencing_token + 1 RETURNING fencing_token;

-- name: hold_term: Keep the term from ending before this transaction; no row if it has ended ($1 fencing token)
SELECT fencing_token FROM leadership WHERE fencing_token = $1 FOR SHARE;

-- name: current_time: Return the time of Postgres, by which all replicas decide ()
SELECT clock_timestamp();
