"""Settings of backups, read from environment variables."""

from pathlib import Path

from pydantic import Field
from pydantic_settings import BaseSettings

from services.common.shared_settings import settings_of

_SERVICES = Path(__file__).parents[1]
# Each schema has the name of its service, whose folder has its migrations.
MIGRATIONS = {schema: _SERVICES / schema / "migrations" for schema in ("scheduler", "results")}
_DSN = "postgresql://proctor@127.0.0.1:5432/proctor"
# Named by errors.
OBJECT_STORE = "PROCTOR_BACKUP_OBJECT_STORE"


class BackupSettings(BaseSettings):
    """Where an installation keeps what it stores. Credentials of buckets come from their own variables."""

    model_config = settings_of("backup")

    log_level: str = Field(default="INFO", validation_alias="PROCTOR_LOG_LEVEL")
    """DEBUG, INFO, WARNING or ERROR."""
    scheduler_dsn: str = Field(default=_DSN, repr=False)
    """DSN of Postgres with the role that owns the schema of the scheduler."""
    results_dsn: str = Field(default=_DSN, repr=False)
    """DSN of the same database with the role that owns the schema of results."""
    object_store: str = ""
    """Store of uploaded files: what PROCTOR_SCHEDULER_OBJECT_STORE is for the scheduler."""

    def dsn(self, schema: str) -> str:
        return self.scheduler_dsn if schema == "scheduler" else self.results_dsn
