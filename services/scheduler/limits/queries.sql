-- name: read_limits: Return the changed limits; null stands for the value of the settings
SELECT
    max_running_runs, max_pending_runs_per_user, max_requests_per_minute,
    make_interval(secs => run_time_limit_seconds) AS run_time_limit,
    make_interval(secs => min_run_time_seconds) AS min_run_time, max_stored_bytes_per_user,
    max_stored_files_per_user, max_stored_rows_per_user, max_stored_bytes_per_project,
    ARRAY(SELECT username FROM user_priorities ORDER BY username) AS usernames,
    ARRAY(SELECT highest FROM user_priorities ORDER BY username) AS highest_priorities
FROM limits;

-- name: lock_limits: Keep the limits from changing before this transaction ends
SELECT is_only FROM limits FOR SHARE;

-- name: change_limits: Set the limits that are given and reset those that are named
UPDATE limits
SET max_running_runs = coalesce(:max_running_runs, CASE WHEN 'max_running_runs' <> ALL (:reset) THEN max_running_runs END),
    max_pending_runs_per_user = coalesce(
        :max_pending_runs_per_user,
        CASE WHEN 'max_pending_runs_per_user' <> ALL (:reset) THEN max_pending_runs_per_user END
    ),
    max_requests_per_minute = coalesce(
        :max_requests_per_minute,
        CASE WHEN 'max_requests_per_minute' <> ALL (:reset) THEN max_requests_per_minute END
    ),
    run_time_limit_seconds = coalesce(
        extract(epoch FROM :run_time_limit::interval),
        CASE WHEN 'run_time_limit' <> ALL (:reset) THEN run_time_limit_seconds END
    ),
    min_run_time_seconds = coalesce(
        extract(epoch FROM :min_run_time::interval),
        CASE WHEN 'min_run_time' <> ALL (:reset) THEN min_run_time_seconds END
    ),
    max_stored_bytes_per_user = coalesce(
        :max_stored_bytes_per_user,
        CASE WHEN 'max_stored_bytes_per_user' <> ALL (:reset) THEN max_stored_bytes_per_user END
    ),
    max_stored_files_per_user = coalesce(
        :max_stored_files_per_user,
        CASE WHEN 'max_stored_files_per_user' <> ALL (:reset) THEN max_stored_files_per_user END
    ),
    max_stored_rows_per_user = coalesce(
        :max_stored_rows_per_user,
        CASE WHEN 'max_stored_rows_per_user' <> ALL (:reset) THEN max_stored_rows_per_user END
    ),
    max_stored_bytes_per_project = coalesce(
        :max_stored_bytes_per_project,
        CASE WHEN 'max_stored_bytes_per_project' <> ALL (:reset) THEN max_stored_bytes_per_project END
    );

-- name: delete_user_priorities: Delete the highest priorities of all users
DELETE FROM user_priorities;

-- name: add_user_priorities: Store the highest priorities of users
INSERT INTO user_priorities (username, highest)
SELECT username, highest FROM unnest(:usernames::text[], :highest_priorities::smallint[]) AS given (username, highest);

-- name: count_request: Count a request in its minute, or in the later minute of a clock that is ahead
INSERT INTO request_counts AS counted (username, is_read, minute, requests)
VALUES (:username, :is_read, :minute, 1)
ON CONFLICT (username, is_read) DO UPDATE
SET requests = CASE WHEN counted.minute < excluded.minute THEN 1 ELSE counted.requests + 1 END,
    minute = greatest(counted.minute, excluded.minute)
RETURNING requests, (SELECT max_requests_per_minute FROM limits) AS changed_limit;

-- name: delete_request_counts: Delete the counts of earlier minutes
DELETE FROM request_counts WHERE minute < :before;
