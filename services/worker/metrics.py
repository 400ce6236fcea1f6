"""Metrics of a worker. All have the label `pool`, which is that of the process.

An engine in the process, such as vLLM, adds its own beside them.
"""

from prometheus_client import Counter, Gauge, Histogram

from services.common.metrics import LONG_SECONDS, BatchHistogram

# From 1 ms to 10 s.
_TOKEN_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.2, 0.5, 1, 2.5, 10)
_ANSWER_SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 40, 80, 160, 600)

SAMPLES = Counter(
    "proctor_samples_total",
    "Samples whose outcome was published: answered, or the class of the failure.",
    ["result"],
)
TOKENS = Counter(
    "proctor_tokens_total",
    "Tokens of answers: of prompts and of completions; cached ones are part of the first, reasoning of the "
    "second.",
    ["kind"],
)
ANSWER_SECONDS = BatchHistogram(
    "proctor_answer_duration_seconds",
    "Time of an answer, from the request to its last token.",
    _ANSWER_SECONDS,
)
FIRST_TOKEN_SECONDS = BatchHistogram(
    "proctor_first_token_seconds",
    "Time from the request to the first token, of answers that report it.",
    _ANSWER_SECONDS,
)
BETWEEN_TOKENS_SECONDS = BatchHistogram(
    "proctor_between_tokens_seconds",
    "Mean time between the tokens of an answer after the first, of answers that report it.",
    _TOKEN_SECONDS,
)
SHARDS = Counter(
    "proctor_shards_total",
    "Deliveries of shards by their end: acknowledged, terminated, forwarded or nacked.",
    ["disposition"],
)
SHARD_SECONDS = Histogram(
    "proctor_shard_duration_seconds", "Time from the delivery of a shard to its end.", buckets=LONG_SECONDS
)
REDELIVERIES = Counter(
    "proctor_shard_redeliveries_total",
    "Deliveries of shards after one that ended with a worker or an engine.",
)
RATE_LIMITED = Counter("proctor_rate_limited_requests_total", "Requests that the provider answered with 429.")
REQUEST_RETRIES = Counter(
    "proctor_request_retries_total", "Requests that were sent again after a failure other than a 429."
)
SAMPLES_IN_FLIGHT = Gauge("proctor_worker_samples_in_flight", "Samples that the engine or provider works on.")
CONCURRENCY = Gauge("proctor_worker_concurrency", "Maximum number of samples that a worker sends at a time.")
QUOTA_WAITS = Gauge("proctor_worker_requests_waiting_for_quota", "Requests that wait for their rate limit.")
LOAD_SECONDS = Histogram(
    "proctor_model_load_duration_seconds",
    "Time until a model was loaded or refused.",
    ["result"],
    buckets=LONG_SECONDS,
)
LOADING = Gauge("proctor_worker_model_loading", "1 while a model is loaded.")
KV_CACHE = Gauge(
    "proctor_engine_kv_cache_usage_ratio", "Used share of the KV cache of an engine in the worker."
)
GPU_MEMORY = Gauge(
    "proctor_gpu_memory_bytes",
    "Memory of a GPU of the worker: in use, by any process, and in total. None without NVIDIA's driver.",
    ["gpu", "state"],
)
ENGINE_REQUESTS = Gauge(
    "proctor_engine_requests",
    "Requests in an engine in the worker: running, and waiting for memory.",
    ["state"],
)
