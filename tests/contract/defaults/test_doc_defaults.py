"""The defaults that tables and sentences of docs state are those of the code."""

import re
from collections.abc import Mapping
from dataclasses import fields
from inspect import signature

import pytest
import yaml
from pydantic_settings import BaseSettings

from proctor.cli.rollouts.artifacts import fetch_artifacts
from proctor.stack.pools import REMOTE_PROVIDERS
from proctor.values.priority import Priority
from proctor.values.rollout import RolloutAgent, RolloutLimits
from proctor.values.row_fields import MAX_MESSAGES
from proctor.values.run import DEFAULT_MAX_FAILED_SHARE
from proctor.values.scoring import GroupMetric
from services.gateway.server.middleware import BODY_SECONDS
from services.gateway.settings import GatewaySettings
from services.results.scoring.answer_rules import LETTERS
from services.results.scoring.compiled_scoring import CompiledMetric
from services.results.settings import ResultsSettings
from services.scheduler.batches import grpc_api as batches
from services.scheduler.batches import submit_batch
from services.scheduler.runs.orders.run_order import RunOrder
from services.scheduler.settings import SchedulerSettings
from services.scheduler.suites.format.schema import schema_faults
from services.scheduler.suites.format.yaml_tasks import DEFAULT_DELIMITER, DEFAULT_FEWSHOT_DELIMITER
from services.scheduler.suites.rows.parquet_process import MAX_GROUP_VALUES, MAX_ROW_VALUES
from services.scheduler.suites.rows.row_source import MAX_ROW_BYTES
from services.scheduler.suites.suite import CodeRule, FewshotRule, Generation
from services.scheduler.uploads import grpc_api as uploads
from services.scheduler.uploads.checking import check_file
from services.scheduler.uploads.concurrent_uploads import UploadLimits
from services.worker.rollouts import execute_rollout
from services.worker.rollouts.shell import execute_shell
from services.worker.sandboxes.sandbox import SandboxLimits
from services.worker.settings import WorkerSettings
from services.worker.verification import check_code, execute_pytest, verify_rollout
from tests.contract.defaults.stated import ROOT, default_cells, default_sentences, docs, rows

MIB = 1024**2
ARTIFACTS = signature(fetch_artifacts).parameters
CHART = yaml.safe_load((ROOT / "deploy/helm/proctor/values.yaml").read_text(encoding="utf-8"))
SETTINGS: tuple[type[BaseSettings], ...] = (
    GatewaySettings,
    SchedulerSettings,
    ResultsSettings,
    WorkerSettings,
)
# How settings are counted, by the end of their names, unless they are counted in pieces.
UNITS = {"bytes": ((1024**3, "GiB"), (MIB, "MiB"), (10**9, "GB"), (10**6, "MB")), "seconds": ((3600, "h"),)}


def shown(name: str, value: float) -> str:
    """A number as docs write it: `8 GiB`, `3 h`, `60 s`, `50,000`."""
    ends = next((unit for unit in UNITS if f"_{unit}" in name), "")
    for size, unit in UNITS.get(ends, ()):
        if value >= size and value % size == 0:
            return f"{value / size:g} {unit}"
    return f"{value:g} s" if ends == "seconds" else f"{value:,.0f}"


def setting_defaults() -> Mapping[str, str]:
    """What each variable of a service is unless it is set, as docs write it."""
    found: dict[str, str] = {}
    for kind in SETTINGS:
        for name, field in kind.model_fields.items():
            value = field.get_default(call_default_factory=True, validated_data={})
            if isinstance(value, int | float):
                found[f"{kind.model_config['env_prefix']}{name.upper()}"] = shown(name, value)
    return found


def mib(count: int) -> str:
    return f"{count // 1024**3} GiB" if count % 1024**3 == 0 else f"{count // MIB} MiB"


