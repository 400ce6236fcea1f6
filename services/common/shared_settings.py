"""Settings that several services read under one name, so that a deployment sets each of them once."""

from pathlib import Path
from typing import Annotated

from pydantic import Field, SecretStr
from pydantic_settings import SettingsConfigDict

PostgresDsn = Annotated[
    str,
    Field(
        validation_alias="PROCTOR_POSTGRES_DSN",
        description="DSN of Postgres. Each service has a schema of its own in the database.",
        repr=False,
    ),
]
NatsUrl = Annotated[
    str,
    Field(
        validation_alias="PROCTOR_NATS_URL",
        description="URL of NATS, which needs JetStream. Servers of a cluster are separated by commas.",
    ),
]
PoolsFilePath = Annotated[
    Path,
    Field(
        validation_alias="PROCTOR_POOLS_FILE",
        description="YAML file with the pools, their models and the aliases of models.",
    ),
]
AllowedBaseUrls = Annotated[
    str,
    Field(
        validation_alias="PROCTOR_ALLOWED_BASE_URLS",
        description="Servers that an order may name by `base_url`, separated by commas; each includes all "
        "paths below it. The scheduler checks each order, and workers check each server that they ask.",
    ),
]
PatienceSeconds = Annotated[
    float,
    Field(
        validation_alias="PROCTOR_POSTGRES_PATIENCE_SECONDS",
        gt=0,
        description="A call waits this long for Postgres to return before it fails as unavailable.",
    ),
]
# Also for a session that no settings are read for.
DEFAULT_PATIENCE_SECONDS = 10.0
ShardKey = Annotated[
    SecretStr,
    Field(
        validation_alias="PROCTOR_SHARD_KEY",
        description="Secret of the scheduler and of results: it proves that outcomes are of shards that were "
        "dispatched. Without it any process that can publish to NATS can have outcomes recorded.",
    ),
]
SchedulerAddress = Annotated[
    str,
    Field(
        validation_alias="PROCTOR_SCHEDULER_ADDRESS",
        description="host:port where the gateway calls the scheduler; a name may stand for several "
        "replicas. The scheduler listens there unless PROCTOR_SCHEDULER_LISTEN_ADDRESS is set.",
    ),
]
ResultsAddress = Annotated[
    str,
    Field(
        validation_alias="PROCTOR_RESULTS_ADDRESS",
        description="host:port where other services call results; a name may stand for several replicas. "
        "Results listens there unless PROCTOR_RESULTS_LISTEN_ADDRESS is set.",
    ),
]
DataDir = Annotated[
    Path | None,
    Field(
        validation_alias="PROCTOR_DATA_DIR",
        description="Local mirror of hub data sets: a folder with a `mirror.yaml`.",
    ),
]
MigrateOnStart = Annotated[
    bool,
    Field(
        validation_alias="PROCTOR_MIGRATE_ON_START",
        description="Whether scheduler and results bring their schemas up to date when they start. If not, "
        "`python -m services.scheduler migrate` does (and `services.results`), as a role that may.",
    ),
]
NatsCredentialsFile = Annotated[
    Path | None,
    Field(
        validation_alias="PROCTOR_NATS_CREDENTIALS_FILE",
        description="File with the JWT and the seed of the service's user of NATS, as `nsc` writes it.",
    ),
]
NatsCaFile = Annotated[
    Path | None,
    Field(
        validation_alias="PROCTOR_NATS_CA_FILE",
        description="PEM file of the authorities by which NATS is verified. With it the connection is "
        "encrypted, as it is with a URL that begins with `tls://`.",
    ),
]
NatsCertificateFile = Annotated[
    Path | None,
    Field(
        validation_alias="PROCTOR_NATS_CERTIFICATE_FILE",
        description="PEM file of the certificate that the service shows to NATS, with its key unless "
        "PROCTOR_NATS_KEY_FILE is set. The files are read at each connection, so they may be renewed.",
    ),
]
NatsKeyFile = Annotated[
    Path | None,
    Field(
        validation_alias="PROCTOR_NATS_KEY_FILE",
        description="PEM file of the key of that certificate, where it is a file of its own.",
    ),
]
TlsCertificateFile = Annotated[
    Path | None,
    Field(
        validation_alias="PROCTOR_TLS_CERTIFICATE_FILE",
        description="PEM file of the certificate that the service shows to other services (mTLS), with its "
        "chain. It needs the two files below. Renewed files are read without a restart.",
    ),
]
TlsKeyFile = Annotated[
    Path | None,
    Field(validation_alias="PROCTOR_TLS_KEY_FILE", description="PEM file of the key of that certificate."),
]
TlsCaFile = Annotated[
    Path | None,
    Field(
        validation_alias="PROCTOR_TLS_CA_FILE",
        description="PEM file of the authorities by which other services are verified.",
    ),
]
TlsCallers = Annotated[
    str,
    Field(
        validation_alias="PROCTOR_TLS_CALLERS",
        description="DNS names, separated by commas, of which the certificate of a caller needs one. Without "
        "them each certificate of the authorities may call.",
    ),
]
MetricsAddress = Annotated[
    str,
    Field(
        validation_alias="PROCTOR_METRICS_ADDRESS",
        description="host:port where the service answers HTTP with its metrics, as Prometheus reads them. "
        "They are not served unless it is set.",
    ),
]
TracesEndpoint = Annotated[
    str,
    Field(
        validation_alias="PROCTOR_TRACES_ENDPOINT",
        pattern=r"^(https?://\S+)?$",
        description="Collector of OpenTelemetry that gets the traces over OTLP (gRPC), as "
        "`http://collector:4317`; there are none unless it is set.",
    ),
]
TracesShare = Annotated[
    float,
    Field(
        validation_alias="PROCTOR_TRACES_SHARE",
        ge=0,
        le=1,
        description="Share of the requests to the gateway that are traced, with the runs they order.",
    ),
]
NoticeSeconds = Annotated[
    float,
    Field(
        validation_alias="PROCTOR_NOTICE_SECONDS",
        ge=0,
        description="Time that a service goes on serving after SIGTERM while its health checks fail, so that "
        "load balancers stop sending to it.",
    ),
]
LogLevel = Annotated[
    str, Field(validation_alias="PROCTOR_LOG_LEVEL", description="DEBUG, INFO, WARNING or ERROR.")
]


def settings_of(service: str) -> SettingsConfigDict:
    """Variables with the prefix of the service. The text below a field describes it in the reference."""
    return SettingsConfigDict(
        env_prefix=f"PROCTOR_{service.upper()}_",
        frozen=True,
        populate_by_name=True,
        use_attribute_docstrings=True,
    )
