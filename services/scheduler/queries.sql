-- name: get_limits gives what was changed of the limits; null is as the settings say ()
SELECT max_running_runs, max_pending_runs_per_user, max_requests_per_minute, run_time_limit_seconds, min_run_time_seconds,
       ARRAY(SELECT username FROM user_priorities ORDER BY username) AS usernames,
       ARRAY(SELECT highest FROM user_priorities ORDER BY username) AS highest_priorities
  FROM limits;

-- name: hold_limits lets nobody change the limits before this transaction has done what they allow ()
SELECT is_only FROM limits FOR SHARE;

-- name: change_limits changes those that are given, and forgets changes of others ($1 runs running, $2 pending of a user, $3 requests in a minute, $4 seconds a run may take, $5 seconds it may stay, $6 names to forget)
UPDATE limits
   SET max_running_runs = coalesce($1, CASE WHEN 'max_running_runs' <> ALL ($6::text[]) THEN max_running_runs END),
       max_pending_runs_per_user = coalesce($2, CASE WHEN 'max_pending_runs_per_user' <> ALL ($6) THEN max_pending_runs_per_user END),
       max_requests_per_minute = coalesce($3, CASE WHEN 'max_requests_per_minute' <> ALL ($6) THEN max_requests_per_minute END),
       run_time_limit_seconds = coalesce($4, CASE WHEN 'run_time_limit' <> ALL ($6) THEN run_time_limit_seconds END),
       min_run_time_seconds = coalesce($5, CASE WHEN 'min_run_time' <> ALL ($6) THEN min_run_time_seconds END);

-- name: drop_user_priorities makes room for others ()
DELETE FROM user_priorities;

-- name: add_user_priorities stores what users may ask for ($1 users, $2 highest priorities)
INSERT INTO user_priorities (username, highest)
SELECT username, highest FROM unnest($1::text[], $2::smallint[]) AS may (username, highest);

-- name: count_request counts one request in its minute, or in the later one of a clock that is ahead ($1 user, $2 minute)
INSERT INTO request_counts AS counted (username, minute, requests)
VALUES ($1, $2, 1)
    ON CONFLICT (username) DO UPDATE
   SET requests = CASE WHEN counted.minute < excluded.minute THEN 1 ELSE counted.requests + 1 END,
       minute = greatest(counted.minute, excluded.minute)
RETURNING requests, (SELECT max_requests_per_minute FROM limits) AS changed_limit;

-- name: forget_requests drops counts of earlier minutes ($1 time)
DELETE FROM request_counts WHERE minute < $1;

-- name: lock_user takes the user's queue for this transaction ($1 user)
SELECT pg_advisory_xact_lock(hashtext('proctor queue'), hashtext($1));

-- name: find_ordered finds the run of an earlier call ($1 run, $2 request)
SELECT run_id, username, pool, ordered, scoring_method, state, epoch, step, planned_epoch, is_closed, total,
       suite_version, price, reused_answers, admitted_at, ran_seconds, created_at, started_at, finished_at, deadline, error_reason, error_message, environment, final_counts, dataset_name, expires_at
  FROM runs
 WHERE run_id = $1 OR request_id = $2;

-- name: count_pending_of_user counts what waits for a user or is paused ($1 user)
SELECT (SELECT count(*) FROM runs WHERE state = 'pending' AND username = $1)
       + (SELECT count(*) FROM runs WHERE state = 'paused' AND username = $1);

-- name: lower_priority makes a run less urgent ($1 run, $2 priority)
UPDATE runs
   SET priority = $2, ordered = jsonb_set(ordered, '{priority}', to_jsonb($2::smallint))
 WHERE run_id = $1;

-- name: keep_dataset lets nobody delete a data set before this transaction has stored who uses it ($1 data set)
SELECT dataset_id FROM datasets WHERE dataset_id = $1 FOR KEY SHARE;

-- name: keep_file does the same for a file ($1 file)
SELECT file_id FROM files WHERE file_id = $1 FOR KEY SHARE;

