"""The defaults that help texts, descriptions of REST and meanings of settings state are those of the code."""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer
from fastapi import FastAPI
from pydantic import BaseModel
from pydantic_settings import BaseSettings

from proctor.cli.__main__ import app
from proctor.cli.gateway import find_gateway, page_address
from proctor.cli.rollouts.git_folders import DEFAULT_REVISION
from proctor.cli.runs.order import OrderOptions, order_of
from proctor.stack.options import DEFAULT_GATEWAY_GRPC
from proctor.v1 import dataset_service_pb2 as dataset_pb2
from proctor.v1 import run_pb2
from proctor.values.priority import default_priority
from proctor.values.rollout import RolloutAgent
from services.common.process import MIN_DISPATCH_PROOF_KEY_CHARACTERS
from services.gateway.api.comparisons.routes import CompareRequest
from services.gateway.api.dataset_runs.requests import DatasetRunRequest
from services.gateway.api.openai import BatchRequest
from services.gateway.api.rescoring import RescoreRequest
from services.gateway.api.runs.requests import RunRequest
from services.gateway.auth.admission import STREAMED_BYTES
from services.gateway.server.app import served_routes
from services.gateway.settings import MIN_KEY_CHARACTERS, GatewaySettings
from services.results.settings import ResultsSettings
from services.results.statistics.metric_names import ACCURACY, SCORE, metric_named
from services.scheduler.rate_limits.rate_meter import MIN_REQUEST_RETRIES
from services.scheduler.settings import SchedulerSettings
from services.scheduler.uploads.checking.compression import detect_format
from services.scheduler.uploads.dataset import DatasetFormat
from services.worker.rollouts.wiring import ROLLOUTS_PER_CORE
from services.worker.settings import WorkerSettings

# A text that states a default, or the effect of something that is not set.
STATES = re.compile(
    r"\bdefaults?\b|\bunset\b|\bunless .* set\b|\b(?:empty|null|0) means|\bwithout it\b|; [\d,]+$|; no limit",
    re.IGNORECASE,
)
HIGH, NORMAL = default_priority(is_background=False), default_priority(is_background=True)
AGENT = RolloutAgent()
SETTINGS: tuple[type[BaseSettings], ...] = (
    GatewaySettings,
    SchedulerSettings,
    ResultsSettings,
    WorkerSettings,
)


def fields_of(model: type[BaseModel], **given: object) -> Mapping[str, Any]:
    return model.model_validate(given).model_dump()


