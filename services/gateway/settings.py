"""Settings of the gateway, read from environment variables."""

import re
from collections.abc import Mapping
from ipaddress import IPv4Network, IPv6Network
from typing import Annotated, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, SecretStr, model_validator

from proctor.values.names.user import Role, is_user_name
from services.common.process import is_loopback
from services.common.shared_settings import (
    CallerKey,
    ResultsAddress,
    SchedulerAddress,
    ServiceSettings,
    TlsCaFile,
    TlsCertificateFile,
    TlsKeyFile,
    settings_of,
)

# Enough that a key cannot be guessed.
MIN_KEY_CHARACTERS = 16
# A random key of 16 hexadecimal digits has fewer in one case of 30,000.
MIN_KEY_VARIETY = 6
# Headers lose spaces at their ends.
_OF_A_HEADER = re.compile(r"[!-~]([ -~]*[!-~])?")


def _api_key(given: SecretStr) -> SecretStr:
    hint = "openssl rand -hex 24 makes one"
    if len(given.get_secret_value()) < MIN_KEY_CHARACTERS:
        raise ValueError(f"an API key must have at least {MIN_KEY_CHARACTERS} characters; {hint}")
    if not _OF_A_HEADER.fullmatch(given.get_secret_value()):
        raise ValueError(f"an API key must have visible characters of ASCII, and spaces only between; {hint}")
    if len(set(given.get_secret_value())) < MIN_KEY_VARIETY:
        raise ValueError(f"an API key must have at least {MIN_KEY_VARIETY} different characters; {hint}")
    return given


ApiKey = Annotated[SecretStr, AfterValidator(_api_key)]


def _user_name(given: str) -> str:
    name = given.strip()
    if not is_user_name(name):
        raise ValueError("a name must have 1 to 128 printable characters, and not be *")
    return name


UserName = Annotated[str, AfterValidator(_user_name)]


