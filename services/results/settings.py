"""Settings of results, read from environment variables."""

from pydantic import Field, SecretStr
from pydantic_settings import BaseSettings

from services.common.shared_settings import (
    DEFAULT_PATIENCE_SECONDS,
    LogLevel,
    MetricsAddress,
    MigrateOnStart,
    NatsCaFile,
    NatsCertificateFile,
    NatsCredentialsFile,
    NatsKeyFile,
    NatsUrl,
    NoticeSeconds,
    PatienceSeconds,
    PostgresDsn,
    ResultsAddress,
    ShardKey,
    TlsCaFile,
    TlsCallers,
    TlsCertificateFile,
    TlsKeyFile,
    TracesEndpoint,
    TracesShare,
    settings_of,
)


class ResultsSettings(BaseSettings):
    """Read once, at the start."""

    model_config = settings_of("results")

    postgres_dsn: PostgresDsn = "postgresql://proctor@127.0.0.1:5432/proctor"
    migrate_on_start: MigrateOnStart = True
    nats_url: NatsUrl = "nats://127.0.0.1:4222"
    nats_credentials_file: NatsCredentialsFile = None
    nats_ca_file: NatsCaFile = None
    nats_certificate_file: NatsCertificateFile = None
    nats_key_file: NatsKeyFile = None
    tls_certificate_file: TlsCertificateFile = None
    tls_key_file: TlsKeyFile = None
    tls_ca_file: TlsCaFile = None
    tls_callers: TlsCallers = ""
    results_address: ResultsAddress = "127.0.0.1:8083"
    shard_key: ShardKey = SecretStr("")
    log_level: LogLevel = "INFO"
    metrics_address: MetricsAddress = ""
    traces_endpoint: TracesEndpoint = ""
    traces_share: TracesShare = 0.01
    notice_seconds: NoticeSeconds = 0.0
    listen_address: str = ""
    """host:port where results listens for gRPC, if it is not the address that others call."""
    health_address: str = ""
    """host:port of the gRPC health service alone, without TLS, for probes that show no certificate."""
    batch_outcomes: int = Field(default=1000, ge=1)
    """Outcomes are written to Postgres in batches of at most this size."""
    linger_seconds: float = Field(default=0.05, ge=0)
    """An incomplete batch is written when its first outcome has waited for this time."""
    ack_wait_seconds: float = Field(default=10.0, gt=0)
    """NATS redelivers outcomes that were not acknowledged within this time."""
    keep_staged_seconds: float = Field(default=3600.0, gt=0)
    """Sample sets that were staged and never committed are deleted after this time."""
    postgres_connections: int = Field(default=8, ge=2)
    """Most connections to Postgres for runs that are planned, closed, compared and deleted."""
    recording_connections: int = Field(default=4, ge=1)
    """Most connections to Postgres for outcomes that are recorded; nothing else uses them."""
    read_connections: int = Field(default=8, ge=1)
    """Most connections to Postgres for what users read, which is so many queries at a time."""
    read_wait_seconds: float = Field(default=5.0, gt=0)
    """A read that has waited this long for its turn is refused (503 with `Retry-After`)."""
    read_timeout_seconds: float = Field(default=30.0, gt=0, le=50)
    """A query of a reader that takes longer is cancelled and refused likewise."""
    close_seconds: float = Field(default=3600.0, gt=0)
    """Figures of a closed run that take longer are left out, and its summary shows that."""
    scoring_processes: int = Field(default=2, ge=1)
    """Most processes that score texts. Each run uses one at a time."""
    patience_seconds: PatienceSeconds = DEFAULT_PATIENCE_SECONDS
    drain_seconds: float = Field(default=10.0, gt=0)
    """Time for open calls and batches to finish after SIGTERM."""
