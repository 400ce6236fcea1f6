"""Settings of the scheduler, read from environment variables."""

from os import getuid
from pathlib import Path
from tempfile import gettempdir
from typing import Literal

from pydantic import Field, SecretStr

from proctor.values.messaging import OUTCOME_STREAM_BYTES, WORK_STREAM_BYTES
from proctor.values.priority import Priority
from proctor.values.run import DEFAULT_MAX_FAILED_SHARE, DEFAULT_READS_PER_MINUTE, DEFAULT_REQUESTS_PER_MINUTE
from services.common.shared_settings import (
    AllowedBaseUrls,
    DataDir,
    ObjectStoreUrl,
    PoolsFilePath,
    ResultsAddress,
    SchedulerAddress,
    SchemaServiceSettings,
    TaskCode,
    TaskCodePackages,
    settings_of,
)

_OWN_SUITES = Path(__file__).parents[2] / "suites"
_SHIPPED_PRICES = Path(__file__).parent / "pricing" / "prices.yaml"


class SchedulerSettings(SchemaServiceSettings):
    """Read once, at the start. The limits of the queue can be changed while the system runs."""

    model_config = settings_of("scheduler")

    scheduler_address: SchedulerAddress = "127.0.0.1:8082"
    results_address: ResultsAddress = "127.0.0.1:8083"
    pools_file: PoolsFilePath = Path("pools.yaml")
    data_dir: DataDir = None
    task_code: TaskCode = "off"
    task_code_packages: TaskCodePackages = None
    listen_address: str = ""
    """host:port where the scheduler listens for gRPC, if it is not the address that others call."""
    health_address: str = ""
    """host:port of the gRPC health service alone, without TLS, for probes that show no certificate."""
    prices_file: Path = _SHIPPED_PRICES
    """YAML file with the prices of models per million tokens, instead of those that come with Proctor. It is
    read again when it changes."""
    suites_dir: Path = _OWN_SUITES
    """Folder with the installed suites."""
    hub_token_datasets: frozenset[str] = frozenset()
    """JSON list of hub data sets that suites may read with `HF_TOKEN`; others are read without a token."""
    max_hub_bytes: int = Field(default=8 * 1024**3, ge=1)
    """Largest hub data set that is downloaded, all its splits together."""
    # With the user's id: another account's folder of this name could not be written.
    hub_cache_dir: Path = Path(gettempdir()) / f"proctor-hub-{getuid()}"
    """Folder of hub data sets that were downloaded. Any user's suite reads what lies in it, so it is not the
    folder of the account that the scheduler runs as. It may be emptied at any time."""
    suite_cache_dir: Path = Path(gettempdir()) / f"proctor-suites-{getuid()}"
    """Folder for unpacked data files of users' suites. It may be emptied at any time."""
    object_store: ObjectStoreUrl = (Path(gettempdir()) / f"proctor-objects-{getuid()}").as_uri()
    allowed_base_urls: AllowedBaseUrls = ""

    max_running_runs: int = Field(default=3, ge=1)
    """Runs that execute at a time, in the whole system."""
    max_pending_runs_per_user: int = Field(default=10, ge=1)
    """Pending and paused runs of one user."""
    max_requests_per_minute: int = Field(default=DEFAULT_REQUESTS_PER_MINUTE, ge=1)
    """Orders, uploads and changes of one user per minute. Reads have a limit of their own."""
    max_reads_per_minute: int = Field(default=DEFAULT_READS_PER_MINUTE, ge=0)
    """Reads of one user per minute. 0 means no limit."""
    run_time_limit_seconds: float = Field(default=3 * 3600.0, gt=0)
    """Time that a run may execute before it fails as timed out."""
    min_run_time_seconds: float = Field(default=60.0, ge=0)
    """Time that a run executes before a run of equal priority may preempt it; less than 5 counts as 5.
    A higher priority preempts at once."""
    max_stored_bytes_per_user: int = Field(default=100_000_000_000, ge=1)
    """Bytes that one user may store."""
    max_stored_files_per_user: int = Field(default=10_000, ge=1)
    """Files that one user may store: data sets, files, batch outputs, versions of suites, sets of tasks and
    runs with artifacts."""
    max_stored_rows_per_user: int = Field(default=200_000_000, ge=1)
    """Rows of the data sets and files of one user."""
    max_stored_bytes_per_project: int = Field(default=0, ge=0)
    """Bytes of data sets, files, batch outputs, suites and artifacts of one project; 0 means no limit."""
    highest_priorities: dict[str, Priority] = Field(default_factory=dict)
    """Highest priority per user, as {"*": "normal", "ann": "high"}; "*" is every other user."""

    audit_retention_days: float = Field(default=365.0, gt=0)
    """Days for which records of the audit are kept: who did what. Older ones are deleted."""
    max_audit_records: int = Field(default=1_000_000, ge=1)
    """Maximum number of records of each outcome; the oldest are deleted first. Refusals: at most 100,000."""

    archive_after_days: int = Field(default=0, ge=0, le=36_500)
    """Days after which the leader archives the answers of a closed run; 0 means never. Projects may set
    their own."""
    archive_over_bytes: int = Field(default=0, ge=0, le=10**15)
    """Bytes in Postgres of the answers of closed runs beyond which the leader archives the oldest; 0 means
    never. Projects may set their own, and then do not count here."""

    notice_networks: str = ""
    """Networks beside the public ones in which webhooks may be, separated by commas: "10.0.0.0/8"."""
    public_url: str = ""
    """Address of the pages as users' browsers call it, for links in notices: https://proctor.example.org."""
    mail_host: str = ""
    """Server that sends notices by mail; without one there is no mail."""
    mail_port: int = Field(default=587, ge=1, le=65535)
    """Port of the mail server."""
    mail_security: Literal["starttls", "tls", "none"] = "starttls"
    """How the mail server is spoken to; certificates are checked."""
    mail_user: str = ""
    """User at the mail server; none if empty."""
    mail_password: SecretStr = SecretStr("")
    """Password at the mail server."""
    mail_sender: str = "proctor@localhost"
    """Address that mail comes from."""
    mail_domains: str = ""
    """Domains that mail may go to, separated by commas: "example.org". None: no mail."""

    postgres_disk_bytes: int = Field(default=0, ge=0)
    """Bytes that Postgres may fill with its databases, so that work stops before its disk is full; 0 means
    unknown. The disk of an object store in a folder is looked at without a setting."""
    disk_share_for_uploads: float = Field(default=0.8, gt=0, le=1)
    """Used share of a disk from which uploads and restorations are refused. A disk of more than 100 GiB
    counts as one of 100 GiB."""
    disk_share_for_new_runs: float = Field(default=0.9, gt=0, le=1)
    """Used share of a disk from which no pending run starts."""
    disk_share_for_dispatch: float = Field(default=0.95, gt=0, le=1)
    """Used share of a disk from which running runs get no work."""

    max_failed_share: float = Field(default=DEFAULT_MAX_FAILED_SHARE, ge=0, le=1)
    """A run with a larger share of failed samples has failed."""
    max_request_retry_share: float = Field(default=0.2, ge=0)
    """Request retries that a run may use after failures, per sample. Every run may use at least a hundred."""

    stream_replicas: int = Field(default=1, ge=1, le=5)
    """Replicas of the streams and buckets that are made in NATS. Those that exist keep theirs."""
    work_stream_bytes: int = Field(default=WORK_STREAM_BYTES, ge=1024**2)
    """Size of the stream of each pool when it is made; full, it takes no further shards. The streams are made
    smaller where NATS has no room for their sizes."""
    outcome_stream_bytes: int = Field(default=OUTCOME_STREAM_BYTES, ge=1024**2)
    """Size of the stream OUTCOMES when it is made; full, workers wait."""

    min_dispatched_shards: int = Field(default=4, ge=1)
    """Minimum number of shards of a run that are dispatched at a time."""
    max_dispatched_shards: int = Field(default=256, ge=1)
    """Maximum number of shards of a run that are dispatched at a time."""
    dispatch_seconds_ahead: float = Field(default=1.0, gt=0)
    """A run has as many dispatched shards as the workers finish in this time, within these bounds."""
    reconcile_quiet_seconds: float = Field(default=3.0, gt=0)
    """A run without progress and without messages in flight for this time is searched for lost shards."""

    max_dataset_bytes: int = Field(default=8 * 1024**3, ge=1)
    """Largest file of a data set, as uploaded."""
    max_decompressed_dataset_bytes: int = Field(default=64 * 1024**3, ge=1)
    """Largest file of a data set, decompressed."""
    max_dataset_rows: int = Field(default=50_000_000, ge=1)
    """Maximum number of rows of a data set."""
    max_uploads: int = Field(default=8, ge=1)
    """Uploads at a time, of all users."""
    max_uploads_per_user: int = Field(default=4, ge=1)
    """Uploads at a time, of one user."""
    upload_timeout_seconds: float = Field(default=3600.0, gt=0)
    """Time limit of one upload."""
    # This and the lines are the limits of OpenAI's batches.
    max_batch_file_bytes: int = Field(default=200 * 1000**2, ge=1)
    """Largest file of a batch."""
    max_tasks_bytes: int = Field(default=256 * 1024**2, ge=1)
    """Largest set of tasks for rollouts, compressed."""
    max_batch_lines: int = Field(default=50_000, ge=1)
    """Maximum number of lines of a batch."""

    scale_backlog_seconds: float = Field(default=600.0, gt=0)
    """Time in which the workers of a pool should finish its backlog, from when new ones have loaded."""
    scale_load_seconds: float = Field(default=120.0, ge=0)
    """Time that an engine is assumed to take to load a model, until one has been measured."""
    set_deletion_costs: bool = False
    """Whether the leader sets the `pod-deletion-cost` of workers by how much they do, so that a pool that
    shrinks loses the emptiest first. Its service account needs the verb patch on pods."""
    kubernetes_url: str = Field(default="https://kubernetes.default.svc", pattern=r"^https://\S+$")
    """API server of Kubernetes, for the deletion costs of pods."""
    list_models_wait_seconds: float = Field(default=2.0, gt=0)
    """Time that a list of models waits for the answer of a pool."""
    postgres_connections: int = Field(default=8, ge=2)
    """Maximum number of connections to Postgres for everything but lists and searches."""
    read_connections: int = Field(default=4, ge=1)
    """Maximum number of connections to Postgres for lists and searches. Each serves one query at a time."""
    read_wait_seconds: float = Field(default=5.0, gt=0)
    """A list or search that has waited this long for its turn is refused (503 with `Retry-After`)."""
    read_timeout_seconds: float = Field(default=30.0, gt=0, le=50)
    """A query of a list or search that takes longer is cancelled and refused (503 with `Retry-After`)."""
    drain_seconds: float = Field(default=5.0, gt=0)
    """Time to stop after SIGTERM: open calls finish, and what cannot be reached is given up."""