-- name: insert_run stores a run as pending ($1 run, $2 request, $3 user, $4 project, $5 suite, $6 model, $7 pool, $8 priority, $9 order, $10 scoring method, $11 time, $12 environment, $13 version of a user's suite or 0, $14 price, $15 data set or null, $16 its name, $17 when its window closes or null)
INSERT INTO runs (run_id, request_id, username, project_id, suite, model, pool, priority, ordered,
                  scoring_method, state, epoch, created_at, queued_at, environment, suite_version, price, dataset_id, dataset_name, expires_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9::jsonb, $10, 'pending', 1, $11, $11, $12::jsonb, nullif($13, 0), $14::jsonb, $15, $16, $17);

-- name: get_run gives one run ($1 run)
SELECT run_id, username, pool, ordered, scoring_method, state, epoch, step, planned_epoch, is_closed, total,
       suite_version, price, reused_answers, admitted_at, ran_seconds, created_at, started_at, finished_at, deadline, error_reason, error_message, environment, final_counts, dataset_name, expires_at
  FROM runs
 WHERE run_id = $1;

-- name: plan_by_values lets this transaction plan with the filters that are given: each has an index of its own ()
SET LOCAL plan_cache_mode = force_custom_plan;

-- name: list_runs gives a page, newest first ($1 state, $2 suite, $3 model, $4 project, $5 'suite' or 'dataset', $6 data set, $7 time and $8 run behind which it begins, $9 size)
SELECT run_id, username, pool, ordered, scoring_method, state, epoch, step, planned_epoch, is_closed, total,
       suite_version, price, reused_answers, admitted_at, ran_seconds, created_at, started_at, finished_at, deadline, error_reason, error_message, environment, final_counts, dataset_name, expires_at
  FROM runs
 WHERE ($1::text IS NULL OR state = $1)
   AND ($2::text IS NULL OR suite = $2)
   AND ($3::text IS NULL OR model = $3)
   AND ($4::bigint IS NULL OR project_id = $4)
   AND ($5::text IS NULL OR ($5 = 'dataset' AND dataset_id IS NOT NULL) OR ($5 = 'suite' AND dataset_id IS NULL))
   AND ($6::text IS NULL OR (suite = $6 AND dataset_id = $6))
   AND (created_at, run_id) < ($7::timestamptz, $8::uuid)
 ORDER BY created_at DESC, run_id DESC
 LIMIT $9;

-- name: count_runs counts over all pages, for the first of them ($1 state, $2 suite, $3 model, $4 project, $5 'suite' or 'dataset', $6 data set)
SELECT count(*)
  FROM runs
 WHERE ($1::text IS NULL OR state = $1)
   AND ($2::text IS NULL OR suite = $2)
   AND ($3::text IS NULL OR model = $3)
   AND ($4::bigint IS NULL OR project_id = $4)
   AND ($5::text IS NULL OR ($5 = 'dataset' AND dataset_id IS NOT NULL) OR ($5 = 'suite' AND dataset_id IS NULL))
   AND ($6::text IS NULL OR (suite = $6 AND dataset_id = $6));

-- name: cancel_run ends a run where its state allows it; can be repeated ($1 run, $2 states, $3 time, $4 step from which on a running one is being closed)
UPDATE runs
   SET state = 'cancelled', finished_at = $3
 WHERE run_id = $1
   AND ((state = ANY ($2::text[]) AND NOT (state = 'running' AND step = $4)) OR (state = 'cancelled' AND finished_at = $3))
RETURNING run_id, username, pool, ordered, scoring_method, state, epoch, step, planned_epoch, is_closed, total,
       suite_version, price, reused_answers, admitted_at, ran_seconds, created_at, started_at, finished_at, deadline, error_reason, error_message, environment, final_counts, dataset_name, expires_at;

-- name: requeue_run lets a closed run wait again in a new epoch, with a new completion window where it had one; can be repeated ($1 run, $2 states, $3 time)
UPDATE runs
   SET state = 'pending', epoch = epoch + (state <> 'pending')::int, queued_at = $3, is_closed = false, step = '', started_at = NULL,
       admitted_at = NULL, ran_seconds = 0, finished_at = NULL, deadline = NULL, error_reason = NULL, error_message = NULL, final_counts = NULL,
       expires_at = $3 + make_interval(secs => (ordered ->> 'completion_window_seconds')::float8)
 WHERE run_id = $1
   AND ((state = ANY ($2::text[]) AND is_closed) OR (state = 'pending' AND queued_at = $3))
RETURNING run_id, username, pool, ordered, scoring_method, state, epoch, step, planned_epoch, is_closed, total,
       suite_version, price, reused_answers, admitted_at, ran_seconds, created_at, started_at, finished_at, deadline, error_reason, error_message, environment, final_counts, dataset_name, expires_at;

-- name: hold_run_to_delete lets a run not change before this transaction is over ($1 run)
SELECT state, step, is_closed FROM runs WHERE run_id = $1 FOR UPDATE;

-- name: delete_run removes a run with its tasks, its shards and its batch ($1 run)
DELETE FROM runs WHERE run_id = $1;

-- name: add_deleted_run says that results may still have a run ($1 run, $2 time)
INSERT INTO deleted_runs (run_id, deleted_at) VALUES ($1, $2) ON CONFLICT DO NOTHING;

-- name: was_deleted_then says whether an earlier attempt of the same call deleted a run ($1 run, $2 time)
SELECT EXISTS (SELECT FROM deleted_runs WHERE run_id = $1 AND deleted_at = $2);

-- name: deleted_runs gives runs that results may still have, the earliest first ($1 deleted before, $2 most)
SELECT run_id FROM deleted_runs WHERE deleted_at < $1 ORDER BY deleted_at LIMIT $2;

-- name: forget_deleted_run says that results has a run no more ($1 run)
DELETE FROM deleted_runs WHERE run_id = $1;

-- name: pause_run takes a run out of the queue, or from its place, with what it has ($1 run, $2 states, $3 time, $4 step from which on it is being closed)
UPDATE runs
   SET state = 'paused', queued_at = $3, step = '', admitted_at = NULL, deadline = NULL,
       ran_seconds = ran_seconds + greatest(coalesce(extract(epoch FROM $3 - admitted_at)::float8, 0), 0)
 WHERE run_id = $1 AND state = ANY ($2::text[]) AND NOT (state = 'running' AND step = $4)
RETURNING run_id, username, pool, ordered, scoring_method, state, epoch, step, planned_epoch, is_closed, total,
       suite_version, price, reused_answers, admitted_at, ran_seconds, created_at, started_at, finished_at, deadline, error_reason, error_message, environment, final_counts, dataset_name, expires_at;

-- name: resume_run lets a paused run wait for a place, in the same epoch; can be repeated ($1 run, $2 time)
UPDATE runs
   SET state = 'pending', queued_at = $2
 WHERE run_id = $1 AND (state = 'paused' OR (state = 'pending' AND queued_at = $2))
RETURNING run_id, username, pool, ordered, scoring_method, state, epoch, step, planned_epoch, is_closed, total,
       suite_version, price, reused_answers, admitted_at, ran_seconds, created_at, started_at, finished_at, deadline, error_reason, error_message, environment, final_counts, dataset_name, expires_at;

-- name: queue_order gives what waits in the order of its turn: priority, fair share of its user, age ($1 only these runs, or null, $2 most)
-- A user's runs count one after the other behind what runs of them, those first that have begun. Among equal shares
-- the age is that of the user's last turn: who has many runs waiting is not first again and again.
WITH shares AS (
    SELECT username, count(*) AS places FROM runs WHERE state = 'running' GROUP BY username
), claims AS (
    SELECT run_id, username, priority, queued_at,
           coalesce(places, 0)
           + row_number() OVER (PARTITION BY username
                                    ORDER BY priority, ran_seconds > 0 DESC, queued_at, run_id) AS share
      FROM runs LEFT JOIN shares USING (username)
     WHERE state = 'pending'
), turns AS (
    SELECT run_id, username, priority,
           row_number() OVER (ORDER BY priority, share, greatest(queued_at, placed_at), run_id) AS position
      FROM claims LEFT JOIN user_turns USING (username)
)
SELECT run_id, username, priority, position
  FROM turns
 WHERE $1::uuid[] IS NULL OR run_id = ANY ($1)
 ORDER BY position
 LIMIT $2;

-- name: look_at_one_moment lets all statements of this transaction see the same ()
SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY;

-- name: running_runs gives what runs, in the order of their start ()
SELECT run_id, username, pool, ordered, scoring_method, state, epoch, step, planned_epoch, is_closed, total,
       suite_version, price, reused_answers, admitted_at, ran_seconds, created_at, started_at, finished_at, deadline, error_reason, error_message, environment, final_counts, dataset_name, expires_at
  FROM runs
 WHERE state = 'running'
 ORDER BY admitted_at, run_id;

-- name: waiting_runs gives those of these runs that wait, in this order ($1 runs)
SELECT run_id, username, pool, ordered, scoring_method, state, epoch, step, planned_epoch, is_closed, total,
       suite_version, price, reused_answers, admitted_at, ran_seconds, created_at, started_at, finished_at, deadline, error_reason, error_message, environment, final_counts, dataset_name, expires_at,
       queued_at
  FROM runs
 WHERE run_id = ANY ($1::uuid[]) AND state = 'pending'
 ORDER BY array_position($1::uuid[], run_id);

-- name: paused_runs gives what is paused, the latest first ($1 most)
SELECT run_id, username, pool, ordered, scoring_method, state, epoch, step, planned_epoch, is_closed, total,
       suite_version, price, reused_answers, admitted_at, ran_seconds, created_at, started_at, finished_at, deadline, error_reason, error_message, environment, final_counts, dataset_name, expires_at
  FROM runs
 WHERE state = 'paused'
 ORDER BY queued_at DESC, run_id DESC
 LIMIT $1;

-- name: user_run_counts counts what runs and waits of each user ()
SELECT username, sum(is_running)::integer AS running, sum(1 - is_running)::integer AS pending
  FROM (SELECT username, 1 AS is_running FROM runs WHERE state = 'running'
        UNION ALL
        SELECT username, 0 FROM runs WHERE state = 'pending') AS queued
 GROUP BY username
 ORDER BY username;

-- name: past_runs gives the last completed runs of each suite and model ($1 suites, $2 their models)
SELECT suite, model, ordered, total, seconds
  FROM unnest($1::text[], $2::text[]) AS wanted (suite, model)
 CROSS JOIN LATERAL (
    SELECT ordered, total,
           ran_seconds + extract(epoch FROM finished_at - coalesce(admitted_at, started_at))::float8 AS seconds
      FROM runs
     WHERE runs.suite = wanted.suite AND runs.model = wanted.model
       AND state = 'completed' AND epoch = 1 AND total > 0 AND reused_answers = 0
     ORDER BY finished_at DESC
     LIMIT 5
 ) AS past;

-- name: past_usage gives tokens of the last completed runs of a suite that were asked alike: of the model, else of any ($1 suite, $2 model, $3 scoring method, $4 how they were asked)
WITH latest AS (
    (SELECT true AS is_of_model, ordered, total, final_counts, scoring_method, reused_answers, started_at, finished_at
       FROM runs
      WHERE state = 'completed' AND suite = $1 AND model = $2
      ORDER BY finished_at DESC
      LIMIT 100)
    UNION ALL
    (SELECT false, ordered, total, final_counts, scoring_method, reused_answers, started_at, finished_at
       FROM runs
      WHERE state = 'completed' AND suite = $1
      ORDER BY created_at DESC
      LIMIT 100)
), alike AS (
    SELECT is_of_model, ordered, total, final_counts, started_at, finished_at
      FROM latest
     WHERE scoring_method = $3 AND reused_answers = 0
       AND jsonb_build_object(
               'num_fewshot', ordered -> 'num_fewshot',
               'prompt_form', ordered -> 'prompt_form',
               'truncation', ordered -> 'truncation',
               'base_url', ordered -> 'base_url',
               'max_tokens', ordered -> 'params' -> 'max_tokens',
               'context_tokens', ordered -> 'params' -> 'context_tokens',
               'provider_params', ordered -> 'params' -> 'provider_params'
           ) = $4::jsonb
)
SELECT ordered, total, final_counts, extract(epoch FROM finished_at - started_at)::float8 AS seconds
  FROM alike
 WHERE is_of_model = (SELECT bool_or(is_of_model) FROM alike)
 ORDER BY finished_at DESC
 LIMIT 5;

-- name: planned_tasks gives the tasks of a run in order ($1 run)
SELECT task, version, sample_set_id, first_sample, sample_count, output_type, num_fewshot, is_stand_in,
       dataset, dataset_revision, generation
  FROM tasks
 WHERE run_id = $1
 ORDER BY task_index;

-- name: hold_fence lets a transaction go on only while this term lasts ($1 fence)
SELECT fence FROM leadership WHERE fence = $1 FOR SHARE;

-- name: raise_fence begins a term ()
UPDATE leadership SET fence = fence + 1 RETURNING fence;

-- name: hold_run lets a transaction go on only while the run is running in this epoch ($1 run, $2 epoch)
SELECT run_id FROM runs WHERE run_id = $1 AND epoch = $2 AND state = 'running' FOR SHARE;

-- name: lock_admission lets one admission after the other count what runs ()
SELECT pg_advisory_xact_lock(hashtext('proctor admission'));

-- name: hold_places gives the runs that are running, and lets none of them end or be closed before this transaction has moved them ($1 step from which on a run is being closed)
SELECT run_id, username, priority, admitted_at, planned_epoch = epoch AS is_planned, step = $1 AS is_closing
  FROM runs
 WHERE state = 'running'
   FOR NO KEY UPDATE;

-- name: give_places lets running runs wait again, in the same epoch ($1 runs, $2 time)
UPDATE runs
   SET state = 'pending', queued_at = $2, step = '', admitted_at = NULL, deadline = NULL,
       ran_seconds = ran_seconds + greatest(extract(epoch FROM $2 - admitted_at)::float8, 0)
 WHERE run_id = ANY ($1::uuid[]) AND state = 'running'
RETURNING run_id;

-- name: take_places lets pending runs run, each until its completion window closes, or for what is left of its time ($1 runs, $2 time, $3 seconds a run may take)
WITH admitted AS (
    UPDATE runs
       SET state = 'running', started_at = coalesce(started_at, $2), admitted_at = $2,
           deadline = coalesce(expires_at, $2 + make_interval(secs => $3 - ran_seconds))
     WHERE run_id = ANY ($1::uuid[]) AND state = 'pending'
    RETURNING run_id, username
), turns AS (
    INSERT INTO user_turns (username, placed_at)
    SELECT DISTINCT username, $2::timestamptz FROM admitted
        ON CONFLICT (username) DO UPDATE SET placed_at = excluded.placed_at
)
SELECT run_id FROM admitted;

-- name: forget_turns drops those before a time, of users with nothing in the queue ($1 time)
DELETE FROM user_turns
 WHERE placed_at < $1
   AND username NOT IN (SELECT username FROM runs WHERE state = 'pending'
                        UNION ALL SELECT username FROM runs WHERE state = 'running'
                        UNION ALL SELECT username FROM runs WHERE state = 'paused');

-- name: expired_runs gives those that wait or are paused, and whose completion window is over ($1 time)
SELECT run_id, username, pool, ordered, scoring_method, state, epoch, step, planned_epoch, is_closed, total,
       suite_version, price, reused_answers, admitted_at, ran_seconds, created_at, started_at, finished_at, deadline, error_reason, error_message, environment, final_counts, dataset_name, expires_at
  FROM runs
 WHERE expires_at <= $1 AND state IN ('pending', 'paused')
 ORDER BY expires_at
 LIMIT 100;

-- name: unfinished_runs gives the runs that the leader has to look after ()
SELECT run_id FROM runs WHERE state = 'running'
UNION ALL
SELECT run_id FROM runs WHERE state IN ('completed', 'failed', 'cancelled') AND NOT is_closed;

-- name: live_among gives those of some runs that are not over ($1 runs)
SELECT run_id FROM runs
 WHERE run_id = ANY ($1::uuid[]) AND NOT (is_closed AND state IN ('completed', 'failed', 'cancelled'));

-- name: note_step says what happens to a run ($1 run, $2 epoch, $3 step)
UPDATE runs SET step = $3 WHERE run_id = $1 AND epoch = $2 AND state = 'running' RETURNING run_id;

-- name: drop_shards removes the shards of an epoch ($1 run, $2 epoch)
DELETE FROM shards WHERE run_id = $1 AND epoch = $2;

-- name: next_shard_number gives the first free number ($1 run)
SELECT coalesce(max(shard) + 1, 0) FROM shards WHERE run_id = $1;

-- name: add_shards stores shards ($1 run, $2 epoch, $3 numbers, $4 tasks, $5 rollouts, $6 samples as array literals)
INSERT INTO shards (run_id, epoch, shard, task_index, rollout, samples, size)
SELECT $1, $2, cut.shard, cut.task_index, cut.rollout, cut.samples::bigint[], cardinality(cut.samples::bigint[])
  FROM unnest($3::int[], $4::int[], $5::int[], $6::text[]) AS cut (shard, task_index, rollout, samples)
    ON CONFLICT (run_id, shard) DO NOTHING;

-- name: drop_tasks removes the tasks of a run ($1 run)
DELETE FROM tasks WHERE run_id = $1;

-- name: add_task stores a planned task ($1 run, $2 index, $3 task, $4 version, $5 sample set, $6 first sample, $7 samples, $8 output type, $9 few-shot examples, $10 stand-in, $11 dataset, $12 revision, $13 generation)
INSERT INTO tasks (run_id, task_index, task, version, sample_set_id, first_sample, sample_count, output_type,
                   num_fewshot, is_stand_in, dataset, dataset_revision, generation)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13::jsonb);

