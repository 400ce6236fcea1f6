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
