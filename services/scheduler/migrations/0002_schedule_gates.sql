-- compatible-from: 0001_initial.sql
-- Gates of schedules: each run is held against an earlier one once it has ended.

ALTER TABLE schedules
-- {"base_run_id", "margin_points", "alpha"}; none: its runs are not gated.
ADD COLUMN gate jsonb;

ALTER TABLE schedule_firings
-- Until the gate is decided.
ADD COLUMN awaits_gate boolean NOT NULL DEFAULT false,
-- Empty without a gate, and until then.
ADD COLUMN verdict text NOT NULL DEFAULT '',
ADD COLUMN base_run_id uuid,
ADD COLUMN gate_text text NOT NULL DEFAULT '';

-- What the leader looks through every few seconds.
CREATE INDEX schedule_firings_awaiting ON schedule_firings (due_at) WHERE awaits_gate;

-- Columns of a view can only be added behind those that it has.
CREATE OR REPLACE VIEW schedule_rows WITH (security_invoker = true) AS
SELECT
    schedules.schedule_id, schedules.schedule_number, schedules.username, schedules.project_id, schedules.cron,
    schedules.time_zone, schedules.ordered, schedules.name, schedules.tags, schedules.note, schedules.created_at,
    schedules.next_due_at, schedules.paused_at, schedules.resumed_at, schedules.problem, schedules.tried_at,
    last.due_at, last.fired_at, last.run_ids, last.problem AS firing_problem,
    schedules.gate, last.verdict, last.base_run_id, last.gate_text
FROM schedules
LEFT JOIN LATERAL (
    SELECT due_at, fired_at, run_ids, problem, verdict, base_run_id, gate_text
    FROM schedule_firings
    WHERE schedule_firings.schedule_id = schedules.schedule_id
    ORDER BY due_at DESC
    LIMIT 1
) AS last ON true;
