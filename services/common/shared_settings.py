"""Settings that several services read under one name, so that a deployment sets each of them once."""

import string
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict


def checked_address(address: str) -> str:
    """Raises ValueError for an IPv6 address without brackets: its end may be a port or a part of it."""
    host, _, _ = address.rpartition(":")
    if ":" in host and set(host) <= {":", *string.hexdigits}:
        raise ValueError("an IPv6 address must stand in brackets, such as [::1]:8080")
    return address


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
# Also for a session that no settings are read for.
DEFAULT_RETRY_SECONDS = 10.0
SchedulerAddress = Annotated[
    str,
    AfterValidator(checked_address),
    Field(
        validation_alias="PROCTOR_SCHEDULER_ADDRESS",
        description="host:port where the gateway calls the scheduler; a name may stand for several "
        "replicas. The scheduler listens there unless PROCTOR_SCHEDULER_LISTEN_ADDRESS is set.",
    ),
]
ResultsAddress = Annotated[
    str,
    AfterValidator(checked_address),
    Field(
        validation_alias="PROCTOR_RESULTS_ADDRESS",
        description="host:port where other services call results; a name may stand for several replicas. "
        "Results listens there unless PROCTOR_RESULTS_LISTEN_ADDRESS is set.",
    ),
]
ObjectStoreUrl = Annotated[
    str,
    Field(
        validation_alias="PROCTOR_SCHEDULER_OBJECT_STORE",
        description="Store of uploaded files and archived runs: file:///…, s3://bucket/…, gs://bucket/… or "
        "az://container/…. Credentials are read from the environment, by the rules of each cloud's tools. "
        "Scheduler and results need the same; results archives no run unless it is set.",
    ),
]
DataDir = Annotated[
    Path | None,
    Field(
        validation_alias="PROCTOR_DATA_DIR",
        description="Local mirror of hub data sets: a folder with a `mirror.yaml`.",
    ),
]
TaskCode = Annotated[
    Literal["off", "sandbox"],
    Field(
        validation_alias="PROCTOR_TASK_CODE",
        description="Whether Python code of tasks, which `!function` names, makes their rows and scores "
        "their answers: `sandbox` executes it on the machines of the scheduler and of results in sandboxes "
        "of bubblewrap, without a network.",
    ),
]
TaskCodePackages = Annotated[
    Path | None,
    Field(
        validation_alias="PROCTOR_TASK_CODE_PACKAGES",
        description="Folder with the packages that code of tasks may import, as `pip install --target` makes "
        "it.",
    ),
]
TlsCertificateFile = Annotated[
    Path | None,
    Field(
        validation_alias="PROCTOR_TLS_CERTIFICATE_FILE",
        description="PEM file of the certificate that the service shows to other services (mTLS), with its "
        "chain. It needs PROCTOR_TLS_KEY_FILE and PROCTOR_TLS_CA_FILE. Renewed files are read without a "
        "restart.",
    ),
]
TlsKeyFile = Annotated[
    Path | None,
    Field(
        validation_alias="PROCTOR_TLS_KEY_FILE",
        description="PEM file of the key of the certificate that the service shows to other services.",
    ),
]
TlsCaFile = Annotated[
    Path | None,
    Field(
        validation_alias="PROCTOR_TLS_CA_FILE",
        description="PEM file of the authorities by which other services are verified.",
    ),
]
CallerKey = Annotated[
    SecretStr,
    Field(
        validation_alias="PROCTOR_CALLER_KEY",
        description="Secret of gateway, scheduler and results, of 16 characters or more. By it the gateway "
        "signs whom it calls for, and the others take no call without; none of them starts without it.",
    ),
]


# The text below a field describes it in the reference.
_FORM = SettingsConfigDict(frozen=True, populate_by_name=True, use_attribute_docstrings=True)


