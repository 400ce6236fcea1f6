-- name: list_gated_runs: Return runs to be gated that have completed, as their bases have
-- Runs that failed wait: a retry may complete them.
SELECT g.run_id, r.name, r.username, r.project_id, r.model, g.margin_points, g.alpha, g.base_run_id
FROM run_gates AS g
INNER JOIN runs AS r ON r.run_id = g.run_id
INNER JOIN runs AS b ON b.run_id = g.base_run_id
WHERE g.gate_text = '' AND r.is_closed AND r.state = 'completed' AND b.is_closed AND b.state = 'completed'
ORDER BY r.finished_at
LIMIT 50;

-- name: settle_run_gate: Record what a gate of a run has decided; no row if it was recorded before
UPDATE run_gates
SET verdict = :verdict, gate_text = :gate_text
WHERE run_id = :run_id AND base_run_id = :base_run_id AND margin_points = :margin_points AND gate_text = ''
RETURNING run_id;

-- name: find_gated_run: Return what is told of a run whose gate was decided for a caller
SELECT name, username, project_id, model FROM runs WHERE run_id = :run_id;

-- name: keep_told_gate: Store a gate that failed for a caller, unless the run has as many as it may
INSERT INTO run_gates (run_id, base_run_id, margin_points, alpha, verdict, gate_text)
SELECT r.run_id, b.run_id, :margin_points, :alpha, :verdict, :gate_text
FROM runs AS r
INNER JOIN runs AS b ON b.run_id = :base_run_id
WHERE r.run_id = :run_id AND (SELECT count(*) FROM run_gates AS kept WHERE kept.run_id = :run_id) < :max_gates
ON CONFLICT (run_id, base_run_id, margin_points) DO NOTHING;

-- name: has_gate: Return whether a gate of a run is stored
SELECT EXISTS (
    SELECT FROM run_gates WHERE run_id = :run_id AND base_run_id = :base_run_id AND margin_points = :margin_points
) AS has_gate;
