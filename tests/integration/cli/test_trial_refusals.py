"""`proctor try` with what cannot work: one clear sentence, a code of its own, nothing left behind."""

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes.stack.forked_commands import forked
from tests.harness.forks.server import ROOT

LIMIT_SECONDS = 120.0


@pytest.fixture
def taken_port() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


async def refused(state_dir: Path, port: int, *command: str, **environment: str) -> tuple[int, str]:
    own = {
        "PYTHONPATH": str(ROOT),
        "PROCTOR_STATE_DIR": str(state_dir),
        "PROCTOR_GATEWAY_HTTP_ADDRESS": f"127.0.0.1:{port}",
        "PROCTOR_GATEWAY_GRPC_ADDRESS": "127.0.0.1:0",
        "OPENAI_BASE_URL": "http://127.0.0.1:1/v1",
    }
    done = await forked(command, {**os.environ, **own, **environment}, LIMIT_SECONDS)
    return done.code, done.err


@pytest.mark.parametrize(
    "command",
    [
        ("try", "--model", "openai/any"),
        ("up", "--model", "openai/any"),
        ("up", "--model", "openai/any", "--detach"),
    ],
    ids=["try", "up", "up --detach"],
)
async def test_taken_port_is_named(tmp_path: Path, taken_port: int, command: tuple[str, ...]) -> None:
    code, message = await refused(tmp_path, taken_port, *command)
    assert code == 8
    assert f"Port {taken_port} is taken" in message
    assert "Traceback" not in message
    assert not (tmp_path / "stack.json").exists()


@pytest.mark.parametrize(
    "command",
    ["try", "up"],
)
async def test_folder_that_is_no_model_is_named(tmp_path: Path, command: str) -> None:
    code, message = await refused(tmp_path / "state", 0, command, "--model", str(tmp_path))
    assert code == 2
    assert message == f"{tmp_path} is not a model folder: it has no config.json.\n"
    assert not (tmp_path / "state").exists()


@pytest.mark.parametrize(
    ("option", "value", "sentence"),
    [
        ("--param", "warm", "NAME=VALUE"),
        ("--limit", "0", "limit must be at least 1"),
        ("--temperature", "3", "temperature must be at least 0 and at most 2"),
    ],
)
async def test_bad_order_is_refused_before_anything_starts(
    tmp_path: Path, option: str, value: str, sentence: str
) -> None:
    command = ("try", "--model", "openai/any", option, value)
    code, message = await refused(tmp_path / "state", 0, *command)
    assert code == 2
    assert sentence in message
    assert not (tmp_path / "state").exists()


@pytest.mark.parametrize(
    "command",
    [
        ("try", "--model", "openai/any"),
        ("up", "--model", "openai/any", "--detach"),
        ("status",),
        ("down",),
    ],
    ids=["try", "up --detach", "status", "down"],
)
async def test_file_where_the_state_folder_should_be_is_named(
    tmp_path: Path, command: tuple[str, ...]
) -> None:
    (tmp_path / "file").write_text("")
    code, message = await refused(tmp_path / "file", 0, *command)
    assert code == 6
    assert message.startswith(f"The folder {tmp_path / 'file'} cannot hold the stack's data")
    assert "Traceback" not in message


@pytest.mark.parametrize(
    ("model", "variable", "page"),
    [
        ("openai/gpt-4o-mini", "OPENAI_API_KEY", "https://platform.openai.com/api-keys"),
        ("anthropic/claude-haiku-4-5", "ANTHROPIC_API_KEY", "https://console.anthropic.com/settings/keys"),
        ("gemini/gemini-2.5-flash", "GOOGLE_API_KEY", "https://aistudio.google.com/apikey"),
        ("grok/grok-4", "GROK_API_KEY", "https://console.x.ai"),
    ],
)
async def test_missing_key_is_named_with_the_page_that_gives_keys(
    tmp_path: Path, model: str, variable: str, page: str
) -> None:
    names = ("OPENAI", "ANTHROPIC", "GOOGLE", "GEMINI", "GROK", "XAI")
    without_keys = {"OPENAI_BASE_URL": ""} | {f"{name}_API_KEY": "" for name in names}
    for command in ("try", "up"):
        code, message = await refused(tmp_path / "state", 0, command, "--model", model, **without_keys)
        assert code == 2
        assert f"set {variable} ({page} gives keys)" in message
        assert not (tmp_path / "state").exists()


async def test_address_that_is_none_is_named(tmp_path: Path) -> None:
    code, message = await refused(tmp_path, 99999, "try", "--model", "openai/any")
    assert code == 2
    assert message.startswith("PROCTOR_GATEWAY_HTTP_ADDRESS cannot be '127.0.0.1:99999'")
