"""Where the HTTP interfaces begin."""

BENCHMARKING = "/api/v1/benchmarking"
SUITES = "/api/v1/suites"
QUEUE = "/api/v1/queue"
LIMITS = f"{QUEUE}/limits"
MODELS = "/api/v1/models"
ADMIN = "/admin"
DATASETS = f"{ADMIN}/datasets"
UPLOADS = f"{DATASETS}/upload"
DATASET_RUNS = f"{ADMIN}/benchmarks"
# Where clients of the OpenAI protocol point their base_url.
OPENAI = "/v1"
FILES = f"{OPENAI}/files"
BATCHES = f"{OPENAI}/batches"
OPENAI_MODELS = f"{OPENAI}/models"

# Everything below counts as a request of its user, but what an operator needs who has made too many.
COUNTED = ("/api/", f"{ADMIN}/", f"{OPENAI}/")
UNCOUNTED = frozenset({LIMITS})
