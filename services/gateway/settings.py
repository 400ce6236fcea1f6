"""What an operator can set of the gateway: environment variables that begin with PROCTOR_."""

from collections.abc import Mapping
from typing import Annotated

from pydantic import AfterValidator, Field, SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict

from services.gateway.auth.user_name import user_name
from services.gateway.errors.gateway_errors import InvalidUserName


def _user_name(name: str) -> str:
    try:
        return user_name(name)
    except InvalidUserName as error:
        raise ValueError("a name must have 1 to 128 printable characters, and not be *") from error


UserName = Annotated[str, AfterValidator(_user_name)]
# An empty one would be presented by everybody who presents none.
ApiKey = Annotated[SecretStr, Field(min_length=1)]


class GatewaySettings(BaseSettings):
    """Read once, at the start."""

    model_config = SettingsConfigDict(env_prefix="PROCTOR_", frozen=True)

    gateway_http_address: str = "127.0.0.1:8080"
    gateway_grpc_address: str = "127.0.0.1:8081"
    scheduler_address: str = "127.0.0.1:8082"
    results_address: str = "127.0.0.1:8083"
    log_level: str = "INFO"
    # Name of a user to the key that speaks for it, as a JSON object.
    api_keys: Mapping[UserName, ApiKey] = Field(default_factory=dict)
    gateway_max_body_bytes: int = Field(default=1024 * 1024, ge=1024)
    # A suite with its data files may hold 3 MiB; as JSON with escapes it takes more.
    gateway_max_suite_body_bytes: int = Field(default=6 * 1024 * 1024, ge=1024)
    # As large as the scheduler takes one, and a form around it.
    gateway_max_upload_bytes: int = Field(default=8 * 1024**3 + 1024 * 1024, ge=1024)
    # A file of 200 MB for a batch, and a form around it.
    gateway_max_file_bytes: int = Field(default=201 * 1024**2, ge=1024)
    gateway_call_timeout_seconds: float = Field(default=30.0, gt=0)
    gateway_drain_seconds: int = Field(default=10, ge=0)