-- name: mark_planned makes the shards of an epoch count ($1 run, $2 epoch, $3 total, $4 environment, $5 answers taken from earlier runs)
UPDATE runs
   SET planned_epoch = $2, total = $3, environment = $4::jsonb, reused_answers = $5, step = ''
 WHERE run_id = $1 AND epoch = $2 AND state = 'running'
RETURNING run_id;

-- name: finish_run ends a run ($1 run, $2 epoch, $3 state, $4 states before, $5 time, $6 reason, $7 message, $8 counts, $9 environment)
UPDATE runs
   SET state = $3, step = '', finished_at = $5, error_reason = $6, error_message = $7, final_counts = $8::jsonb,
       is_closed = $8 IS NOT NULL, environment = environment || $9::jsonb
 WHERE run_id = $1 AND epoch = $2 AND state = ANY ($4::text[])
RETURNING run_id;

-- name: mark_closed notes that results has frozen a run ($1 run, $2 epoch, $3 counts, $4 environment)
UPDATE runs
   SET is_closed = true, final_counts = $3::jsonb, environment = environment || $4::jsonb
 WHERE run_id = $1 AND epoch = $2 AND state IN ('completed', 'failed', 'cancelled');

-- name: planned_shards gives what waits to be dispatched ($1 run, $2 epoch, $3 number before, $4 limit)
SELECT shard, task_index, rollout, samples, size, attempt
  FROM shards
 WHERE run_id = $1 AND epoch = $2 AND state = 'planned' AND shard > $3
 ORDER BY shard
 LIMIT $4;

