-- compatible-from: 0016_frozen_runs_and_wrong_marks.sql
-- Columns have the names that contracts and code have for the same thing. No code before it can use the schema.

-- Results takes no more outcomes from then on. A run is closed when its summary is stored, which is later.
ALTER TABLE run_records RENAME COLUMN closed_at TO frozen_at;

-- As in contracts: an answer can be wrong without a mark.
ALTER TABLE mark_changes RENAME COLUMN is_wrong TO is_marked_wrong;
