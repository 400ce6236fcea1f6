"""Docker: images lint, and compose.yaml gives each service what it reads, with secrets that it makes."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from proctor.stack.compose_secrets import write_secrets
from proctor.values.providers.pools_file import parse_pools
from tests.contract.deploy.test_chart_properties import SERVICES

ROOT = Path(__file__).parents[3]
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text())
POOLS = parse_pools((ROOT / "compose.pools.yaml").read_text()).pools
OWN = ("gateway", "scheduler", "results", "worker")


@pytest.mark.parametrize("name", ["Dockerfile", "Dockerfile.vllm"])
def test_dockerfile_lints(name: str) -> None:
    program = Path(sys.executable).with_name("hadolint")
    done = subprocess.run((program, ROOT / name), capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("name", ["Dockerfile", "Dockerfile.vllm"])
def test_image_runs_as_nobody_and_leaves_probes_to_kubernetes(name: str) -> None:
    text = (ROOT / name).read_text()
    assert "USER 10001:10001" in text
    assert "HEALTHCHECK NONE" in text


def known_settings(service: str) -> set[str]:
    kind = SERVICES[f"services.{service}"]
    return {
        str(field.validation_alias or f"{kind.model_config['env_prefix']}{setting.upper()}")
        for setting, field in kind.model_fields.items()
    }


@pytest.mark.parametrize("service", OWN)
def test_variables_are_settings_that_the_services_read(service: str) -> None:
    given = {name for name in COMPOSE["services"][service]["environment"] if name.startswith("PROCTOR_")}
    assert given <= known_settings(service)


def mounted(service: str) -> dict[str, str]:
    """Where a service has its volumes, by their names."""
    pairs = (each.split(":") for each in COMPOSE["services"][service].get("volumes", ()))
    return {source: target for source, target, *_ in pairs if not source.startswith(".")}


@pytest.fixture
def made(tmp_path: Path) -> Path:
    """The volumes of the service `secrets`, after it has ended."""
    write_secrets(tmp_path, [pool.name for pool in POOLS])
    return tmp_path


def exported(file: Path) -> dict[str, str]:
    """What a shell has read from the file."""
    command = ("sh", "-c", f". {file} && env")
    shown = subprocess.run(command, capture_output=True, text=True, check=True, env={"PATH": "/bin"}).stdout
    return dict(line.split("=", 1) for line in shown.splitlines() if line.startswith("PROCTOR_"))


def test_nothing_has_to_be_filled_in_and_no_secret_is_written() -> None:
    text = (ROOT / "compose.yaml").read_text()
    assert set(re.findall(r"\$\{(\w+)", text)) == {"PROCTOR_REGISTRY"}
    # None: taken from the shell that calls it, where it is set there.
    keys = {
        name: value
        for service in COMPOSE["services"].values()
        for name, value in service.get("environment", {}).items()
        if re.search(r"PASSWORD|KEY|DSN|NATS_URL", name)
    }
    assert keys == {
        "PROCTOR_GATEWAY_API_KEYS": None,
        "OPENAI_API_KEY": None,
        "POSTGRES_PASSWORD_FILE": "/secrets/password",
    }


def test_secrets_go_to_volumes_that_only_their_service_mounts(made: Path) -> None:
    volumes = mounted("secrets")
    folders = {f"/made/{each.name}" for each in made.iterdir()}
    assert set(volumes.values()) == folders
    readers = [
        (volume, name) for name in COMPOSE["services"] if name != "secrets" for volume in mounted(name)
    ]
    found = {volume: [name for each, name in readers if each == volume] for volume in volumes}
    assert found.pop("secrets") == []
    assert all(len(names) == 1 for names in found.values()), found
    assert set(COMPOSE["volumes"]) == {*volumes, *(volume for volume, _ in readers)}


def test_made_variables_are_settings_of_their_services(made: Path) -> None:
    for volume, target in mounted("secrets").items():
        file = made / Path(target).name / "env"
        if not file.exists():
            assert volume in ("secrets", "secrets-nats", "secrets-postgres")
            continue
        service = file.parent.name.partition("-")[0]
        assert set(exported(file)) <= known_settings(service)


def test_secrets_are_made_once_and_a_new_pool_gets_its_own(made: Path) -> None:
    before = {file: file.read_text() for file in made.glob("*/env")}
    write_secrets(made, [*(pool.name for pool in POOLS), "another"])
    assert {file: file.read_text() for file in before} == before
    passwords = [
        line for file in made.glob("*/env") for line in file.read_text().splitlines() if "NATS" in line
    ]
    assert len(passwords) == len(set(passwords)) == len(POOLS) + 3


def test_nats_reads_its_configuration_with_the_made_users(made: Path, tmp_path: Path) -> None:
    (made / "nats").rename(tmp_path / "secrets")
    configuration = tmp_path / "nats.conf"
    configuration.write_text(COMPOSE["configs"]["nats"]["content"].replace("/data", str(tmp_path / "data")))
    program = Path(sys.executable).with_name("nats-server")
    done = subprocess.run(
        (program, "--config", configuration, "-t"), capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr


def test_each_worker_is_of_a_pool_that_the_pools_file_has() -> None:
    pools = {
        service["environment"]["PROCTOR_WORKER_POOL"]
        for name, service in COMPOSE["services"].items()
        if name.startswith("worker")
    }
    assert pools == {pool.name for pool in POOLS}
    engines = {pool.name: pool.engine for pool in POOLS}
    assert COMPOSE["services"]["worker-gpu"]["image"].endswith("proctor-worker-vllm:0.1.0") == (
        engines["gpu"] == "vllm"
    )


def test_every_service_has_a_limit_and_starts_after_what_it_needs() -> None:
    for name, service in COMPOSE["services"].items():
        if name not in ("secrets", "ollama"):
            assert service["mem_limit"], name
            assert service["restart"] == "unless-stopped", name
    for name in ("scheduler", "results"):
        assert COMPOSE["services"][name]["depends_on"]["postgres"] == {"condition": "service_healthy"}
    for name, service in COMPOSE["services"].items():
        # One ends once it has made what is missing, the other is somebody else's image.
        assert service.get("healthcheck", {}).get("test") or name in ("secrets", "ollama"), name


@pytest.mark.parametrize(
    ("name", "setting"),
    [("scheduler", "listen_address"), ("results", "listen_address"), ("worker", "health_address")],
)
def test_a_health_check_asks_the_address_that_the_service_listens_at(name: str, setting: str) -> None:
    service = COMPOSE["services"][name]
    kind = SERVICES[f"services.{name}"]
    variable = f"{kind.model_config['env_prefix']}{setting.upper()}"
    address = str(service["environment"].get(variable) or kind.model_fields[setting].default)
    _, program, *options, asked = service["healthcheck"]["test"]
    assert (program, options[-1]) == ("python3", "services.common.grpc.probe")
    assert asked.rpartition(":")[2] == address.rpartition(":")[2]


def test_own_services_run_without_privileges_and_publish_on_loopback_only() -> None:
    for name in OWN:
        service = COMPOSE["services"][name]
        assert service["read_only"]
        assert service["cap_drop"] == ["ALL"]
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", ()))


def test_build_context_has_no_more_than_images_need() -> None:
    lines = (ROOT / ".dockerignore").read_text().split()
    assert lines[0] == "*"
    assert {"!proctor", "!services", "!suites", "!pyproject.toml"} <= set(lines)
