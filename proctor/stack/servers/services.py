"""The services as children of the stack: which module by which python, in which environment, ready when."""

import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from types import MappingProxyType

from proctor.stack.options import StackOptions
from proctor.stack.servers.nats import NatsServer
from proctor.stack.servers.postgres import SCHEMAS, PostgresServer
from proctor.stack.supervision.child import ChildSpec, Probe
from proctor.stack.supervision.probes import grpc_serves, http_is_alive
from proctor.stack.supervision.process import Program
from proctor.stack.vllm.environment import find_vllm_python
from proctor.values import messaging
from proctor.values.providers.pool import Pool
from proctor.values.providers.worker import DEFAULT_DRAIN_SECONDS

SUITES_OF_CHECKOUT = Path(__file__).parents[3] / "suites"
# Beyond the drain time: a worker sends what is finished, and a busy machine is slow, before it is killed.
_STOP_MARGIN_SECONDS = 10.0
# A worker is ready once vLLM's library is imported, which takes minutes on a cold disk.
WORKER_READY_TIMEOUT_SECONDS = 600.0
# A service inherits listed variables only, so that a secret reaches no service that does not need it.
_EVERY_PROCESS = (
    *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_*", "TZ", "TMPDIR", "XDG_*"),
    *("PYTHON*", "VIRTUAL_ENV", "LD_LIBRARY_PATH", "SSL_CERT_*", "OTEL_*", "COVERAGE_*"),
    *("PROCTOR_LOG_LEVEL", "PROCTOR_DATA_DIR", "PROCTOR_TRACES_*"),
)
_HUB = ("HF_*", "HUGGING*", "*_PROXY", "*_proxy", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
_HUB_TOKENS = ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HUGGINGFACE_HUB_TOKEN", "HF_TOKEN_PATH")
_BUCKETS = ("AWS_*", "AZURE_*", "GOOGLE_*")
_ENGINE = (
    *("VLLM_*", "CUDA_*", "NVIDIA_*", "NCCL_*", "TORCH*", "PYTORCH_*", "TRITON_*", "TRANSFORMERS_*"),
    *("TOKENIZERS_*", "OMP_*", "MKL_*", "OPENBLAS_*", "KMP_*", "GOMP_*", "LD_PRELOAD", "CC", "CXX"),
)
# Which engine of sandboxes, and how its client reaches a cluster or an account.
_SANDBOXES = ("SANDBOX_BACKEND", "KUBECONFIG", "MODAL_*")
_TASK_CODE = "PROCTOR_TASK_CODE*"
INHERITED: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "gateway": (*_EVERY_PROCESS, "PROCTOR_GATEWAY_*"),
        "scheduler": (
            *(*_EVERY_PROCESS, "PROCTOR_SCHEDULER_*", "PROCTOR_ALLOWED_BASE_URLS", _TASK_CODE),
            *(*_HUB, *_BUCKETS),
        ),
        "results": (*_EVERY_PROCESS, "PROCTOR_RESULTS_*", _TASK_CODE, *_BUCKETS),
        "worker": (
            *(*_EVERY_PROCESS, "PROCTOR_WORKER_*", "PROCTOR_ALLOWED_BASE_URLS"),
            *(*_HUB, *_ENGINE, *_SANDBOXES),
        ),
    }
)
# They dispatch shards and record outcomes: each has a user of NATS, and both have the key of dispatch proofs.
_DATA_PATH = ("scheduler", "results")
# The gateway signs the callers of its calls; the others check that.
_SIGNING = ("gateway", *_DATA_PATH)
# The keys of providers are the workers', whatever pattern their names match.
_KEY_SUFFIXES = ("_API_KEY", "_API_KEY_FILE")


