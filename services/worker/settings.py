"""What an operator can set of a worker: environment variables that begin with PROCTOR_."""

from pathlib import Path

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict


class WorkerSettings(BaseSettings):
    """Read once, at the start. Keys of providers are read from the variable that the pools file names."""

    model_config = SettingsConfigDict(env_prefix="PROCTOR_", frozen=True)

    nats_url: str = "nats://127.0.0.1:4222"
    pools_file: Path = Path("pools.yaml")
    worker_pool: str = "local"
    worker_health_address: str = "127.0.0.1:8084"
    log_level: str = "INFO"
    # A message that is not kept for this long is delivered to another worker.
    work_ack_wait_seconds: float = Field(default=15.0, ge=1)
    # Tries of a sample after failures of the provider; rate limits are tried until the run's deadline.
    worker_max_tries: int = Field(default=8, ge=1)
    worker_request_timeout_seconds: float = Field(default=600.0, gt=0)
    # How long what is asked may go on after SIGTERM before it is handed to another worker.
    worker_drain_seconds: float = Field(default=20.0, ge=0)
    # How long an idle worker, and one whose own model has work, stay before they turn to another model.
    worker_swap_after_seconds: float = Field(default=2.0, gt=0)
    worker_min_stay_seconds: float = Field(default=60.0, gt=0)
    worker_retry_load_seconds: float = Field(default=60.0, gt=0)
    # How long listing the models of the pool may take.
    worker_list_seconds: float = Field(default=8.0, gt=0)
    worker_heartbeat_seconds: float = Field(default=3.0, gt=0)
