"""Paths of the HTTP APIs."""

BENCHMARKING = "/api/v1/benchmarking"
SUITES = "/api/v1/suites"
ROLLOUTS = "/api/v1/rollouts"
ROLLOUT_TASKS = f"{ROLLOUTS}/tasks"
ARTIFACTS = f"{ROLLOUTS}/runs/{{job_id}}/{{sample}}/{{rollout}}/artifacts"
QUEUE = "/api/v1/queue"
LIMITS = f"{QUEUE}/limits"
MODELS = "/api/v1/models"
IMPORTS = "/api/v1/imports"
ME = "/api/v1/me"
CHANGES = "/api/v1/changes"
AUDIT = "/api/v1/audit"
STORAGE = "/api/v1/storage"
KEYS = "/api/v1/keys"
PROJECTS = "/api/v1/projects"
NOTICES = "/api/v1/notices"
NOTICE_TARGETS = f"{NOTICES}/targets"
SCHEDULES = "/api/v1/schedules"
ADMIN = "/admin"
DATASETS = f"{ADMIN}/datasets"
UPLOADS = f"{DATASETS}/upload"
UPLOAD_PREVIEWS = f"{UPLOADS}/preview"
MAPPINGS = f"{DATASETS}/mappings"
# Pages whose forms upload.
DATASETS_PAGE = "/datasets"
SUITE_PAGES = ("/suites", "/suites/check")
ORDER_PAGE = "/runs/new"
# Forms that need no key: they change cookies.
PUBLIC_FORMS = ("/sign-in", "/sign-out", "/theme")
DATASET_RUNS = f"{ADMIN}/benchmarks"
# The base_url of clients of the OpenAI protocol.
OPENAI = "/v1"
FILES = f"{OPENAI}/files"
BATCHES = f"{OPENAI}/batches"
OPENAI_MODELS = f"{OPENAI}/models"

# Of the query of an address.
MAX_QUERY_BYTES = 8 * 1024

# They change nothing.
READING_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
METHODS = READING_METHODS | {"POST", "PUT", "PATCH", "DELETE"}
PROBES = frozenset({"/healthz", "/readyz"})

DOCS = "/docs"
ASSETS = "/assets"
_APIS = ("/api/", f"{ADMIN}/", f"{OPENAI}/")
_STATIC = (DOCS, "/openapi.json", f"{ASSETS}/")


def is_page(path: str) -> bool:
    """A path for people with a browser."""
    return path not in PROBES and not path.startswith((*_STATIC, *_APIS))