AGENT = RolloutAgent()
NEEDED = {(fault.path[0]) for kind in ("suite", "task") for fault in schema_faults({}, kind)}
NONE = "none"
DELIMITERS = {" ": "one space", "\n\n": "an empty line"}
BATCH, DATASETS, ROLLOUTS, SUITES = "batches.md", "datasets.md", "rollouts.md", "suites.md"
# Cells without a setting beside them.
CELLS: Mapping[tuple[str, str], str] = {
    (BATCH, "a line"): mib(MAX_ROW_BYTES),
    (
        BATCH,
        "metadata",
    ): f"{submit_batch.MAX_METADATA_PAIRS} pairs, keys of {submit_batch.MAX_KEY_CHARACTERS} and "
    f"values of {submit_batch.MAX_VALUE_CHARACTERS} characters",
    (BATCH, "files, batches of a page"): f"{uploads.MAX_PAGE_SIZE:,} and {batches.MAX_PAGE_SIZE}",
    (DATASETS, "a line; in CSV also a row of many lines. In messages with parts, text counts twice"): mib(
        MAX_ROW_BYTES
    ),
    (DATASETS, "messages of a line"): f"{MAX_MESSAGES:,}",
    (DATASETS, "values in lists and objects of a Parquet row; in lists of a row group"): (
        f"{MAX_ROW_VALUES:,}; {MAX_GROUP_VALUES:,}"
    ),
    (
        DATASETS,
        f"a compressed file that decompresses to more than {mib(check_file.FREE_DECOMPRESSED_BYTES)}",
    ): (f"{check_file.MAX_EXPANSION} times its size"),
    (ROLLOUTS, "kind"): f"`{AGENT.kind}`",
    (ROLLOUTS, "max_steps"): f"{AGENT.max_steps}",
    (ROLLOUTS, "max_tokens"): f"{AGENT.max_tokens:,}",
    (ROLLOUTS, "command_seconds"): f"{AGENT.command_seconds:g}",
    (SUITES, "aggregate_metric_list"): "every metric, by size",
    (SUITES, "description"): "empty",
    (SUITES, "metadata"): "empty",
    (SUITES, "doc_to_choice_text"): "the choice",
    (SUITES, "target_delimiter"): DELIMITERS[DEFAULT_DELIMITER],
    (SUITES, "fewshot_delimiter"): DELIMITERS[DEFAULT_FEWSHOT_DELIMITER],
    (SUITES, "num_fewshot"): f"{FewshotRule().num_fewshot}",
    (SUITES, "fewshot_config"): "below",
    (SUITES, "generation_kwargs"): "below",
    (SUITES, "until"): "`fewshot_delimiter`",
    (SUITES, "max_gen_toks"): f"{Generation().max_tokens}",
    (SUITES, "temperature"): f"{Generation().temperature:g}",
    (SUITES, "do_sample"): "derived from the temperature; must agree with it",
    (SUITES, "sampler"): f"`{FewshotRule().sampler}`",
    (SUITES, "drop_document"): str(FewshotRule().drops_document).lower(),
    (SUITES, "seed"): f"{FewshotRule().seed}",
    (SUITES, "prefix"): "nothing",
    (SUITES, "answer"): f"`{CodeRule().answer}`",
    (SUITES, "timeout"): f"{CodeRule().timeout_seconds:g}",
    (SUITES, "weight_by_size"): str(GroupMetric("acc").is_weighted_by_size).lower(),
    (SUITES, "aggregation"): "`mean`",
    (SUITES, "metric"): "needed",
    (SUITES, "filter_list"): NONE,
}
UNSET = {
    **{
        (ROLLOUTS, field): getattr(AGENT, field)
        for field in ("max_cost", "template", "command", "environment")
    },
    (SUITES, "top_p"): Generation().top_p,
    (SUITES, "samples"): FewshotRule().samples,
}
# The sentences with the word that state a default of ours, each with the part that the code decides.
SENTENCES: Mapping[str, str] = {
    "default: the letters": f"the letters {LETTERS[0]} to {LETTERS[-1]}",
    "A retry opens a new window. Default:": "Default: the time limit of a run",
    "`TIMEOUT_SEC`": f"({RolloutLimits().agent_seconds:,.0f} by default)",
    "proctor run --scoring-method": "`loglikelihood` if the model's engine supports it, else `generate`",
    "of label 1;": f"`{CompiledMetric('f1').average}` (default)",
    "By default three runs": "three",
    "It is off by default": "off" if not RunOrder("glue", "vllm/starter").stream_answers else "on",
    "`weight_by_size`, the default": "`weight_by_size`, the default",
    "the allowed share": f"{DEFAULT_MAX_FAILED_SHARE:.0%}".replace("%", " %") + " by default",
    "- Defaults are those there": "Defaults are those there:",
    "proctor rollouts artifacts": f"DIR is {ARTIFACTS['folder'].default} by default",
    "`postgres.cluster.synchronous`": f"{CHART['postgres']['cluster']['synchronous']} by default",
}
# What it is the default of is not part of Proctor, or the word is a name.
OTHERS = (
    "Docker's default",
    "of the host without a default",
    "`default` draws",
    "`auto`, `default` or `flex`",
)
STATED = default_cells()


def cells_beside_settings() -> list[tuple[str, str, str]]:
    """Page, default and settings of rows with a variable beside them."""
    return [
        (path.name, row["default"], cell)
        for path in docs()
        for row in rows(path)
        if "default" in row
        for column, cell in row.items()
        if column in ("setting", "environment") and "PROCTOR_" in cell
    ]


@pytest.mark.parametrize(("page", "cell", "variables"), cells_beside_settings())
def test_a_default_beside_a_setting_is_that_of_the_setting(page: str, cell: str, variables: str) -> None:
    named = re.findall(r"PROCTOR_(?:SCHEDULER|RESULTS|WORKER|GATEWAY)_[A-Z_]+", variables)
    stated = cell.replace("`", "").split("; ")
    known = setting_defaults()
    if named == ["PROCTOR_SCHEDULER_HIGHEST_PRIORITIES"]:
        # No limit: the highest that there is.
        assert (
            SchedulerSettings.model_fields["highest_priorities"].get_default(call_default_factory=True)
        ) == {}
        assert stated == [min(Priority)]
        return
    ours = [name for name in named if not name.startswith("PROCTOR_GATEWAY_")]
    assert ours
    for name, text in zip(ours, stated, strict=False):
        assert text == known[name], f"{page}: {name}"


