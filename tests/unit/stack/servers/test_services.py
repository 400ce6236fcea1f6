"""The environment that each service gets, and the python that runs it."""

from pathlib import Path

import pytest
import yaml

from proctor.stack.options import StackOptions, remote_pool, vllm_pool
from proctor.stack.pools import write_pools_file
from proctor.stack.servers.nats import OPERATOR, NatsServer
from proctor.stack.servers.nats_permissions import permissions_of
from proctor.stack.servers.postgres import PostgresServer
from proctor.stack.servers.postgres_home import PostgresHome
from proctor.stack.servers.services import Wiring, server_environment, service_children, worker_environment
from proctor.values.providers.pool import PoolModel, Provider
from proctor.values.providers.pools_file import PoolsFile

NATS = NatsServer(
    "nats-server",
    Path("nats.conf"),
    "127.0.0.1:1",
    dict.fromkeys((OPERATOR, *permissions_of(("local", "remote"))), "word"),
)
WIRING = Wiring(
    postgres=PostgresServer(PostgresHome(Path("bin"), Path("data")), "127.0.0.1:9", "owner's word"),
    nats=NATS,
    scheduler="unix:/state/run/scheduler",
    results="unix:/state/run/results",
    gateway_http="127.0.0.1:4",
    gateway_grpc="127.0.0.1:5",
    worker_health=("unix:/state/run/worker-0", "unix:/state/run/worker-1"),
    pools_file=Path("/state/pools.yaml"),
)
LOCAL = vllm_pool(PoolModel("vllm/starter", "/models/starter", {"max_model_len": 1024}))
REMOTE = remote_pool(Provider("openai", "http://127.0.0.1:18080/v1", "MY_SECRET"))


def options(**environment: str) -> StackOptions:
    return StackOptions(
        Path("/state"), pools=(LOCAL, REMOTE), environment=environment, python=Path("/own/python")
    )


SECRETS = {
    "MY_SECRET": "of the pool",
    "GEMINI_API_KEY": "of a provider without a pool",
    "HF_TOKEN": "of the hub",
    "AWS_SECRET_ACCESS_KEY": "of the bucket",
    "PROCTOR_GATEWAY_API_KEYS": "of users",
    "DATABASE_URL": "of something else on this machine",
}


@pytest.mark.parametrize(
    ("service", "seen"),
    [
        ("gateway", {"PROCTOR_GATEWAY_API_KEYS"}),
        ("scheduler", {"HF_TOKEN", "AWS_SECRET_ACCESS_KEY"}),
        ("results", {"AWS_SECRET_ACCESS_KEY"}),
    ],
)
def test_a_service_inherits_only_the_secrets_that_it_needs(service: str, seen: set[str]) -> None:
    assert SECRETS.keys() & server_environment(service, options(**SECRETS), WIRING) == seen


def test_each_service_has_a_role_of_its_own_in_postgres_and_nats() -> None:
    wired = {
        name: server_environment(name, options(), WIRING) for name in ("gateway", "scheduler", "results")
    }
    assert "PROCTOR_POSTGRES_DSN" not in wired["gateway"]
    assert "PROCTOR_NATS_URL" not in wired["gateway"]
    for service in ("scheduler", "results"):
        assert wired[service]["PROCTOR_POSTGRES_DSN"].startswith(f"postgresql://proctor_{service}:")
        assert wired[service]["PROCTOR_NATS_URL"] == f"nats://{service}:word@127.0.0.1:1"
        assert "owner's word" not in wired[service]["PROCTOR_POSTGRES_DSN"]


def test_data_sets_lie_in_the_state_folder_or_in_a_bucket_that_a_person_named() -> None:
    assert (
        server_environment("scheduler", options(), WIRING)["PROCTOR_SCHEDULER_OBJECT_STORE"]
        == "file:///state/objects"
    )
    named = options(PROCTOR_SCHEDULER_OBJECT_STORE="s3://mine")
    assert server_environment("scheduler", named, WIRING)["PROCTOR_SCHEDULER_OBJECT_STORE"] == "s3://mine"


