"""Where the HTTP interfaces begin."""

BENCHMARKING = "/api/v1/benchmarking"
SUITES = "/api/v1/suites"
QUEUE = "/api/v1/queue"
MODELS = "/api/v1/models"
ADMIN = "/admin"
DATASETS = f"{ADMIN}/datasets"
UPLOADS = f"{DATASETS}/upload"