@dataclass(frozen=True, slots=True)
class Wiring:
    """The servers and addresses of one stack, by which its services find each other."""

    postgres: PostgresServer
    nats: NatsServer
    scheduler: str
    results: str
    gateway_http: str
    gateway_grpc: str
    worker_health: tuple[str, ...]
    pools_file: Path
    # By the names of children.
    metrics: Mapping[str, str] = field(default_factory=dict)
    # New at each start: only this start's services need it.
    caller_key: str = field(default_factory=partial(secrets.token_hex, 32), repr=False)

    def environment(self, service: str) -> dict[str, str]:
        wired = {
            "PROCTOR_SCHEDULER_ADDRESS": self.scheduler,
            "PROCTOR_RESULTS_ADDRESS": self.results,
            "PROCTOR_GATEWAY_HTTP_ADDRESS": self.gateway_http,
            "PROCTOR_GATEWAY_GRPC_ADDRESS": self.gateway_grpc,
            "PROCTOR_POOLS_FILE": str(self.pools_file),
        }
        if service in _SIGNING:
            wired["PROCTOR_CALLER_KEY"] = self.caller_key
        if service in _DATA_PATH:
            wired["PROCTOR_NATS_URL"] = self.nats.url(service)
            wired["PROCTOR_DISPATCH_PROOF_KEY"] = self.nats.dispatch_proof_key
        if service in SCHEMAS:
            wired["PROCTOR_POSTGRES_DSN"] = self.postgres.dsn_of(service)
        return wired


def child_names(options: StackOptions) -> list[str]:
    """One per service, and one worker per pool (`worker.<pool>`)."""
    workers = [f"worker.{pool.name}" for pool in options.pools] if "worker" in options.modules else []
    return [*(name for name in options.modules if name != "worker"), *workers]


def service_children(options: StackOptions, wiring: Wiring) -> list[ChildSpec]:
    """The services; each serves its metrics where the wiring has an address for them."""
    return [_with_metrics(child, wiring.metrics.get(child.name, "")) for child in _children(options, wiring)]


def _with_metrics(child: ChildSpec, address: str) -> ChildSpec:
    if not address:
        return child
    environment = {**child.program.environment, "PROCTOR_METRICS_ADDRESS": address}
    program = replace(child.program, environment=environment)
    return replace(child, program=program, metrics_address=address)


def _children(options: StackOptions, wiring: Wiring) -> list[ChildSpec]:
    probes: dict[str, Probe] = {
        "results": lambda: grpc_serves(wiring.results),
        "scheduler": lambda: grpc_serves(wiring.scheduler),
        "gateway": lambda: _gateway_serves(wiring),
    }
    servers = [
        _server(name, module, options, server_environment(name, options, wiring), probes[name])
        for name, module in options.modules.items()
        if name in probes
    ]
    if "worker" not in options.modules:
        return servers
    workers = zip(options.pools, wiring.worker_health, strict=False)
    return servers + [_worker(options, wiring, pool, health) for pool, health in workers]


def _server(
    name: str, module: str, options: StackOptions, environment: Mapping[str, str], is_ready: Probe
) -> ChildSpec:
    return ChildSpec(
        name=name,
        program=_program(options.python, module, environment),
        is_ready=is_ready,
        stop_timeout_seconds=_stop_timeout_seconds(name, environment),
    )


def object_store_of(options: StackOptions) -> str:
    """Address of the store of uploaded files."""
    own = (options.state_dir.absolute() / "objects").as_uri()
    return options.environment.get("PROCTOR_SCHEDULER_OBJECT_STORE") or own


