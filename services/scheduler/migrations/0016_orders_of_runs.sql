-- compatible-from: 0011_run_traces.sql
-- The order of a run is found by the run.
CREATE INDEX rollouts_orders_of_run ON rollouts_orders USING gin (run_ids);