RUN = fields_of(RunRequest, project_id=1, suite="glue", config={"provider": "vllm", "model": "starter"})
DATASET_RUN = fields_of(DatasetRunRequest, model_id="vllm/starter", dataset_id=f"ds_{'0' * 32}")
COMPARISON = fields_of(CompareRequest, model_ids=["vllm/a", "vllm/b"], benchmark_suite="glue")
RESCORING = fields_of(RescoreRequest, task="rte")
BATCH = fields_of(BatchRequest, input_file_id="file-1", endpoint="/v1/completions", completion_window="24h")
ORDER = order_of(OrderOptions(model="vllm/starter", dataset=f"ds_{'0' * 32}"))
METRIC = f"default: {ACCURACY}, or {SCORE} if no task has it"
IS_ACCURACY = metric_named("", ["acc", SCORE]) == "acc" and metric_named("", [SCORE]) == SCORE
IS_BY_NAME_AND_CONTENT = (
    detect_format("a.csv", b"{"),
    detect_format("a", b"{"),
    detect_format("a", b"x,y"),
) == (
    DatasetFormat.CSV,
    DatasetFormat.JSONL,
    DatasetFormat.CSV,
)
FIRST_METRIC = "the task's first per-sample metric"
# What an option's help says, the part that the code decides, and whether the code does so.
HELP: Mapping[str, tuple[str, bool]] = {
    "--gateway": (f"else PROCTOR_GATEWAY_GRPC_ADDRESS, else {DEFAULT_GATEWAY_GRPC}.", True),
    "run --metric": ("Default: not at all.", not ORDER.metrics),
    "run --priority": (f"default: {HIGH}, {NORMAL} for a data set.", not ORDER.priority),
    "results --metric": (FIRST_METRIC, True),
    "side-by-side --metric": (FIRST_METRIC, True),
    "compare --metric": ("Default: each task's main metric.", not COMPARISON["metrics"]),
    "leaderboard --metric": (METRIC, IS_ACCURACY),
    "history --metric": (METRIC, IS_ACCURACY),
    "open wanted": ("without it the overview", True),
    "rollouts summarize --latest": ("The latest; the default.", True),
    "rollouts eval --latest": ("The latest; the default.", True),
    "rollouts check --revision": (f"default: {DEFAULT_REVISION}.", True),
    "datasets upload --name": ("default: that of the file", True),
    "datasets upload --format": (
        "default: by the file's name and content.",
        IS_BY_NAME_AND_CONTENT and not dataset_pb2.DATASET_FORMAT_UNSPECIFIED,
    ),
}
# The same of descriptions of REST, by schema and field or by the last part of a path and the parameter.
DESCRIPTIONS: Mapping[str, tuple[str, bool]] = {
    "export.csv_safe": ("by default for browsers only", True),
    "results.csv_safe": ("by default for browsers only", True),
    "upload.format": ("Detected from the name and the content if unset", IS_BY_NAME_AND_CONTENT),
    "AgentBudgets.max_steps": (f"; {AGENT.max_steps}", True),
    "AgentBudgets.max_tokens": (f"; {AGENT.max_tokens:,}", True),
    "AgentBudgets.command_seconds": (f"; {AGENT.command_seconds:g}", True),
    "AgentBudgets.max_cost": ("; no limit", AGENT.max_cost is None),
    "BatchRequest.output_expires_after": ("Unset: its files are kept", BATCH["output_expires_after"] is None),
    "CompareRequest.metrics": ("Empty means each task's main metric", not COMPARISON["metrics"]),
    "CompareRequest.tasks": ("Empty means all", not COMPARISON["tasks"]),
    "DatasetRunRequest.metrics": ("empty means no scoring", not DATASET_RUN["metrics"]),
    "DatasetRunRequest.params": ("parameters of a row override them", DATASET_RUN["params"] is None),
    "DatasetRunRequest.priority": (f"{NORMAL} if unset", DATASET_RUN["priority"] is None),
    "RescoreRequest.metrics": ("empty means the task's own", not RESCORING["metrics"]),
    "RescoreRequest.filters": ("null means the task's own, empty means none", RESCORING["filters"] is None),
    "RunRequest.tasks": ("empty means all", not RUN["tasks"]),
}
# Schemas of responses, where null says that there is no figure; and numbers that the provider understands.
NO_DEFAULT = re.compile(r"(?:null means|0 means no limit$|defaults?; parameters of a row)", re.IGNORECASE)
# Meanings of settings with a number or a value: variable and the part that the code decides.
MEANINGS: Mapping[str, str] = {
    "api_keys": f"{MIN_KEY_CHARACTERS} characters or more. Empty: all are operators",
    "max_bytes_per_user": f"An upload counts as {STREAMED_BYTES >> 20} MiB.",
    "max_request_retry_share": {100: "at least a hundred."}[MIN_REQUEST_RETRIES],
    "max_reads_per_minute": "0 means no limit.",
    "max_stored_bytes_per_project": "0 means no limit.",
    "sandbox_slots": "0 means one per core.",
    "rollout_slots": f"0 means {({4: 'four'})[ROLLOUTS_PER_CORE]} per core.",
    "sandbox_runtime_class": "empty means the cluster's default.",
    "scheduler_address": "unless PROCTOR_SCHEDULER_LISTEN_ADDRESS is set.",
    "results_address": "unless PROCTOR_RESULTS_LISTEN_ADDRESS is set.",
    "metrics_address": "They are not served unless it is set.",
    "traces_endpoint": "there are none unless it is set.",
    "dispatch_proof_key": f"of {MIN_DISPATCH_PROOF_KEY_CHARACTERS} characters or more.",
    "sandbox_max_cpus": "0 means all that the machine has, and no bound for pods and Modal.",
}