-- name: dispatched_shards gives what is on the wire ($1 run, $2 epoch)
SELECT shard, task_index, rollout, samples, size, attempt
  FROM shards
 WHERE run_id = $1 AND epoch = $2 AND state = 'dispatched'
 ORDER BY shard;

-- name: move_shards marks shards as done and others as sent, while the term and the run last ($1 fence, $2 run, $3 epoch, $4 done, $5 sent, $6 their attempts)
WITH leader AS (
    SELECT fence FROM leadership WHERE fence = $1 FOR SHARE
), live AS (
    SELECT runs.run_id FROM runs, leader
     WHERE runs.run_id = $2 AND runs.epoch = $3 AND runs.state = 'running' FOR SHARE OF runs
), done AS (
    UPDATE shards SET state = 'done'
      FROM live
     WHERE shards.run_id = live.run_id AND shards.epoch = $3 AND shards.shard = ANY ($4::int[])
       AND shards.state = 'dispatched'
), sent AS (
    UPDATE shards SET state = 'dispatched', attempt = going.attempt
      FROM live, unnest($5::int[], $6::int[]) AS going (shard, attempt)
     WHERE shards.run_id = live.run_id AND shards.epoch = $3 AND shards.shard = going.shard
       AND shards.state = 'planned' AND shards.attempt < going.attempt
)
SELECT EXISTS (SELECT FROM leader) AS is_leader, EXISTS (SELECT FROM live) AS is_live;

