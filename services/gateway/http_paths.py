"""Where the HTTP interfaces begin."""

BENCHMARKING = "/api/v1/benchmarking"
SUITES = "/api/v1/suites"