def help_texts() -> Iterator[tuple[str, str]]:
    """Each option and argument with its help, as `rollouts run --data`."""

    def of(command: Any, path: tuple[str, ...]) -> Iterator[tuple[str, str]]:
        for option in command.params:
            if text := getattr(option, "help", None):
                yield " ".join((*path, option.opts[-1])), text
        for name, inner in getattr(command, "commands", {}).items():
            yield from of(inner, (*path, name))

    yield from of(typer.main.get_command(app), ())


@cache
def openapi() -> Mapping[str, Any]:
    described = FastAPI()
    described.router.routes.extend(served_routes())
    return described.openapi()


def descriptions() -> Iterator[tuple[str, str]]:
    """Each parameter and each field of a schema with its description."""
    document = openapi()
    for path, methods in document["paths"].items():
        last = [part for part in path.split("/") if part and not part.startswith("{")][-1]
        for method in methods.values():
            for each in method.get("parameters", ()):
                yield f"{last}.{each['name']}", each.get("description", "")
    for name, schema in document["components"]["schemas"].items():
        for field, part in schema.get("properties", {}).items():
            yield f"{name}.{field}", part.get("description", "")


STATED_HELP = {name: text for name, text in help_texts() if STATES.search(text)}
STATED_DESCRIPTIONS = {name: text for name, text in descriptions() if STATES.search(text)}
STATED_MEANINGS = {
    name: " ".join(field.description.split())
    for kind in SETTINGS
    for name, field in kind.model_fields.items()
    if field.description and (STATES.search(field.description) or name in MEANINGS)
}


@pytest.mark.parametrize("option", STATED_HELP)
def test_the_default_in_a_help_text_is_that_of_the_code(option: str) -> None:
    part, holds = HELP["--gateway" if option.endswith("--gateway") else option]
    assert part in STATED_HELP[option]
    assert holds


@pytest.mark.parametrize("field", STATED_DESCRIPTIONS)
def test_the_default_in_a_description_is_that_of_the_code(field: str) -> None:
    text = STATED_DESCRIPTIONS[field]
    part, holds = DESCRIPTIONS.get(field, ("", bool(NO_DEFAULT.search(text))))
    assert part in text
    assert holds, text


@pytest.mark.parametrize("setting", STATED_MEANINGS)
def test_the_value_in_the_meaning_of_a_setting_is_that_of_the_code(setting: str) -> None:
    assert MEANINGS[setting] in STATED_MEANINGS[setting]


def test_every_entry_is_of_a_text_that_there_is() -> None:
    options = {"--gateway" if name.endswith("--gateway") else name for name in STATED_HELP}
    assert (set(HELP) - options, set(DESCRIPTIONS) - set(STATED_DESCRIPTIONS)) == (set(), set())
    assert set(MEANINGS) - set(STATED_MEANINGS) == set()


def test_a_gateway_and_a_page_that_are_not_named_are_those_of_the_help(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".proctor").mkdir()
    monkeypatch.chdir(tmp_path)
    assert find_gateway(None, {}) == DEFAULT_GATEWAY_GRPC
    assert find_gateway(None, {"PROCTOR_GATEWAY_GRPC_ADDRESS": "127.0.0.1:2"}) == "127.0.0.1:2"
    assert not page_address("", {})


def test_a_help_text_shows_the_other_defaults_itself() -> None:
    """What has a value is shown by the parser, so no text repeats it."""
    root = typer.main.get_command(app)
    assert run_pb2.PRIORITY_UNSPECIFIED == 0
    assert all(
        option.show_default is not False
        for command in getattr(root, "commands", {}).values()
        for option in command.params
        if isinstance(getattr(option, "default", None), int | float) and not isinstance(option.default, bool)
    )
