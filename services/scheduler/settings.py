"""What an operator can set of the scheduler: environment variables that begin with PROCTOR_."""

from os import getuid
from pathlib import Path
from tempfile import gettempdir
from typing import Literal

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict

_OWN_SUITES = Path(__file__).parents[2] / "suites"
_OWN_PRICES = Path(__file__).parent / "prices" / "prices.yaml"


class SchedulerSettings(BaseSettings):
    """Read once, at the start."""

    model_config = SettingsConfigDict(env_prefix="PROCTOR_", frozen=True)

    postgres_dsn: str = Field(default="postgresql://proctor@127.0.0.1:5432/proctor", repr=False)
    nats_url: str = "nats://127.0.0.1:4222"
    # Where the gRPC server listens, and where others dial.
    scheduler_address: str = "127.0.0.1:8082"
    results_address: str = "127.0.0.1:8083"
    pools_file: Path = Path("pools.yaml")
    # What tokens of models cost; read again when it changes.
    prices_file: Path = _OWN_PRICES
    suites_dir: Path = _OWN_SUITES
    # Where the data files of users' suites are unpacked; may be emptied at any time.
    suite_cache_dir: Path = Path(gettempdir()) / f"proctor-suites-{getuid()}"
    # A local mirror of hub data sets, with its mirror.yaml.
    data_dir: Path | None = None
    # Where data sets lie: file:///…, s3://bucket/…, gs://bucket/… or az://container/…; credentials are read
    # from the environment, as the own tools of each cloud do.
    object_store: str = (Path(gettempdir()) / f"proctor-objects-{getuid()}").as_uri()
    log_level: str = "INFO"
    # Servers that an order may name by base_url, each with all below it; between commas. None by default.
    allowed_base_urls: str = ""

    # These limits hold until they are changed while the system runs.
    max_running_runs: int = Field(default=3, ge=1)
    max_pending_runs_per_user: int = Field(default=10, ge=1)
    max_requests_per_minute: int = Field(default=100, ge=1)
    run_time_limit_seconds: float = Field(default=3 * 3600.0, gt=0)
    # A run keeps its place so long before it has to let a run of another user go first.
    min_run_time_seconds: float = Field(default=60.0, ge=0)
    # The highest priority that a user may ask for, as {"*": "normal", "ann": "high"}; "*" is everybody else.
    highest_priorities: dict[str, Literal["high", "normal", "low"]] = Field(default_factory=dict)

    # A run with a larger share of machinery failures has failed.
    max_failed_share: float = Field(default=0.05, ge=0, le=1)
    # Requests of a run that may be sent again after failures, by the sample; a hundred in any case.
    max_retried_share: float = Field(default=0.2, ge=0)

    # Shards of a run on the wire: at least, at most, and what its workers get through in this time.
    dispatch_floor_shards: int = Field(default=4, ge=1)
    dispatch_ceiling_shards: int = Field(default=256, ge=1)
    dispatch_seconds_ahead: float = Field(default=1.0, gt=0)
    # Without progress for so long, and without a message on its way, a run is searched for what is lost.
    reconcile_quiet_seconds: float = Field(default=3.0, gt=0)

    # Uploads of data sets: bytes as they come and unpacked, rows; how many at a time, how long one may take.
    max_upload_bytes: int = Field(default=8 * 1024**3, ge=1)
    max_unpacked_bytes: int = Field(default=64 * 1024**3, ge=1)
    max_dataset_rows: int = Field(default=50_000_000, ge=1)
    max_uploads: int = Field(default=8, ge=1)
    max_upload_seconds: float = Field(default=3600.0, gt=0)
    # Files of batches: their bytes, and their lines.
    max_batch_file_bytes: int = Field(default=200 * 1000**2, ge=1)
    max_batch_lines: int = Field(default=50_000, ge=1)

    # How long one who lists models waits for a pool to tell of its own.
    list_models_wait_seconds: float = Field(default=2.0, gt=0)

    scheduler_pool_size: int = Field(default=8, ge=2)
    scheduler_drain_seconds: float = Field(default=5.0, gt=0)
