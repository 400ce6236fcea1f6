"""Options of a local stack: its folder, addresses, pools and the programs of its services."""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from proctor.stack.defaults import DEFAULT_GATEWAY_GRPC, DEFAULT_GATEWAY_HTTP, default_state_dir
from proctor.values.providers.pool import Pool, PoolModel, Provider
from proctor.values.providers.rules import SCORING_METHODS
from proctor.values.scoring import ScoringMethod

SERVICE_MODULES: Mapping[str, str] = MappingProxyType(
    {
        "gateway": "services.gateway",
        "scheduler": "services.scheduler",
        "results": "services.results",
        "worker": "services.worker",
    }
)
# Environment variables of the command line and of the stack: default and meaning, for the reference.
VARIABLES: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "PROCTOR_STATE_DIR": ("`.proctor` of the project", "Folder of the stack's data, logs and state."),
        "PROCTOR_CACHE_DIR": (
            "`~/.cache/proctor`",
            "Folder of what can be rebuilt: the starter model, and vLLM where there is no checkout.",
        ),
        "PROCTOR_VLLM_PYTHON": ("that of `proctor vllm install`", "Python of the environment that has vLLM."),
        "PROCTOR_GATEWAY": (
            "the local stack's",
            "gRPC address of the gateway of commands: `host:port`, `https://host:port` with TLS.",
        ),
        "PROCTOR_PROJECT": ("`0`", "Number of the project of orders and uploads that name none."),
        "PROCTOR_USER": ("`local`", "Name of the user at a gateway without API keys, for limits per user."),
        "PROCTOR_API_KEY": (
            "none",
            "API key that commands send: a gateway with keys finds the user by it.",
        ),
        "PROCTOR_OIDC_ISSUER": ("none", "Address of the OpenID provider of `proctor login`."),
        "PROCTOR_OIDC_CLIENT_ID": ("none", "Name of Proctor there, for `proctor login`."),
        "PROCTOR_ALLOW_PLAINTEXT_KEY": (
            "`false`",
            "Send the key without TLS to other machines too, for a network that is trusted.",
        ),
        "SSL_CERT_FILE": ("those of gRPC", "PEM file of the authorities that commands trust for `https://`."),
    }
)


def vllm_pool(*models: PoolModel) -> Pool:
    """A pool whose worker runs vLLM in its own process, with the Python of vLLM's environment."""
    return Pool("local", "vllm", 256, models, scoring_methods=frozenset(SCORING_METHODS["vllm"]))


def remote_pool(
    provider: Provider, *, name: str = "remote", engine: str = "openai", concurrency: int = 64
) -> Pool:
    """A pool whose worker calls a server: the OpenAI protocol, or a provider's own API."""
    # A server that holds answers to a schema does not score given texts.
    is_constraining = engine == "openai" and provider.constrained_field is not None
    methods = (
        (ScoringMethod.GENERATE, ScoringMethod.CONSTRAINED) if is_constraining else SCORING_METHODS[engine]
    )
    return Pool(name, engine, concurrency, provider=provider, scoring_methods=frozenset(methods))


@dataclass(frozen=True, slots=True)
class StackOptions:
    """`modules` names what runs as each service; without any, only Postgres and NATS are started.

    `aliases` are other names of models that the pools serve: name to "provider/name".
    """

    state_dir: Path
    pools: tuple[Pool, ...] = ()
    aliases: Mapping[str, str] = field(default_factory=dict)
    gateway_http_address: str = DEFAULT_GATEWAY_HTTP
    gateway_grpc_address: str = DEFAULT_GATEWAY_GRPC
    modules: Mapping[str, str] = field(default_factory=lambda: SERVICE_MODULES)
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    python: Path = Path(sys.executable)


def options_from_environment(environ: Mapping[str, str], pools: tuple[Pool, ...] = ()) -> StackOptions:
    return StackOptions(
        state_dir=default_state_dir(environ, Path.cwd()),
        pools=pools,
        gateway_http_address=environ.get("PROCTOR_GATEWAY_HTTP_ADDRESS", DEFAULT_GATEWAY_HTTP),
        gateway_grpc_address=environ.get("PROCTOR_GATEWAY_GRPC_ADDRESS", DEFAULT_GATEWAY_GRPC),
        environment=dict(environ),
    )
