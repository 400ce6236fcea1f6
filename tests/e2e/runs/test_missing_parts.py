"""A part that is not there, or a port that is taken: one clear sentence and an exit code."""

import asyncio
import json
import os
import socket
import sys
from pathlib import Path

import pytest

from tests.e2e.harness.entry_points import proctor_with
from tests.fakes.thorough_cases import first_cases
from tests.harness.processes import bound, output_of

NOBODY = "127.0.0.1:9"
POOL = {
    "name": "remote",
    "engine": "openai",
    "concurrency": 8,
    "provider": "openai",
    "base_url": f"http://{NOBODY}/v1",
}
# A start waits for what may be starting too.
LIMIT_SECONDS = 60.0


async def start_alone(service: str, folder: Path, **settings: str) -> tuple[int | None, list[str]]:
    """Its exit code and the lines that it wrote."""
    pools_file = folder / "pools.yaml"
    pools_file.write_text(json.dumps({"pools": [POOL]}))
    process = await asyncio.create_subprocess_exec(
        *bound(sys.executable, "-m", f"services.{service}"),
        env={
            "PATH": os.environ["PATH"],
            "PROCTOR_POSTGRES_DSN": f"postgresql://proctor:secret-word@{NOBODY}/proctor",
            "PROCTOR_NATS_URL": f"nats://{NOBODY}",
            "PROCTOR_POOLS_FILE": str(pools_file),
            "PROCTOR_WORKER_POOL": "remote",
            "PROCTOR_WORKER_HEALTH_ADDRESS": "127.0.0.1:0",
            **settings,
        },
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    out, _ = await output_of(process, LIMIT_SECONDS)
    return process.returncode, out.decode().splitlines()


@pytest.mark.thorough
async def test_service_without_its_servers_says_which_and_ends(tmp_path: Path) -> None:
    ends = await asyncio.gather(*(start_alone(name, tmp_path) for name in ("scheduler", "results", "worker")))
    wanted = ("Postgres does not answer at", "Postgres does not answer at", "NATS does not answer at")
    for (code, lines), words in zip(ends, wanted, strict=True):
        assert code == 1, lines
        assert words in lines[-1]
        assert NOBODY in lines[-1]
        assert "Traceback" not in "".join(lines)
        assert "secret-word" not in "".join(lines)


async def test_command_without_a_gateway_says_how_to_start_one() -> None:
    end = await proctor_with({"PROCTOR_GATEWAY": NOBODY}, "runs")
    assert (end.code, end.out) == (3, "")
    assert "proctor up`" in end.err


@first_cases(1, "ports", ["--port {} --grpc-port 0", "--port 0 --grpc-port {}"])
async def test_stack_on_a_taken_port_says_which(tmp_path: Path, ports: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        environment = {"PROCTOR_STATE_DIR": str(tmp_path), "OPENAI_API_KEY": "test"}
        line = f"up --model openai/fake {ports.format(port)}"
        end = await proctor_with(environment, line)
    assert end.code == 8, end.err
    assert f"Port {port} is taken by another program" in end.err
    assert "Traceback" not in end.err
    assert not (tmp_path / "stack.json").exists()
