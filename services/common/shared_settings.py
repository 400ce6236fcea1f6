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
    str, Field(validation_alias="PROCTOR_NATS_URL", description="URL of NATS, which needs JetStream.")
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
        description="host:port where the scheduler listens for gRPC, and where the gateway calls it.",
    ),
]
ResultsAddress = Annotated[
    str,
    Field(
        validation_alias="PROCTOR_RESULTS_ADDRESS",
        description="host:port where results listens for gRPC, and where other services call it.",
    ),
]
DataDir = Annotated[
    Path | None,
    Field(
        validation_alias="PROCTOR_DATA_DIR",
        description="Local mirror of hub data sets: a folder with a `mirror.yaml`.",
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
