"""The gateway's description as Schemathesis gets it: it names what exists, so that not all is 404."""

import asyncio
import base64
import json
import re
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp

from tests.e2e.harness.entry_points import API, http
from tests.harness.keyed_suite import SUITE, TASK
from tests.harness.processes import bound, output_of
from tests.harness.stack_harness import MODEL, StackHarness

_CONFIG = Path(__file__).parents[1] / "api" / "schemathesis.toml"
# One object of each kind; calls that delete take them away.
_OF_EACH = 8
_ROWS = 20
_SHORT_LIST = 20

Known = Mapping[str, Sequence[str]]


@dataclass(frozen=True)
class Walk:
    """How Schemathesis ended: 0 is not a failure."""

    code: int
    report: str

    @property
    def cases(self) -> int:
        found = re.search(r"([0-9]+) generated", self.report)
        return int(found[1]) if found else 0


async def things_to_name(
    stack: StackHarness, headers: Mapping[str, str] | None = None, project_id: int = 1
) -> Known:
    """Runs, data sets, files and batches of a project, by the name that their id has in paths and bodies.

    They are of the user of the headers.
    """
    made = partial(_made, stack, headers=headers)
    jobs, datasets, files = [], [], []
    upload = f"/admin/datasets/upload?project_id={project_id}"
    for number in range(_OF_EACH):
        order = {"project_id": project_id, "suite": SUITE, "config": {"provider": "openai", "model": "fake"}}
        jobs.append(await made(f"{API}/run", "job_id", json=order))
        datasets.append(await made(upload, "dataset_id", data=_form(number)))
        files.append(
            await made("/v1/files", "id", data=_form(number, purpose="batch", project_id=str(project_id)))
        )
    run = {"model_id": MODEL, "dataset_id": datasets[0]}
    runs = [await made("/admin/benchmarks/run", "benchmark_id", json=run) for _ in range(_OF_EACH)]
    batch = {"input_file_id": files[0], "endpoint": "/v1/chat/completions", "completion_window": "24h"}
    return {
        "job_id": jobs,
        "dataset_id": datasets,
        "benchmark_id": runs,
        "file_id": files,
        "batch_id": [await made("/v1/batches", "id", json=batch) for _ in range(_OF_EACH)],
        "suite": [SUITE],
        "task": [TASK],
        "model": [MODEL],
    }


def names_of_both(one: Known, other: Known) -> Known:
    """What both have stands once there."""
    return {name: list(dict.fromkeys((*one[name], *other[name]))) for name in one}


async def describe_with(stack: StackHarness, known: Known, file: Path) -> None:
    """Writes the description, in which a known name is one kind of value beside those that are described."""
    document = (await http(stack, "GET", "/openapi.json")).body
    for operations in document["paths"].values():
        for operation in operations.values():
            for parameter in operation.get("parameters", ()):
                if parameter["name"] in known:
                    parameter["schema"] = _or_known(parameter["schema"], known[parameter["name"]])
    bodies = {
        ("RunRequest", "suite"): known["suite"],
        ("ModelConfig", "provider"): ["openai"],
        ("ModelConfig", "model"): ["fake"],
        ("DatasetRunRequest", "model_id"): known["model"],
        ("DatasetRunRequest", "dataset_id"): [*known["dataset_id"], *known["file_id"]],
        ("JudgeRequest", "model_id"): known["model"],
        ("BatchRequest", "input_file_id"): known["file_id"],
        ("RescoreRequest", "task"): known["task"],
    }
    for (name, field), values in bodies.items():
        fields = document["components"]["schemas"][name]["properties"]
        fields[field] = _or_known(fields[field], values)
    _shorten_lists(document)
    file.write_text(json.dumps(document), encoding="utf-8")


def calls_of(archive: Path) -> Sequence[dict[str, Any]]:
    """Requests and answers in the HTTP archive of a walk."""
    calls: list[dict[str, Any]] = json.loads(archive.read_text(encoding="utf-8"))["log"]["entries"]
    return calls


def shown_of(calls: Sequence[Mapping[str, Any]], names: Collection[str]) -> list[str]:
    """Answers that have a name which their request has not said."""
    found = []
    for entry in calls:
        asked, content = json.dumps(entry["request"]), entry["response"]["content"]
        text = content.get("text") or ""
        if content.get("encoding") == "base64":
            text = base64.b64decode(text).decode(errors="replace")
        shown = [name for name in names if name in text and name not in asked]
        if shown:
            found.append(f"{entry['request']['method']} {entry['request']['url']}: {shown}"[:300])
    return found


async def walk(
    stack: StackHarness, description: Path, seconds: float, *options: str, headers: Mapping[str, str]
) -> Walk:
    """Runs Schemathesis over the description with all its checks; it is killed after `seconds`."""
    sent = [option for name, value in headers.items() for option in ("--header", f"{name}: {value}")]
    process = await asyncio.create_subprocess_exec(
        *bound(sys.executable, "-m", "schemathesis.cli", "--config-file", str(_CONFIG)),
        *("run", str(description)),
        *("--url", f"http://{stack.stack.gateway_http}", "--checks", "all", "--no-color", *sent, *options),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        # It writes what it remembers of a failure below its working directory.
        cwd=description.parent,
    )
    output, _ = await output_of(process, seconds)
    assert process.returncode is not None
    return Walk(process.returncode, output.decode(errors="replace"))


def _shorten_lists(schema: Any) -> None:
    """Leaves out bounds of long lists and objects: to make one of a thousand takes longer than all else.

    They have tests of their own, with every request.
    """
    if isinstance(schema, list):
        for each in schema:
            _shorten_lists(each)
    elif isinstance(schema, dict):
        for name in ("maxItems", "maxProperties"):
            if isinstance(schema.get(name), int) and schema[name] > _SHORT_LIST:
                del schema[name]
        for each in schema.values():
            _shorten_lists(each)


def _or_known(schema: Mapping[str, Any], values: Sequence[str]) -> dict[str, Any]:
    return {"anyOf": [{"enum": list(values)}, schema]}


def _form(number: int, **fields: str) -> aiohttp.FormData:
    form = aiohttp.FormData(fields)
    lines = "".join(json.dumps(_line(row)) + "\n" for row in range(_ROWS))
    form.add_field("file", lines, filename=f"rows-{number}.jsonl")
    return form


def _line(row: int) -> dict[str, object]:
    messages = [{"role": "user", "content": f"Say the key. KEY=k{row}"}]
    body = {"model": MODEL, "messages": messages}
    return {"custom_id": f"row-{row}", "method": "POST", "url": "/v1/chat/completions", "body": body}


async def _made(stack: StackHarness, path: str, field: str, **more: Any) -> str:
    answer = await http(stack, "POST", path, **more)
    assert answer.status == 200, answer.body
    made: str = answer.body[field]
    return made
