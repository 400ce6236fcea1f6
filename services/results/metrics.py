"""Metrics of results."""

from prometheus_client import Counter, Histogram

from services.common.metrics import LONG_SECONDS, SECONDS

OUTCOMES = Counter(
    "proctor_outcomes_total",
    "Outcomes that were received: recorded, repeated (known or superseded), and of unknown samples.",
    ["result"],
)
OUTCOME_REDELIVERIES = Counter(
    "proctor_outcome_redeliveries_total", "Messages of outcomes that NATS delivered more than once."
)
UNRECORDED_MESSAGES = Counter(
    "proctor_outcome_messages_unrecorded_total",
    "Times that a message of outcomes went back to NATS: an error that is not of its answers kept them from "
    "being recorded.",
)
RECORDING_SECONDS = Histogram(
    "proctor_recording_duration_seconds", "Time to score and record a batch of messages.", buckets=SECONDS
)
RECORDING_LAG_SECONDS = Histogram(
    "proctor_recording_lag_seconds",
    "Time from the publication of the oldest message of a batch until its outcomes were recorded.",
    buckets=(0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800),
)
CLOSE_SECONDS = Histogram(
    "proctor_close_duration_seconds", "Time to compute and store the summary of a run.", buckets=LONG_SECONDS
)