-- name: give_back_shards lets sent shards wait again, with what is missing of them ($1 run, $2 epoch, $3 numbers, $4 samples as array literals)
UPDATE shards
   SET state = 'planned', samples = back.samples::bigint[]
  FROM unnest($3::int[], $4::text[]) AS back (shard, samples)
 WHERE shards.run_id = $1 AND shards.epoch = $2 AND shards.shard = back.shard AND shards.state = 'dispatched';

-- name: hold_suite takes the name of a suite for this transaction: versions are added one after the other ($1 suite)
INSERT INTO user_suites (suite) VALUES ($1)
    ON CONFLICT (suite) DO UPDATE SET suite = excluded.suite;

-- name: find_suite_content gives the version that has this content ($1 suite, $2 digest)
SELECT version FROM user_suite_versions WHERE suite = $1 AND digest = $2;

-- name: add_suite_version stores the next version ($1 suite, $2 digest, $3 document, $4 file name, $5 user, $6 time)
WITH counted AS (
    UPDATE user_suites SET last_version = last_version + 1 WHERE suite = $1 RETURNING last_version
)
INSERT INTO user_suite_versions (suite, version, digest, document, file_name, username, created_at)
SELECT $1, last_version, $2, $3, $4, $5, $6 FROM counted
RETURNING version;