def server_environment(service: str, options: StackOptions, wiring: Wiring) -> dict[str, str]:
    """Variables of the user replace our defaults, but not the addresses that this stack chose."""
    defaults = {"PATH": os.defpath, "PYTHONUNBUFFERED": "1"}
    if service == "scheduler":
        # A person may choose otherwise, as to limit the reads of this machine's only user.
        defaults["PROCTOR_SCHEDULER_SUITE_CACHE_DIR"] = str(options.state_dir.absolute() / "suites")
        defaults["PROCTOR_SCHEDULER_HUB_CACHE_DIR"] = str(options.state_dir.absolute() / "hub")
        defaults["PROCTOR_SCHEDULER_MAX_READS_PER_MINUTE"] = "0"
        if SUITES_OF_CHECKOUT.is_dir():
            defaults["PROCTOR_SCHEDULER_SUITES_DIR"] = str(SUITES_OF_CHECKOUT)
    if service in ("scheduler", "results"):
        # A person may name a bucket.
        defaults["PROCTOR_SCHEDULER_OBJECT_STORE"] = object_store_of(options)
        # Who brings a task here is who operates this machine.
        defaults["PROCTOR_TASK_CODE"] = "sandbox"
    keys = {pool.provider.api_key_env for pool in options.pools if pool.provider}
    inherited = {
        name: value
        for name, value in options.environment.items()
        if any(fnmatchcase(name, pattern) for pattern in INHERITED[service])
        and name not in keys
        # After the patterns: GOOGLE_API_KEY matches GOOGLE_* of the buckets.
        and not name.endswith(_KEY_SUFFIXES)
    }
    # Later entries replace earlier ones.
    return {**defaults, **inherited, **wiring.environment(service)}


def worker_environment(options: StackOptions, wiring: Wiring, pool: Pool, health: str) -> dict[str, str]:
    """An environment with the provider key and the NATS user of this pool only."""
    defaults = {
        "PROCTOR_WORKER_BUNDLE_CACHE_DIR": str(options.state_dir.absolute() / "tasks"),
        # Who orders here is who operates this machine.
        "PROCTOR_WORKER_SANDBOX_IMAGES": "*",
    }
    own = {
        "PROCTOR_WORKER_POOL": pool.name,
        "PROCTOR_WORKER_HEALTH_ADDRESS": health,
        "PROCTOR_NATS_URL": wiring.nats.url(messaging.worker_user(pool.name)),
    }
    name = pool.provider.api_key_env if pool.provider else ""
    keys = {each: options.environment[each] for each in (name, f"{name}_FILE") if each in options.environment}
    inherited = server_environment("worker", options, wiring)
    if pool.provider:
        # It loads no model: a token of the hub would be one secret more beside the provider's.
        inherited = {each: value for each, value in inherited.items() if each not in _HUB_TOKENS}
    return {**defaults, **inherited, **keys, **own}


def _worker(options: StackOptions, wiring: Wiring, pool: Pool, health: str) -> ChildSpec:
    python = _worker_python(options, pool)
    environment = worker_environment(options, wiring, pool, health)
    return ChildSpec(
        name=f"worker.{pool.name}",
        program=_program(python, options.modules["worker"], environment),
        is_ready=lambda: grpc_serves(health),
        ready_timeout_seconds=WORKER_READY_TIMEOUT_SECONDS,
        stop_timeout_seconds=_stop_timeout_seconds("worker", environment),
    )


def _stop_timeout_seconds(service: str, environment: Mapping[str, str]) -> float:
    """No service drains longer by default than a worker.

    A service refuses to start if its drain time is not a number, so it has nothing to drain.
    """
    try:
        drain = float(environment.get(f"PROCTOR_{service.upper()}_DRAIN_SECONDS", DEFAULT_DRAIN_SECONDS))
    except ValueError:
        drain = DEFAULT_DRAIN_SECONDS
    return drain + _STOP_MARGIN_SECONDS


def _worker_python(options: StackOptions, pool: Pool) -> Path:
    if pool.engine != "vllm":
        return options.python
    return find_vllm_python(options.environment) or options.python


def _program(python: Path, module: str, environment: Mapping[str, str]) -> Program:
    """`module` may have arguments. -P ignores a folder `services` in the current directory."""
    return Program((str(python), "-P", "-m", *module.split()), environment)


async def _gateway_serves(wiring: Wiring) -> bool:
    """Also while NATS takes no messages: without the gateway nobody could see why runs wait."""
    return await grpc_serves(wiring.gateway_grpc) and await http_is_alive(wiring.gateway_http)
