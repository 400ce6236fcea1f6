"""Settings of results, read from environment variables."""

from pydantic import Field

from services.common.shared_settings import (
    ObjectStoreUrl,
    ResultsAddress,
    SchemaServiceSettings,
    TaskCode,
    TaskCodePackages,
    settings_of,
)


class ResultsSettings(SchemaServiceSettings):
    """Read once, at the start."""

    model_config = settings_of("results")

    results_address: ResultsAddress = "127.0.0.1:8083"
    task_code: TaskCode = "off"
    task_code_packages: TaskCodePackages = None
    object_store: ObjectStoreUrl = ""
    listen_address: str = ""
    """host:port where results listens for gRPC, if it is not the address that others call."""
    health_address: str = ""
    """host:port of the gRPC health service alone, without TLS, for probes that show no certificate."""
    max_outcomes_per_write: int = Field(default=1000, ge=1)
    """Maximum number of outcomes that are written to Postgres at a time."""
    linger_seconds: float = Field(default=0.05, ge=0)
    """Fewer outcomes are written when the first has waited for this time, four times as long under load."""
    ack_wait_seconds: float = Field(default=10.0, gt=0)
    """NATS redelivers outcomes that were not acknowledged within this time."""
    staged_retention_seconds: float = Field(default=3600.0, gt=0)
    """Sample sets that were staged and never committed are deleted after this time."""
    postgres_connections: int = Field(default=8, ge=2)
    """Maximum number of connections to Postgres for runs that are planned, closed, compared and deleted."""
    recording_connections: int = Field(default=4, ge=1)
    """Maximum number of connections to Postgres for outcomes that are recorded; nothing else uses them."""
    read_connections: int = Field(default=8, ge=1)
    """Maximum number of connections to Postgres for what users read. Each serves one query at a time."""
    read_wait_seconds: float = Field(default=5.0, gt=0)
    """A read that has waited this long for its turn is refused (503 with `Retry-After`)."""
    read_timeout_seconds: float = Field(default=30.0, gt=0, le=50)
    """A query of a reader that takes longer is cancelled and refused (503 with `Retry-After`)."""
    close_timeout_seconds: float = Field(default=3600.0, gt=0)
    """Figures that take longer when a run is closed are left out, and its summary shows that."""
    scoring_processes: int = Field(default=2, ge=1)
    """Maximum number of processes that score texts. Each run uses one at a time."""
    drain_seconds: float = Field(default=10.0, gt=0)
    """Time to stop after SIGTERM: calls and outcome batches finish; what cannot be reached is given up."""
