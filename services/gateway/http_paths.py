"""Where the HTTP interfaces begin."""

BENCHMARKING = "/api/v1/benchmarking"
SUITES = "/api/v1/suites"
MODELS = "/api/v1/models"
ADMIN = "/admin"
