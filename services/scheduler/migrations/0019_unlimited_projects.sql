-- compatible-from: 0011_run_traces.sql
-- 0 is no limit, over that of the settings.
ALTER TABLE limits
    DROP CONSTRAINT limits_max_stored_bytes_per_project_check,
    ADD CONSTRAINT limits_max_stored_bytes_per_project_check CHECK (max_stored_bytes_per_project >= 0);
