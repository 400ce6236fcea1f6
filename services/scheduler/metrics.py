"""Metrics of the scheduler.

The queue and the pools are read every few seconds, and every replica shows the same: take the highest. The
counters are the leader's: add them up.
"""

from prometheus_client import Counter, Gauge, Histogram

from services.common.metrics import LONG_SECONDS

DISK_USED = Gauge(
    "proctor_disk_used_ratio",
    "Used share of a disk on which Proctor stores; a disk of more than 100 GiB counts as one of 100 GiB.",
    ["disk"],
)
LEADING = Gauge("proctor_scheduler_leading", "1 while this replica leads.")
QUEUE_RUNS = Gauge("proctor_queue_runs", "Pending and running runs.", ["state", "priority"])
OLDEST_WAIT = Gauge(
    "proctor_queue_oldest_wait_seconds",
    "Wait of the run that has been pending for longest; 0 where none is pending.",
    ["priority"],
)
QUEUE_WAIT = Histogram(
    "proctor_queue_wait_seconds",
    "Time that runs waited for a slot, each time that they got one.",
    ["priority"],
    buckets=LONG_SECONDS,
)
RUN_SLOTS = Gauge("proctor_run_slots", "Maximum number of runs that execute at a time.")
RUNS_FINISHED = Counter(
    "proctor_runs_finished_total",
    "Finished runs, by their state and the reason of a failure.",
    ["state", "reason"],
)
RUN_COST = Counter(
    "proctor_run_cost_total",
    "Cost of finished runs, by their prices. A run that was retried counts with its earlier epochs.",
    ["pool", "currency"],
)
DISPATCHED_SHARDS = Counter("proctor_dispatched_shards_total", "Shards that were sent to a pool.", ["pool"])
RECONCILED_SHARDS = Counter(
    "proctor_reconciled_shards_total", "Shards that were sent again because their messages were lost."
)
WORKERS_DESIRED = Gauge(
    "proctor_pool_workers_desired",
    "Workers that the pool needs for its backlog, whatever its autoscaler allows. KEDA gets the same number.",
    ["pool"],
)
BACKLOG_SAMPLES = Gauge(
    "proctor_pool_backlog_samples",
    "Samples without an outcome, of runs with a slot and of those that get one while a worker loads. "
    "The model of rollouts is `rollouts`.",
    ["pool", "model"],
)
BACKLOG_SECONDS = Gauge(
    "proctor_pool_backlog_seconds",
    "The time that one worker needs for them, at the speed that was measured; none while that is unknown.",
    ["pool", "model"],
)
POOL_WORKERS = Gauge(
    "proctor_pool_workers",
    "Live workers: loading, ready, draining, or without a model (not_loaded).",
    ["pool", "state"],
)
POOL_SAMPLES_IN_FLIGHT = Gauge(
    "proctor_pool_samples_in_flight", "Samples that engines or providers work on.", ["pool"]
)
POOL_CONCURRENCY = Gauge(
    "proctor_pool_concurrency", "Maximum number of samples that the live workers send at a time.", ["pool"]
)