def test_a_worker_gets_the_key_of_its_pool_and_no_database() -> None:
    given = options(**SECRETS, PROCTOR_POSTGRES_DSN="postgresql://of-another-stack")
    environment = worker_environment(given, WIRING, REMOTE, "unix:/state/run/worker-1")
    assert SECRETS.keys() & environment == {"MY_SECRET"}
    assert environment["PROCTOR_WORKER_POOL"] == "remote"
    assert environment["PROCTOR_WORKER_HEALTH_ADDRESS"] == "unix:/state/run/worker-1"
    assert environment["PROCTOR_NATS_URL"] == "nats://worker-remote:word@127.0.0.1:1"
    assert "PROCTOR_POSTGRES_DSN" not in environment
    # Models are loaded from the hub by workers that load one.
    of_local = worker_environment(given, WIRING, LOCAL, "unix:/state/run/worker-0")
    assert SECRETS.keys() & of_local == {"HF_TOKEN"}


def test_workers_alone_learn_of_the_engine_of_sandboxes() -> None:
    given = {"SANDBOX_BACKEND": "docker", "KUBECONFIG": "/k", "MODAL_TOKEN_SECRET": "s"}
    assert given.items() <= worker_environment(options(**given), WIRING, LOCAL, "unix:/h").items()
    for service in ("gateway", "scheduler", "results"):
        assert not given.keys() & server_environment(service, options(**given), WIRING).keys()


def test_what_a_person_sets_reaches_the_services_but_not_the_wiring() -> None:
    given = options(
        PROCTOR_LOG_LEVEL="DEBUG", PROCTOR_SCHEDULER_SUITES_DIR="/mine", PROCTOR_NATS_URL="nats://elsewhere"
    )
    environment = server_environment("scheduler", given, WIRING)
    assert environment["PROCTOR_LOG_LEVEL"] == "DEBUG"
    assert environment["PROCTOR_SCHEDULER_SUITES_DIR"] == "/mine"
    assert environment["PROCTOR_NATS_URL"] == "nats://scheduler:word@127.0.0.1:1"


def test_each_pool_has_its_worker_by_the_right_python() -> None:
    children = service_children(options(PROCTOR_VLLM_PYTHON="/vllm/python"), WIRING)
    by_name = {child.name: child.program.command for child in children}
    assert list(by_name) == ["gateway", "scheduler", "results", "worker.local", "worker.remote"]
    assert by_name["worker.local"] == ("/vllm/python", "-P", "-m", "services.worker")
    assert by_name["worker.remote"] == ("/own/python", "-P", "-m", "services.worker")


@pytest.mark.parametrize("service", ["gateway", "scheduler", "results", "worker"])
@pytest.mark.parametrize(("given", "seconds"), [(None, 20), ("90", 90), ("long", 20)])
def test_a_service_is_killed_only_after_the_time_that_it_may_drain(
    service: str, given: str | None, seconds: float
) -> None:
    chosen = {} if given is None else {f"PROCTOR_{service.upper()}_DRAIN_SECONDS": given}
    children = service_children(options(**chosen), WIRING)
    assert {each.stop_timeout_seconds for each in children if each.name.startswith(service)} == {seconds + 10}


@pytest.mark.parametrize("modules", [{}, {"gateway": "x"}])
def test_only_the_asked_services_are_started(modules: dict[str, str]) -> None:
    asked = StackOptions(Path("/state"), pools=(REMOTE,), modules=modules)
    assert [child.name for child in service_children(asked, WIRING)] == list(modules)


def test_the_pools_file_names_aliases_where_there_are_any(tmp_path: Path) -> None:
    aliases = {"gpt-4o": "openai/x"}
    written = yaml.safe_load(
        write_pools_file(tmp_path / "pools.yaml", PoolsFile((REMOTE,), aliases)).read_text()
    )
    assert written["aliases"] == aliases


def test_the_pools_file_says_what_each_pool_serves(tmp_path: Path) -> None:
    written = yaml.safe_load(
        write_pools_file(tmp_path / "pools.yaml", PoolsFile((LOCAL, REMOTE))).read_text()
    )
    model = {"name": "vllm/starter", "path": "/models/starter", "engine_args": {"max_model_len": 1024}}
    assert written == {
        "pools": [
            {"name": "local", "engine": "vllm", "concurrency": 256, "models": [model]},
            {
                "name": "remote",
                "engine": "openai",
                "concurrency": 64,
                "provider": "openai",
                "base_url": "http://127.0.0.1:18080/v1",
                "api_key_env": "MY_SECRET",
            },
        ]
    }
