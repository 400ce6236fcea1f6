"""The services as children of the stack: which module by which python, in which environment, ready when."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from proctor.stack.options import StackOptions
from proctor.stack.supervision.child import ChildSpec, Probe
from proctor.stack.supervision.probes import grpc_serves, http_is_ready
from proctor.stack.supervision.process import Program
from proctor.stack.vllm import find_vllm_python
from proctor.values.pools import Pool

SUITES_OF_CHECKOUT = Path(__file__).parents[3] / "suites"
# Never inherited: a value of the environment would belong to another stack.
STACK_OWNED = (
    "PROCTOR_POSTGRES_DSN",
    "PROCTOR_NATS_URL",
    "PROCTOR_WORKER_HEALTH_ADDRESS",
    "PROCTOR_WORKER_POOL",
)
PROVIDER_KEY_SUFFIX = "_API_KEY"
WORKER_DRAIN_LIMIT_SECONDS = 30.0
WORKER_READY_LIMIT_SECONDS = 600.0


@dataclass(frozen=True, slots=True)
class Wiring:
    """The addresses of one stack, by which its services find each other."""

    postgres_dsn: str
    nats_url: str
    scheduler: str
    results: str
    gateway_http: str
    gateway_grpc: str
    pools_file: Path

    def environment(self) -> dict[str, str]:
        return {
            "PROCTOR_NATS_URL": self.nats_url,
            "PROCTOR_SCHEDULER_ADDRESS": self.scheduler,
            "PROCTOR_RESULTS_ADDRESS": self.results,
            "PROCTOR_GATEWAY_HTTP_ADDRESS": self.gateway_http,
            "PROCTOR_GATEWAY_GRPC_ADDRESS": self.gateway_grpc,
            "PROCTOR_POOLS_FILE": str(self.pools_file),
        }


def service_children(options: StackOptions, wiring: Wiring, health_addresses: list[str]) -> list[ChildSpec]:
    """One per service, and one worker per pool (`worker.<pool>`)."""
    probes: dict[str, Probe] = {
        "results": lambda: grpc_serves(wiring.results),
        "scheduler": lambda: grpc_serves(wiring.scheduler),
        "gateway": lambda: _gateway_serves(wiring),
    }
    servers = [
        ChildSpec(name, _program(options.python, module, server_environment(options, wiring)), probes[name])
        for name, module in options.modules.items()
        if name in probes
    ]
    if "worker" not in options.modules:
        return servers
    workers = zip(options.pools, health_addresses, strict=False)
    return servers + [_worker(options, wiring, pool, health) for pool, health in workers]


def server_environment(options: StackOptions, wiring: Wiring) -> dict[str, str]:
    keys = {pool.provider.api_key_env for pool in options.pools if pool.provider}
    inherited = {
        name: value
        for name, value in options.environment.items()
        if name not in keys and not name.endswith(PROVIDER_KEY_SUFFIX)
    }
    # A person may choose otherwise: name a bucket, or limit the reads of this machine's only user.
    chosen = {
        "PROCTOR_SCHEDULER_OBJECT_STORE": (options.state_dir.absolute() / "objects").as_uri(),
        "PROCTOR_SCHEDULER_MAX_READS_PER_MINUTE": "0",
    }
    wired = {**wiring.environment(), "PROCTOR_POSTGRES_DSN": wiring.postgres_dsn}
    return _joined({**chosen, **inherited}, wired)


def worker_environment(options: StackOptions, wiring: Wiring, pool_name: str, health: str) -> dict[str, str]:
    """With the providers' keys and without the database: a worker holds no credential of ours."""
    own = {"PROCTOR_WORKER_POOL": pool_name, "PROCTOR_WORKER_HEALTH_ADDRESS": health}
    return _joined(options.environment, {**wiring.environment(), **own})


def _worker(options: StackOptions, wiring: Wiring, pool: Pool, health: str) -> ChildSpec:
    python = _worker_python(options, pool)
    environment = worker_environment(options, wiring, pool.name, health)
    return ChildSpec(
        name=f"worker.{pool.name}",
        program=_program(python, options.modules["worker"], environment),
        is_ready=lambda: grpc_serves(health),
        ready_limit_seconds=WORKER_READY_LIMIT_SECONDS,
        stop_limit_seconds=WORKER_DRAIN_LIMIT_SECONDS,
    )


def _worker_python(options: StackOptions, pool: Pool) -> Path:
    if pool.engine != "vllm":
        return options.python
    return find_vllm_python(options.environment, Path.cwd()) or options.python


def _program(python: Path, module: str, environment: Mapping[str, str]) -> Program:
    """`module` may have arguments. -P ignores a folder `services` in the current directory."""
    return Program((str(python), "-P", "-m", *module.split()), environment)


def _joined(inherited: Mapping[str, str], wired: Mapping[str, str]) -> dict[str, str]:
    """What a person sets wins over our defaults, but not over what this stack has wired together."""
    defaults = {"PATH": os.defpath, "PYTHONUNBUFFERED": "1"}
    if SUITES_OF_CHECKOUT.is_dir():
        defaults["PROCTOR_SCHEDULER_SUITES_DIR"] = str(SUITES_OF_CHECKOUT)
    kept = {name: value for name, value in inherited.items() if name not in STACK_OWNED}
    return {**defaults, **kept, **wired}


async def _gateway_serves(wiring: Wiring) -> bool:
    return await grpc_serves(wiring.gateway_grpc) and await http_is_ready(wiring.gateway_http)
