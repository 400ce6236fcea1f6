"""The environment that each service gets, and the python that runs it."""

from pathlib import Path

import pytest
import yaml

from proctor.stack.options import StackOptions, remote_pool, vllm_pool
from proctor.stack.servers.services import Wiring, server_environment, service_children, worker_environment
from proctor.stack.state import write_pools_file
from proctor.values.pools import PoolModel, PoolsFile, Provider

WIRING = Wiring(
    postgres_dsn="postgresql://here",
    nats_url="nats://127.0.0.1:1",
    scheduler="127.0.0.1:2",
    results="127.0.0.1:3",
    gateway_http="127.0.0.1:4",
    gateway_grpc="127.0.0.1:5",
    pools_file=Path("/state/pools.yaml"),
)
LOCAL = vllm_pool(PoolModel("vllm/starter", "/models/starter", {"max_model_len": 1024}))
REMOTE = remote_pool(Provider("openai", "http://127.0.0.1:18080/v1", "MY_SECRET"))


def options(**environment: str) -> StackOptions:
    return StackOptions(
        Path("/state"), pools=(LOCAL, REMOTE), environment=environment, python=Path("/own/python")
    )


def test_servers_get_the_database_and_no_provider_key() -> None:
    environment = server_environment(options(MY_SECRET="a", GEMINI_API_KEY="b", HF_TOKEN="c"), WIRING)
    assert environment["PROCTOR_POSTGRES_DSN"] == "postgresql://here"
    assert environment["HF_TOKEN"] == "c"
    assert not {"MY_SECRET", "GEMINI_API_KEY"} & environment.keys()


def test_data_sets_lie_in_the_state_folder_or_in_a_bucket_that_a_person_named() -> None:
    assert server_environment(options(), WIRING)["PROCTOR_SCHEDULER_OBJECT_STORE"] == "file:///state/objects"
    named = options(PROCTOR_SCHEDULER_OBJECT_STORE="s3://mine")
    assert server_environment(named, WIRING)["PROCTOR_SCHEDULER_OBJECT_STORE"] == "s3://mine"


def test_a_worker_gets_the_keys_and_no_database() -> None:
    given = options(MY_SECRET="a", PROCTOR_POSTGRES_DSN="postgresql://of-another-stack")
    environment = worker_environment(given, WIRING, "remote", "127.0.0.1:6")
    assert environment["MY_SECRET"] == "a"
    assert environment["PROCTOR_WORKER_POOL"] == "remote"
    assert environment["PROCTOR_WORKER_HEALTH_ADDRESS"] == "127.0.0.1:6"
    assert "PROCTOR_POSTGRES_DSN" not in environment


def test_what_a_person_sets_reaches_the_services_but_not_the_wiring() -> None:
    given = options(
        PROCTOR_LOG_LEVEL="DEBUG", PROCTOR_SCHEDULER_SUITES_DIR="/mine", PROCTOR_NATS_URL="nats://elsewhere"
    )
    environment = server_environment(given, WIRING)
    assert environment["PROCTOR_LOG_LEVEL"] == "DEBUG"
    assert environment["PROCTOR_SCHEDULER_SUITES_DIR"] == "/mine"
    assert environment["PROCTOR_NATS_URL"] == "nats://127.0.0.1:1"


def test_each_pool_has_its_worker_by_the_right_python() -> None:
    children = service_children(
        options(PROCTOR_VLLM_PYTHON="/vllm/python"), WIRING, ["127.0.0.1:6", "127.0.0.1:7"]
    )
    by_name = {child.name: child.program.command for child in children}
    assert list(by_name) == ["gateway", "scheduler", "results", "worker.local", "worker.remote"]
    assert by_name["worker.local"] == ("/vllm/python", "-P", "-m", "services.worker")
    assert by_name["worker.remote"] == ("/own/python", "-P", "-m", "services.worker")


@pytest.mark.parametrize("modules", [{}, {"gateway": "x"}])
def test_only_the_asked_services_are_started(modules: dict[str, str]) -> None:
    asked = StackOptions(Path("/state"), pools=(REMOTE,), modules=modules)
    assert [child.name for child in service_children(asked, WIRING, ["127.0.0.1:6"])] == list(modules)


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
