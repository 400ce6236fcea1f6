"""What an operator can set of results: environment variables that begin with PROCTOR_."""

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict


class ResultsSettings(BaseSettings):
    """Read once, at the start."""

    model_config = SettingsConfigDict(env_prefix="PROCTOR_", frozen=True)

    postgres_dsn: str = Field(default="postgresql://proctor@127.0.0.1:5432/proctor", repr=False)
    nats_url: str = "nats://127.0.0.1:4222"
    # Where the gRPC server listens, and where others dial.
    results_address: str = "127.0.0.1:8083"
    log_level: str = "INFO"

    # A batch is written when it has so many outcomes, or when its first one has waited so long.
    results_batch_outcomes: int = Field(default=1000, ge=1)
    results_linger_seconds: float = Field(default=0.05, ge=0)
    # A message that results holds and does not answer for comes again after this long.
    results_ack_wait_seconds: float = Field(default=10.0, gt=0)
    # Sample sets that were staged and never committed are dropped after this long.
    results_keep_staged_seconds: float = Field(default=3600.0, gt=0)
    results_pool_size: int = Field(default=8, ge=2)
    # How long a call waits for Postgres to come back before it is refused as unavailable.
    results_patience_seconds: float = Field(default=10.0, gt=0)
    results_drain_seconds: float = Field(default=10.0, gt=0)
