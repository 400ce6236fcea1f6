-- name: list_pool_demands: Return what each pool needs and when that was computed
SELECT pool, workers, backlog_samples, speeds, load_seconds, computed_at
FROM pool_demands;

-- name: store_pool_demand: Store what a pool needs
INSERT INTO pool_demands (pool, workers, backlog_samples, speeds, load_seconds, computed_at)
VALUES (:pool, :workers, :backlog_samples, :speeds, :load_seconds, :computed_at)
ON CONFLICT (pool) DO UPDATE
SET workers = excluded.workers, backlog_samples = excluded.backlog_samples, speeds = excluded.speeds,
    load_seconds = excluded.load_seconds, computed_at = excluded.computed_at;
