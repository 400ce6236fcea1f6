"""Metrics of the gateway."""

from prometheus_client import Gauge, Histogram

from services.common.metrics import SECONDS

HTTP_SECONDS = Histogram(
    "proctor_http_request_duration_seconds",
    "Time of HTTP requests, by route, method and status. Sockets count with status 101, when they end.",
    ["route", "method", "status"],
    buckets=SECONDS,
)
HTTP_IN_PROGRESS = Gauge("proctor_http_requests_in_progress", "HTTP requests and sockets in progress.")
BACKEND_READY = Gauge(
    "proctor_backend_ready", "1 while the backend answers that it serves, 0 otherwise.", ["backend"]
)