-- name: add_suite_files stores the files of a version ($1 suite, $2 version, $3 paths, $4 contents)
INSERT INTO user_suite_files (suite, version, path, content)
SELECT $1, $2, path, content FROM unnest($3::text[], $4::bytea[]) AS file (path, content);

-- name: find_suite gives a version of a user's suite, the latest for null ($1 suite, $2 version)
SELECT suite, version, digest
  FROM user_suite_versions
 WHERE suite = $1 AND ($2::integer IS NULL OR version = $2)
 ORDER BY version DESC
 LIMIT 1;

-- name: latest_suites gives the latest version of each user's suite ()
SELECT DISTINCT ON (suite) suite, version, digest
  FROM user_suite_versions
 ORDER BY suite, version DESC;

-- name: get_suite_document gives the text of a version ($1 suite, $2 version)
SELECT document, file_name FROM user_suite_versions WHERE suite = $1 AND version = $2;

-- name: get_suite_files gives the files of a version ($1 suite, $2 version)
SELECT path, content FROM user_suite_files WHERE suite = $1 AND version = $2;

-- name: delete_suite_version removes a version that no run refers to ($1 suite, $2 version)
DELETE FROM user_suite_versions WHERE suite = $1 AND version = $2 RETURNING version;

-- name: hold_dataset_content stores a content, or finds that of the same file, and keeps it for this transaction ($1 digest, $2 format, $3 prefix, $4 bytes, $5 rows, $6 rows with a target, $7 models, $8 endpoint)
INSERT INTO dataset_contents (digest, format, prefix, size_bytes, row_count, target_count, models, endpoint)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
    ON CONFLICT (digest, format) DO UPDATE SET digest = excluded.digest;

-- name: add_dataset names a content; not a second time for the same request ($1 data set, $2 name, $3 user, $4 time, $5 digest, $6 format, $7 request)
INSERT INTO datasets (dataset_id, name, username, uploaded_at, digest, format, request_id)
VALUES ($1, $2, $3, $4, $5, $6, $7)
    ON CONFLICT DO NOTHING;

-- name: get_dataset gives one with its content ($1 data set)
SELECT dataset_id, name, username, uploaded_at, digest, format, prefix, size_bytes, row_count, target_count, models, endpoint
  FROM datasets JOIN dataset_contents USING (digest, format)
 WHERE dataset_id = $1;

-- name: get_named_content gives the rows of a data set, or of a file that has any ($1 data set or file)
SELECT name, digest, format, prefix, content.size_bytes, row_count, target_count, models, endpoint
  FROM (SELECT name, digest, format FROM datasets WHERE dataset_id = $1
        UNION ALL
        SELECT name, digest, format FROM files WHERE file_id = $1) AS named
  JOIN dataset_contents AS content USING (digest, format);

-- name: find_ordered_dataset gives what an earlier call with this id stored ($1 request)
SELECT dataset_id, name, username, uploaded_at, digest, format, prefix, size_bytes, row_count, target_count, models, endpoint
  FROM datasets JOIN dataset_contents USING (digest, format)
 WHERE request_id = $1;