class ServiceSettings(BaseSettings):
    """Settings of every service."""

    model_config = _FORM

    log_level: str = Field(default="INFO", validation_alias="PROCTOR_LOG_LEVEL")
    """DEBUG, INFO, WARNING or ERROR."""
    metrics_address: str = Field(default="", validation_alias="PROCTOR_METRICS_ADDRESS")
    """host:port where the service answers HTTP with its metrics, as Prometheus reads them. They are not
    served unless it is set."""
    traces_endpoint: str = Field(
        default="", validation_alias="PROCTOR_TRACES_ENDPOINT", pattern=r"^(https?://\S+)?$"
    )
    """Collector of OpenTelemetry that gets the traces over OTLP (gRPC), as `http://collector:4317`;
    tracing is off unless it is set."""
    traces_share: float = Field(default=0.01, validation_alias="PROCTOR_TRACES_SHARE", ge=0, le=1)
    """Share of the requests to the gateway that are traced, with the runs they order."""
    shutdown_delay_seconds: float = Field(
        default=0.0, validation_alias="PROCTOR_SHUTDOWN_DELAY_SECONDS", ge=0
    )
    """Time that a service goes on serving after SIGTERM while its health checks fail, so that load
    balancers stop sending to it."""


class NatsServiceSettings(ServiceSettings):
    """Settings of services with a connection to NATS."""

    nats_url: str = Field(default="nats://127.0.0.1:4222", validation_alias="PROCTOR_NATS_URL")
    """URL of NATS, which needs JetStream. Servers of a cluster are separated by commas."""
    nats_credentials_file: Path | None = Field(default=None, validation_alias="PROCTOR_NATS_CREDENTIALS_FILE")
    """File with the JWT and the seed of the service's user of NATS, as `nsc` writes it."""
    nats_ca_file: Path | None = Field(default=None, validation_alias="PROCTOR_NATS_CA_FILE")
    """PEM file of the authorities by which NATS is verified. With it the connection is encrypted, as it
    is with a URL that begins with `tls://`."""
    nats_certificate_file: Path | None = Field(default=None, validation_alias="PROCTOR_NATS_CERTIFICATE_FILE")
    """PEM file of the certificate that the service shows to NATS, with its key unless
    PROCTOR_NATS_KEY_FILE is set. The files are read at each connection, so they may be renewed."""
    nats_key_file: Path | None = Field(default=None, validation_alias="PROCTOR_NATS_KEY_FILE")
    """PEM file of the key of PROCTOR_NATS_CERTIFICATE_FILE, where it is a file of its own."""


class SchemaServiceSettings(NatsServiceSettings):
    """Settings of services with a schema in Postgres, which also share the key of dispatch proofs."""

    postgres_dsn: str = Field(
        default="postgresql://proctor@127.0.0.1:5432/proctor",
        validation_alias="PROCTOR_POSTGRES_DSN",
        repr=False,
    )
    """DSN of Postgres. Each service has a schema of its own in the database."""
    migrate_on_start: bool = Field(default=True, validation_alias="PROCTOR_MIGRATE_ON_START")
    """Whether scheduler and results bring their schemas up to date when they start. If not, `python -m
    services.scheduler migrate` does (and `services.results`), as a role that may."""
    retry_seconds: float = Field(
        default=DEFAULT_RETRY_SECONDS, validation_alias="PROCTOR_POSTGRES_RETRY_SECONDS", gt=0
    )
    """A call waits this long for Postgres to return before it fails as unavailable."""
    dispatch_proof_key: SecretStr = Field(
        default=SecretStr(""), validation_alias="PROCTOR_DISPATCH_PROOF_KEY"
    )
    """Secret of the scheduler and of results, of 16 characters or more. It proves that what workers send is
    of shards that were dispatched to them, and signs the scheduler's calls of results; neither service starts
    without it."""
    caller_key: CallerKey = SecretStr("")
    tls_certificate_file: TlsCertificateFile = None
    tls_key_file: TlsKeyFile = None
    tls_ca_file: TlsCaFile = None
    tls_client_names: str = Field(default="", validation_alias="PROCTOR_TLS_CLIENT_NAMES")
    """DNS names, separated by commas, of which the certificate of a client needs one. With
    `name=package.Service` it may call that service only. Without names each certificate of the authorities
    may call."""


def settings_of(service: str) -> SettingsConfigDict:
    """Variables with the prefix of the service."""
    return SettingsConfigDict(env_prefix=f"PROCTOR_{service.upper()}_", **_FORM)
