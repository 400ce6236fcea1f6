-- compatible-from: 0005_rollouts.sql
-- Code before it counts no GPU seconds, and disturbs nothing.

-- GPU time of a run's recorded outcomes, with that of failures which were asked again. No row: none was used.
CREATE TABLE run_gpu_seconds (
    run_id uuid PRIMARY KEY REFERENCES run_records ON DELETE CASCADE,
    seconds double precision NOT NULL
);