-- name: list_datasets gives a page, newest first ($1 time and $2 data set behind which it begins, $3 size)
SELECT dataset_id, name, username, uploaded_at, digest, format, prefix, size_bytes, row_count, target_count, models, endpoint
  FROM datasets JOIN dataset_contents USING (digest, format)
 WHERE (uploaded_at, dataset_id) < ($1::timestamptz, $2::text)
 ORDER BY uploaded_at DESC, dataset_id DESC
 LIMIT $3;

-- name: count_datasets counts over all pages, for the first of them ()
SELECT count(*) FROM datasets;

-- name: run_using_dataset gives a run that goes on or waits, and is over this data set ($1 data set)
SELECT run_id FROM runs WHERE dataset_id = $1 AND state IN ('pending', 'running', 'paused') LIMIT 1;

-- name: hold_dataset lets no run over a data set be added before this transaction is over ($1 data set)
SELECT dataset_id FROM datasets WHERE dataset_id = $1 FOR UPDATE;

-- name: hold_content_of_dataset gives the content of a data set, to which none is added meanwhile ($1 data set)
SELECT dataset_contents.digest, dataset_contents.format, prefix, size_bytes, row_count, target_count, models, endpoint
  FROM datasets JOIN dataset_contents USING (digest, format)
 WHERE dataset_id = $1
   FOR UPDATE OF dataset_contents;

-- name: delete_dataset removes a data set ($1 data set)
DELETE FROM datasets WHERE dataset_id = $1;

-- name: delete_unused_content removes a content that no data set and no file has any more ($1 digest, $2 format)
DELETE FROM dataset_contents
 WHERE digest = $1 AND format = $2
   AND NOT EXISTS (SELECT FROM datasets WHERE datasets.digest = $1 AND datasets.format = $2)
   AND NOT EXISTS (SELECT FROM files WHERE files.digest = $1 AND files.format = $2)
RETURNING true;

-- name: add_loose_prefix says that objects may lie there that no content has ($1 prefix)
INSERT INTO loose_prefixes (prefix) VALUES ($1) ON CONFLICT DO NOTHING;

-- name: loose_prefixes gives those that have been loose for long, the oldest first ($1 since before)
SELECT prefix FROM loose_prefixes WHERE since < $1 ORDER BY since;

-- name: forget_loose_prefix says that nothing lies there, or that a content has it ($1 prefix)
DELETE FROM loose_prefixes WHERE prefix = $1;

-- name: add_file names stored bytes and their content; not a second time for the same request ($1 file, $2 name, $3 user, $4 purpose, $5 bytes, $6 time, $7 when it goes or null, $8 prefix, $9 digest of the content or null, $10 its format or null, $11 first faults, $12 all faults, $13 request)
INSERT INTO files (file_id, name, username, purpose, size_bytes, created_at, expires_at, prefix, digest, format, faults, fault_count, request_id)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11::jsonb, $12, $13)
    ON CONFLICT DO NOTHING;

-- name: get_file gives one with its faults, and with its content where it has one ($1 file)
SELECT file_id, name, username, purpose, files.size_bytes AS file_bytes, created_at, expires_at, files.prefix AS file_prefix, faults, fault_count,
       digest, format, dataset_contents.prefix, dataset_contents.size_bytes, row_count, target_count, models, endpoint
  FROM files LEFT JOIN dataset_contents USING (digest, format)
 WHERE file_id = $1;

-- name: find_ordered_file gives what an earlier call with this id stored ($1 request)
SELECT file_id, name, username, purpose, files.size_bytes AS file_bytes, created_at, expires_at, files.prefix AS file_prefix, faults, fault_count,
       digest, format, dataset_contents.prefix, dataset_contents.size_bytes, row_count, target_count, models, endpoint
  FROM files LEFT JOIN dataset_contents USING (digest, format)
 WHERE request_id = $1;

-- name: list_files gives a page without the faults, newest first ($1 purpose or null, $2 time and $3 file behind which it begins, $4 size)
SELECT file_id, name, username, purpose, files.size_bytes AS file_bytes, created_at, expires_at, files.prefix AS file_prefix, '[]' AS faults, fault_count,
       digest, format, dataset_contents.prefix, dataset_contents.size_bytes, row_count, target_count, models, endpoint
  FROM files LEFT JOIN dataset_contents USING (digest, format)
 WHERE ($1::text IS NULL OR purpose = $1) AND (created_at, file_id) < ($2::timestamptz, $3::text)
 ORDER BY created_at DESC, file_id DESC
 LIMIT $4;

-- name: list_oldest_files gives a page without the faults, oldest first ($1 purpose or null, $2 time and $3 file behind which it begins, $4 size)
SELECT file_id, name, username, purpose, files.size_bytes AS file_bytes, created_at, expires_at, files.prefix AS file_prefix, '[]' AS faults, fault_count,
       digest, format, dataset_contents.prefix, dataset_contents.size_bytes, row_count, target_count, models, endpoint
  FROM files LEFT JOIN dataset_contents USING (digest, format)
 WHERE ($1::text IS NULL OR purpose = $1) AND (created_at, file_id) > ($2::timestamptz, $3::text)
 ORDER BY created_at, file_id
 LIMIT $4;