def test_a_form_has_room_for_the_largest_file() -> None:
    """The gateway's own limits include the form around a file."""
    gateway, scheduler = GatewaySettings.model_fields, SchedulerSettings.model_fields
    for outer, inner in (
        ("max_dataset_body_bytes", "max_dataset_bytes"),
        ("max_batch_file_body_bytes", "max_batch_file_bytes"),
        ("max_tasks_body_bytes", "max_tasks_bytes"),
    ):
        assert gateway[outer].default > scheduler[inner].default


@pytest.mark.parametrize(("page", "key"), [*STATED])
def test_every_cell_with_a_default_is_held_to_the_code(page: str, key: str) -> None:
    cell = STATED[page, key]
    if any(cell == default for _, default, _ in cells_beside_settings()) and (page, key) not in CELLS:
        return
    if (page, key) in UNSET:
        assert not UNSET[page, key]
        assert cell == NONE
    elif (page, key) in CELLS:
        assert cell == CELLS[page, key]
    elif page == SUITES:
        assert cell == ("needed" if key in NEEDED else NONE)
    else:
        assert (page, key, cell) in {
            (DATASETS, "all that a user stores", cell),
            (DATASETS, "duration of an upload", cell),
        }


def test_what_a_user_may_store_and_how_long_an_upload_may_take() -> None:
    known = setting_defaults()
    stored = [known[f"PROCTOR_SCHEDULER_MAX_STORED_{kind}_PER_USER"] for kind in ("BYTES", "FILES", "ROWS")]
    assert STATED[DATASETS, "all that a user stores"] == "{}, {} files, {} rows".format(*stored)
    silent = next(each for each in fields(UploadLimits) if each.name == "silent_seconds").default
    longest = known["PROCTOR_SCHEDULER_UPLOAD_TIMEOUT_SECONDS"]
    stated = STATED[DATASETS, "duration of an upload"]
    assert stated == f"{longest}; {BODY_SECONDS:g} s without a byte, over gRPC {silent:g} s"


def test_the_limits_of_sandboxes_are_those_that_are_ordered() -> None:
    agent, usual = RolloutLimits(), SandboxLimits()
    code = check_code.SPEC.limits
    page = {
        row["resource"]: (row["code of an answer"], row["agent of a rollout"], row["tests of a rollout"])
        for row in rows(ROOT / "docs" / "operations" / "sandboxes.md")
        if "agent of a rollout" in row
    }
    assert page == {
        "memory, files in memory included": (mib(code.memory_bytes), *2 * (mib(agent.memory_bytes),)),
        "processes": (
            str(code.processes),
            str(execute_rollout.MAX_PROCESSES),
            str(verify_rollout.MAX_PROCESSES),
        ),
        "CPU": (f"{code.cpus:g}", *2 * (f"{agent.cpus:g}",)),
        "size of a writable folder": (mib(code.disk_bytes), *2 * (mib(agent.disk_bytes),)),
        "files": (f"{code.files:,}", *2 * (f"{usual.files:,}",)),
        "output kept of a command": tuple(
            f"{module.OUTPUT_BYTES // 1000} kB" for module in (check_code, execute_shell, verify_rollout)
        ),
    }
    script = execute_pytest.LIMITS
    text = (ROOT / "docs" / "operations" / "sandboxes.md").read_text(encoding="utf-8")
    assert (
        f"a sandbox of its own with {script.cpus:g} CPU, {mib(script.memory_bytes)} of memory, "
        f"{script.processes} processes, folders of {mib(script.disk_bytes)} and "
        f"{execute_pytest.OUTPUT_BYTES // 1000} kB of output." in text
    )


@pytest.mark.parametrize(("page", "sentence"), [*default_sentences()])
def test_every_sentence_with_a_default_is_held_to_the_code(page: str, sentence: str) -> None:
    if any(other in sentence for other in OTHERS) or sentence.strip("| ").startswith(
        ("default", "default |")
    ):
        return
    [part] = [part for begin, part in SENTENCES.items() if begin in sentence]
    assert part in sentence, page


def test_numbers_in_words_are_those_of_the_settings() -> None:
    assert SchedulerSettings.model_fields["max_running_runs"].default == 3


@pytest.mark.parametrize("provider", ["ollama"])
def test_the_address_of_a_provider_is_the_one_that_is_asked(provider: str) -> None:
    stated = {
        row["provider"]: row["default address"]
        for path in docs()
        for row in rows(path)
        if "default address" in row
    }
    assert f"`{REMOTE_PROVIDERS[provider].base_url}`" in stated[f"`{provider}`"]