class GatewaySettings(ServiceSettings):
    """Read once, at the start."""

    model_config = settings_of("gateway")

    http_address: str = "127.0.0.1:8080"
    """host:port for REST and the API page."""
    grpc_address: str = "127.0.0.1:8081"
    """host:port for the public gRPC API."""
    scheduler_address: SchedulerAddress = "127.0.0.1:8082"
    results_address: ResultsAddress = "127.0.0.1:8083"
    tls_certificate_file: TlsCertificateFile = None
    tls_key_file: TlsKeyFile = None
    tls_ca_file: TlsCaFile = None
    caller_key: CallerKey = SecretStr("")
    api_keys: Mapping[UserName, ApiKey] = Field(default_factory=dict)
    """JSON object from user name to API key of 16 characters or more. Empty: all are operators without a
    key."""
    operators: frozenset[UserName] = frozenset()
    """JSON list of users with a key who may change limits, and the runs and uploads of others."""
    oidc_issuer: str = ""
    """Address of an OpenID provider, as its tokens name it. Empty: users have API keys alone."""
    oidc_client_id: str = ""
    """Name of this gateway at the provider. Tokens are for it."""
    oidc_client_secret: SecretStr = SecretStr("")
    """Its secret there. Empty for a public client."""
    oidc_redirect_url: str = ""
    """Address of the gateway's /sign-in/callback as browsers reach it. Empty: pages offer no such sign-in."""
    oidc_audiences: frozenset[str] = frozenset()
    """JSON list of further audiences whose tokens are taken."""
    oidc_scopes: str = "openid profile email"
    """Scopes that a browser's sign-in asks for."""
    oidc_user_claim: str = "sub"
    """Claim with the name of the user. Nobody may choose another user's: `email` is taken where it is
    verified."""
    oidc_groups_claim: str = "groups"
    """Claim with the user's groups."""
    oidc_roles: Mapping[str, Role] = Field(default_factory=dict)
    """JSON object from group to role: viewer, runner, maintainer or operator. The highest counts."""
    oidc_default_role: Role | None = None
    """Role of users in none of these groups. Empty: they are refused."""
    oidc_session_minutes: int = Field(default=60, ge=2, le=720)
    """How long a role that the provider takes away may still hold in a browser. It is asked again at half of
    that time, without the user unless it wants a password."""
    allowed_hosts: frozenset[str] = frozenset()
    """JSON list of names that clients call the gateway by, beside localhost and addresses. `*`: any name."""
    allowed_origins: frozenset[str] = frozenset()
    """JSON list of origins, such as `https://pages.example.com`, whose pages may send changes."""
    trusted_proxies: tuple[IPv4Network | IPv6Network, ...] = ()
    """JSON list of proxies, as addresses or networks such as `10.0.0.0/8`, whose X-Forwarded-For is believed:
    the audit and limits of unknown keys have the address in it."""
    allow_anonymous: bool = False
    """Serve other machines without API keys: all who reach the port may do everything."""
    max_body_bytes: int = Field(default=1024 * 1024, ge=1024)
    """Largest body of a request that is neither a suite nor an upload."""
    # A suite with its data files may have 3 MiB; JSON escapes make it larger.
    max_suite_body_bytes: int = Field(default=6 * 1024 * 1024, ge=1024)
    """Largest body of a request with a suite, or with tasks for rollouts."""
    # The scheduler's limit for a data set, and the form around it.
    max_dataset_body_bytes: int = Field(default=8 * 1024**3 + 1024 * 1024, ge=1024)
    """Largest body of an upload of a data set."""
    # 200 MB, the scheduler's limit for a file of a batch, and the form around it.
    max_batch_file_body_bytes: int = Field(default=201 * 1024**2, ge=1024)
    """Largest body of an upload of a file of a batch."""
    # The scheduler's limit for a set of tasks, which gives the better refusal, is below it.
    max_tasks_body_bytes: int = Field(default=257 * 1024**2, ge=1024)
    """Largest body of an upload of tasks for rollouts."""
    max_connections: int = Field(default=900, ge=2)
    """Open HTTP connections. One whose peer reads nothing, or else an idle one, is closed for a new one."""
    max_calls: int = Field(default=512, ge=1)
    """Calls, which are requests in progress. An upload, a download and a watched run are one each."""
    max_calls_per_user: int = Field(default=128, ge=1)
    """Calls of one user."""
    max_live_pages: int = Field(default=600, ge=1)
    """Open sockets of pages that show runs, rollouts, batches, the queue or lists of them. Each is one of the
    connections; a page without one says that it is stale."""
    max_live_pages_per_user: int = Field(default=200, ge=1)
    """Open sockets of pages of one user."""
    max_bytes_per_user: int = Field(default=64 * 1024 * 1024, ge=1024)
    """Bytes that the bodies of one user's calls may have. An upload counts as 2 MiB."""
    max_bytes: int = Field(default=256 * 1024 * 1024, ge=1024)
    """Bytes that the bodies of all calls may have."""
    max_grpc_connections: int = Field(default=900, ge=1)
    """Open gRPC connections; further ones are refused."""
    grpc_reflection: bool = False
    """Describe the gRPC services to every caller, as `grpcurl` asks for."""
    call_timeout_seconds: float = Field(default=30.0, gt=0)
    """Time limit of one call to the scheduler or to results."""
    drain_seconds: int = Field(default=10, ge=0)
    """Time to stop after SIGTERM: calls finish, and what cannot be reached is given up."""

    @model_validator(mode="after")
    def operators_have_keys(self) -> Self:
        without = ", ".join(sorted(self.operators - self.api_keys.keys()))
        if without:
            raise ValueError(f"the operators {without} have no key in PROCTOR_GATEWAY_API_KEYS")
        return self

    @model_validator(mode="after")
    def oidc_is_whole(self) -> Self:
        if not self.oidc_issuer:
            return self
        if not self.oidc_client_id:
            raise ValueError("PROCTOR_GATEWAY_OIDC_ISSUER needs PROCTOR_GATEWAY_OIDC_CLIENT_ID")
        if not self.oidc_roles and self.oidc_default_role is None:
            raise ValueError(
                "with PROCTOR_GATEWAY_OIDC_ISSUER nobody has a role: set PROCTOR_GATEWAY_OIDC_ROLES"
            )
        for address in filter(None, (self.oidc_issuer, self.oidc_redirect_url)):
            parts = urlsplit(address)
            if parts.scheme != "https" and not (
                parts.scheme == "http" and is_loopback(f"{parts.hostname}:0")
            ):
                raise ValueError(f"{address} must begin with https://: tokens pass there")
        return self

    @model_validator(mode="after")
    def keys_name_one_user(self) -> Self:
        holders: dict[str, str] = {}
        for name, key in self.api_keys.items():
            if other := holders.get(key.get_secret_value()):
                raise ValueError(f"{other} and {name} have the same key in PROCTOR_GATEWAY_API_KEYS")
            holders[key.get_secret_value()] = name
        return self

    @model_validator(mode="after")
    def others_need_a_key(self) -> Self:
        if self.api_keys or self.oidc_issuer or self.allow_anonymous:
            return self
        for address in (self.http_address, self.grpc_address):
            if not is_loopback(address):
                raise ValueError(
                    f"{address} can be reached from other machines: set PROCTOR_GATEWAY_API_KEYS, "
                    "PROCTOR_GATEWAY_OIDC_ISSUER, or PROCTOR_GATEWAY_ALLOW_ANONYMOUS=true"
                )
        return self
