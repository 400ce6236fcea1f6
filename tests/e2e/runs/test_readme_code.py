"""The code of the README, as it stands there, against a stack with other addresses, models and suites."""

import ast
import asyncio
import inspect
import json
import os
import re
import shlex
import sys
from pathlib import Path
from types import CodeType
from typing import Any

import pytest

from proctor.client.compared_runs import ComparedRuns
from tests.e2e.harness.run_ends import ended
from tests.harness.keyed_suite import SUITE
from tests.harness.processes import bound, output_of
from tests.harness.stack_harness import MODEL, StackHarness

pytestmark = pytest.mark.asyncio(loop_scope="session")

ROOT = Path(__file__).parents[3]
README = (ROOT / "README.md").read_text()
SCRIPTS = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


def of_stack(text: str, stack: StackHarness) -> str:
    others = {
        "127.0.0.1:8080": stack.stack.gateway_http,
        "127.0.0.1:8081": stack.stack.gateway_grpc,
        "openai/gpt-4o-mini": MODEL,
        "openai/gpt-4o": "openai/other",
        '"starter"': json.dumps(SUITE),
    }
    for written, other in others.items():
        text = text.replace(written, other)
    return text


def compiled(script: str) -> CodeType:
    """As a cell of a notebook, which may await."""
    code = compile(script, "README.md", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    assert isinstance(code, CodeType)
    return code


async def test_batch_by_the_official_client(
    stack: StackHarness, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    [script] = [each for each in SCRIPTS if "OpenAI(" in each]
    [line] = re.findall(r"^echo '(.*)' > lines\.jsonl$", README, re.MULTILINE)
    (tmp_path / "lines.jsonl").write_text(of_stack(line, stack))
    monkeypatch.chdir(tmp_path)
    await asyncio.to_thread(exec, compiled(of_stack(script, stack)), {})
    [answer] = capsys.readouterr().out.strip().splitlines()
    assert json.loads(answer)["custom_id"] == "1"


async def test_cell_of_a_notebook_orders_waits_and_compares(
    stack: StackHarness, capsys: pytest.CaptureFixture[str]
) -> None:
    [script] = [each for each in SCRIPTS if "ProctorClient(" in each]
    names: dict[str, Any] = {}
    running = eval(compiled(of_stack(script, stack)), names)  # the README's own
    assert inspect.isawaitable(running)
    await running
    compared = names["compared"]
    assert isinstance(compared, ComparedRuns)
    assert compared.differences
    assert "<svg" in compared._repr_html_()
    assert "<svg" in names["one"]._repr_html_()
    assert "200 of 200" in capsys.readouterr().err


async def test_call_by_grpcurl(stack: StackHarness) -> None:
    """buf has the same client: what it is given is what the README gives grpcurl."""
    [line] = re.findall(r"^grpcurl (.*)$", README.replace("\\\n", " "), re.MULTILINE)
    words = shlex.split(of_stack(line, stack))
    assert (ROOT / words[words.index("-import-path") + 1] / words[words.index("-proto") + 1]).is_file()
    address, method = words[-2:]
    given = of_stack(words[words.index("-d") + 1], stack)
    process = await asyncio.create_subprocess_exec(
        *bound(str(Path(sys.executable).with_name("buf")), "curl", "--schema", str(ROOT / "protos")),
        *("--protocol", "grpc", "--http2-prior-knowledge", "-d", given, f"http://{address}/{method}"),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/tmp")},  # its cache
    )
    out, err = await output_of(process, 120)
    assert process.returncode == 0, err
    run_id = json.loads(out)["run"]["runId"]
    assert (await ended(stack, run_id)).order.suite == SUITE