-- name: hold_file lets nothing begin to use a file before this transaction is over ($1 file)
SELECT prefix, digest, format FROM files WHERE file_id = $1 FOR UPDATE;

-- name: batch_using_file gives a batch over a file whose own files are still to be written ($1 file)
SELECT batch_id FROM batches
 WHERE input_file_id = $1 AND run_id IS NOT NULL AND finalized_at IS NULL
 LIMIT 1;

-- name: hold_content lets no other use of a content begin before this transaction is over ($1 digest, $2 format)
SELECT prefix FROM dataset_contents WHERE digest = $1 AND format = $2 FOR UPDATE;

-- name: delete_file removes a file ($1 file)
DELETE FROM files WHERE file_id = $1;

-- name: expired_files gives those whose time is over and that nothing uses, the first first ($1 time, $2 most)
SELECT file_id FROM files
 WHERE expires_at <= $1
   AND NOT EXISTS (SELECT FROM batches WHERE input_file_id = file_id AND run_id IS NOT NULL AND finalized_at IS NULL)
   AND NOT EXISTS (SELECT FROM runs WHERE dataset_id = file_id AND state IN ('pending', 'running', 'paused'))
 ORDER BY expires_at
 LIMIT $2;

-- name: add_batch stores a batch; not a second time for the same request ($1 batch, $2 user, $3 input file, $4 endpoint, $5 completion window, $6 metadata, $7 time, $8 lines, $9 run or null, $10 errors, $11 how long its files stay or null, $12 request)
INSERT INTO batches (batch_id, username, input_file_id, endpoint, completion_window, metadata, created_at, total, run_id, errors,
                     output_expires_after_seconds, request_id)
VALUES ($1, $2, $3, $4, $5, $6::jsonb, $7, $8, $9, $10::jsonb, $11, $12)
    ON CONFLICT DO NOTHING;

-- name: get_batch gives one with its run ($1 batch)
SELECT batch_id, batches.username AS batch_user, input_file_id, endpoint, completion_window, metadata, batches.created_at AS batch_created_at,
       batches.total AS batch_total, errors, finalized_at, output_file_id, error_file_id, output_expires_after_seconds,
       run_id, runs.username, pool, ordered, scoring_method, state, epoch, step, planned_epoch, is_closed, runs.total,
       suite_version, price, reused_answers, admitted_at, ran_seconds, runs.created_at, started_at, finished_at, deadline, error_reason, error_message, environment, final_counts, dataset_name, expires_at
  FROM batches LEFT JOIN runs USING (run_id)
 WHERE batch_id = $1;

-- name: find_ordered_batch gives what an earlier call with this id stored ($1 request)
SELECT batch_id FROM batches WHERE request_id = $1;

-- name: list_batches gives a page with their runs, newest first ($1 time and $2 batch behind which it begins, $3 size)
SELECT batch_id, batches.username AS batch_user, input_file_id, endpoint, completion_window, metadata, batches.created_at AS batch_created_at,
       batches.total AS batch_total, errors, finalized_at, output_file_id, error_file_id, output_expires_after_seconds,
       run_id, runs.username, pool, ordered, scoring_method, state, epoch, step, planned_epoch, is_closed, runs.total,
       suite_version, price, reused_answers, admitted_at, ran_seconds, runs.created_at, started_at, finished_at, deadline, error_reason, error_message, environment, final_counts, dataset_name, expires_at
  FROM batches LEFT JOIN runs USING (run_id)
 WHERE (batches.created_at, batch_id) < ($1::timestamptz, $2::text)
 ORDER BY batches.created_at DESC, batch_id DESC
 LIMIT $3;

-- name: batches_to_finalize gives those whose runs are over and whose files are to be written, the first first ($1 others, $2 most)
SELECT batch_id
  FROM batches JOIN runs USING (run_id)
 WHERE finalized_at IS NULL AND run_id IS NOT NULL AND is_closed AND state IN ('completed', 'failed', 'cancelled')
   AND batch_id <> ALL ($1::text[])
 ORDER BY finished_at
 LIMIT $2;

-- name: finalize_batch names the files of a batch, once; can be repeated ($1 batch, $2 time, $3 output file or null, $4 error file or null)
UPDATE batches
   SET finalized_at = $2, output_file_id = $3, error_file_id = $4
 WHERE batch_id = $1 AND (finalized_at IS NULL OR finalized_at = $2)
RETURNING batch_id;

-- name: unwritten_batch_of_run gives the batch of a run whose files are still to be written ($1 run)
SELECT batch_id FROM batches WHERE run_id = $1 AND finalized_at IS NULL;

-- name: batch_of_run gives the batch that a run is of ($1 run)
SELECT batch_id FROM batches WHERE run_id = $1;
