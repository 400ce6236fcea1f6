"""Docker: images lint, and compose.yaml gives each service what it reads, without a secret in it."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from proctor.values.providers.pools_file import parse_pools
from tests.contract.deploy.test_chart_properties import SERVICES

ROOT = Path(__file__).parents[3]
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text())
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


@pytest.mark.parametrize("service", OWN)
def test_variables_are_settings_that_the_services_read(service: str) -> None:
    kind = SERVICES[f"services.{service}"]
    known = {
        str(field.validation_alias or f"{kind.model_config['env_prefix']}{setting.upper()}")
        for setting, field in kind.model_fields.items()
    }
    given = {name for name in COMPOSE["services"][service]["environment"] if name.startswith("PROCTOR_")}
    assert given <= known


def test_secrets_come_from_the_environment_file_alone() -> None:
    asked = set()
    for service in COMPOSE["services"].values():
        for name, value in service.get("environment", {}).items():
            asked.update(re.findall(r"\$\{(\w+)", str(value)))
            if re.search(r"PASSWORD|KEY|DSN|NATS_URL", name):
                assert "${" in value, name
    example = (ROOT / "compose.env.example").read_text()
    assert asked == set(re.findall(r"(?m)^(\w+)=", example))


def test_worker_is_of_the_pool_that_the_pools_file_has() -> None:
    [pool] = parse_pools((ROOT / "compose.pools.yaml").read_text()).pools
    worker = COMPOSE["services"]["worker"]["environment"]
    assert worker["PROCTOR_WORKER_POOL"] == pool.name
    assert f"worker-{pool.name}:" in worker["PROCTOR_NATS_URL"]


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
