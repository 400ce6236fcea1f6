"""Writes values of the code into tables of guides: all cells of the columns that are named here."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from pathlib import Path

from jinja2.sandbox import MAX_RANGE
from pydantic_settings import BaseSettings

from proctor.values.priority import Priority
from proctor.values.rollout import RolloutAgent, RolloutLimits
from proctor.values.row_fields import MAX_MESSAGES
from proctor.values.sample import MAX_SUITE_BYTES
from proctor.values.scoring import GroupMetric
from services.common.sandboxes.sandbox import SandboxLimits
from services.gateway.server.middleware import BODY_SECONDS
from services.gateway.settings import GatewaySettings
from services.results.settings import ResultsSettings
from services.scheduler.batches import grpc_api as batches
from services.scheduler.batches import submit_batch
from services.scheduler.settings import SchedulerSettings
from services.scheduler.suites import add_suite, show_sample
from services.scheduler.suites.format.schema import schema_faults
from services.scheduler.suites.format.suite_document import MAX_FILES, MAX_NAME_BYTES, MAX_PATH_BYTES
from services.scheduler.suites.format.yaml_tasks import DEFAULT_DELIMITER, DEFAULT_FEWSHOT_DELIMITER
from services.scheduler.suites.rows.parquet_process import MAX_GROUP_VALUES, MAX_ROW_VALUES
from services.scheduler.suites.rows.row_source import MAX_ROW_BYTES
from services.scheduler.suites.suite import CodeRule, FewshotRule, Generation
from services.scheduler.suites.templates import budget, cost_writer
from services.scheduler.uploads import grpc_api as uploads
from services.scheduler.uploads.checking import check_file
from services.scheduler.uploads.concurrent_uploads import UploadLimits
from services.worker.rollouts import execute_rollout
from services.worker.rollouts.shell import execute_shell
from services.worker.settings import WorkerSettings
from services.worker.verification import check_code, execute_pytest, verify_rollout

DOCS = Path(__file__).resolve().parent
SETTINGS: tuple[type[BaseSettings], ...] = (
    GatewaySettings,
    SchedulerSettings,
    ResultsSettings,
    WorkerSettings,
)
MIB = 1024**2
UNITS = {
    "bytes": ((1024**3, "GiB"), (MIB, "MiB"), (10**9, "GB"), (10**6, "MB")),
    "seconds": ((3600, "h"), (1, "s")),
}
_CELL_END = re.compile(r"(?<!\\)\|")
_CODE = re.compile(r"^`([^`]*)`$")
_VARIABLE = re.compile(r"PROCTOR_(?:SCHEDULER|RESULTS|WORKER)_[A-Z_]+")
Rows = Mapping[str, str | Sequence[str]]


def sized(count: float, kind: str) -> str:
    """`8 GiB`, `3 h`, and `50,000` where no unit fits."""
    for size, unit in UNITS.get(kind, ()):
        if count >= size and count % size == 0:
            return f"{count / size:g} {unit}"
    return f"{count:,.0f}"


def mib(count: int) -> str:
    return sized(count, "bytes")


def setting_defaults() -> Mapping[str, str]:
    """The default of each variable of a service that is a number."""
    found: dict[str, str] = {}
    for kind in SETTINGS:
        for name, field in kind.model_fields.items():
            value = field.get_default(call_default_factory=True, validated_data={})
            if isinstance(value, int | float):
                unit = next((unit for unit in UNITS if f"_{unit}" in name), "")
                found[f"{kind.model_config['env_prefix']}{name.upper()}"] = sized(value, unit)
    return found


KNOWN = setting_defaults()


def batch_rows() -> Rows:
    return {
        "a line": mib(MAX_ROW_BYTES),
        "pairs of `metadata`; characters of a key; of a value": (
            f"{submit_batch.MAX_METADATA_PAIRS}; {submit_batch.MAX_KEY_CHARACTERS}; "
            f"{submit_batch.MAX_VALUE_CHARACTERS}"
        ),
        "files of a page; batches of a page": f"{uploads.MAX_PAGE_SIZE:,}; {batches.MAX_PAGE_SIZE}",
    }


def dataset_rows() -> Rows:
    stored = (KNOWN[f"PROCTOR_SCHEDULER_MAX_STORED_{kind}_PER_USER"] for kind in ("BYTES", "FILES", "ROWS"))
    silent = next(each for each in fields(UploadLimits) if each.name == "silent_seconds").default
    return {
        "a line; in CSV also a row of many lines. In messages with parts, text counts twice": mib(
            MAX_ROW_BYTES
        ),
        "messages of a line": f"{MAX_MESSAGES:,}",
        "values in lists and objects of a Parquet row; in lists of a row group": (
            f"{MAX_ROW_VALUES:,}; {MAX_GROUP_VALUES:,}"
        ),
        "size of a file decompressed, relative to its own": (
            f"{check_file.MAX_EXPANSION} times, from {mib(check_file.FREE_DECOMPRESSED_BYTES)} on"
        ),
        "bytes, files and rows that a user stores": "; ".join(stored),
        "duration of an upload": KNOWN["PROCTOR_SCHEDULER_UPLOAD_TIMEOUT_SECONDS"],
        "time without a byte over HTTP; over gRPC": f"{BODY_SECONDS:g} s; {silent:g} s",
    }


def rollout_rows() -> Rows:
    agent = RolloutAgent()
    return {
        "kind": f"`{agent.kind}`",
        "max_steps": f"{agent.max_steps}",
        "max_tokens": f"{agent.max_tokens:,}",
        "command_seconds": f"{agent.command_seconds:g}",
        "verification": f"`{agent.verification}`",
        **{
            name: str(getattr(agent, name) or "none")
            for name in ("max_cost", "template", "command", "environment", "version")
        },
    }


def sandbox_rows() -> Rows:
    code, script, usual = check_code.SPEC.limits, execute_pytest.LIMITS, SandboxLimits()
    agent = RolloutLimits()
    outputs = (check_code, execute_shell, verify_rollout, execute_pytest)
    return {
        "memory, files in memory included": [mib(each.memory_bytes) for each in (code, agent, agent, script)],
        "processes": [
            f"{each}"
            for each in (
                code.processes,
                execute_rollout.MAX_PROCESSES,
                verify_rollout.MAX_PROCESSES,
                script.processes,
            )
        ],
        "CPU": [f"{each.cpus:g}" for each in (code, agent, agent, script)],
        "size of a writable folder": [mib(each.disk_bytes) for each in (code, agent, agent, script)],
        "files": [f"{each:,}" for each in (code.files, usual.files, usual.files, script.files)],
        "output kept of a command": [f"{module.OUTPUT_BYTES // 1000} kB" for module in outputs],
    }


def suite_rows() -> Rows:
    needed = {str(fault.path[0]) for kind in ("suite", "task") for fault in schema_faults({}, kind)}
    fewshot, generation, code = FewshotRule(), Generation(), CodeRule()
    in_words = {" ": "one space", "\n\n": "an empty line"}
    return {
        **dict.fromkeys(needed, "needed"),
        **dict.fromkeys(("groups", "judges", "include", "doc_to_choice", "doc_to_answers"), "none"),
        **dict.fromkeys(("doc_to_wrong_target", "doc_to_cluster", "gen_prefix", "filter_list"), "none"),
        **dict.fromkeys(("description", "metadata"), "empty"),
        "aggregate_metric_list": "every metric, by size",
        "doc_to_choice_text": "the choice",
        "doc_to_counted_text": "the target",
        "target_delimiter": in_words[DEFAULT_DELIMITER],
        "fewshot_delimiter": in_words[DEFAULT_FEWSHOT_DELIMITER],
        "num_fewshot": f"{fewshot.num_fewshot}",
        "repeats": "1",
        **dict.fromkeys(("fewshot_config", "generation_kwargs"), "below"),
        "until": "`fewshot_delimiter`",
        "max_gen_toks": f"{generation.max_tokens}",
        "temperature": f"{generation.temperature:g}",
        "top_p": f"{generation.top_p or 'none'}",
        "do_sample": "derived from the temperature; must agree with it",
        "sampler": f"`{fewshot.sampler}`",
        "drop_document": str(fewshot.drops_document).lower(),
        "seed": f"{fewshot.seed}",
        "samples": "none" if not fewshot.samples else "some",
        "prefix": "nothing",
        "answer": f"`{code.answer}`",
        "timeout": f"{code.timeout_seconds:g}",
        "metric": "needed",
        "weight_by_size": str(GroupMetric("acc").is_weighted_by_size).lower(),
        "aggregation": "`mean`",
        **template_rows(),
    }


def template_rows() -> Rows:
    parts = f"{cost_writer.MAX_PARTS:,}; {cost_writer.MAX_DEPTH}"
    seconds = f"{add_suite.TIMEOUT_SECONDS:g} s; {show_sample.TIMEOUT_SECONDS:g} s"
    return {
        "characters of a template; parts; levels": (
            f"{cost_writer.MAX_SOURCE_CHARACTERS // 1024} Ki; {parts}"
        ),
        "steps of a rendering: parts evaluated again, items looked at": f"{budget.MAX_STEPS:,}",
        "characters that a rendering makes or reads": f"{budget.MAX_CHARACTERS // MIB} Mi",
        "time for regular expressions of a rendering": f"{budget.MAX_REGEX_SECONDS:g} s",
        "bits of a whole number": f"{budget.MAX_INTEGER_BITS:,}",
        "numbers of a `range`": f"{MAX_RANGE:,}",
        "a row; a sample": f"{mib(MAX_ROW_BYTES)}; {mib(MAX_ROW_BYTES)}",
        "time of a check; of showing a sample": seconds,
        "a stored suite; its files; bytes of a path; of a name in it": (
            f"{mib(MAX_SUITE_BYTES)}; {MAX_FILES}; {MAX_PATH_BYTES:,}; {MAX_NAME_BYTES}"
        ),
    }


def schedule_rows() -> Rows:
    reads = KNOWN["PROCTOR_SCHEDULER_MAX_READS_PER_MINUTE"]
    return {
        "reads of a user per minute": f"{reads}; none for `proctor up`",
        "highest priority of a user; `*` is every other user": f"`{min(Priority)}`",
    }


DEFAULT = ("default",)
# By page: the columns that are filled, and the cells of rows without a setting beside them.
TABLES: Mapping[str, tuple[Sequence[str], Rows]] = {
    "guides/batches.md": (DEFAULT, batch_rows()),
    "guides/datasets.md": (DEFAULT, dataset_rows()),
    "guides/rollouts.md": (DEFAULT, rollout_rows()),
    "guides/suites.md": (("default", "limit"), suite_rows()),
    "operations/scheduling.md": (DEFAULT, schedule_rows()),
    "operations/sandboxes.md": (
        ("code of an answer", "agent of a rollout", "tests of a rollout", "script of a rubric"),
        sandbox_rows(),
    ),
}


def filled(page: str) -> str:
    """The text of a page with the values of the code in its tables."""
    columns, cells = TABLES[page]
    return "".join(_filled_lines(page, columns, cells))


def _filled_lines(page: str, columns: Sequence[str], cells: Rows) -> Iterator[str]:
    used, header = set[str](), list[str]()
    for line in (DOCS / page).read_text(encoding="utf-8").splitlines(keepends=True):
        row = [cell.strip() for cell in _CELL_END.split(line.strip())[1:-1]]
        at = [number for number, name in enumerate(header) if name in columns]
        if not line.startswith("|"):
            header = []
        elif not header:
            header = row
        elif at and not set(line.strip()) <= set("|-: "):
            used.add(key := _CODE.sub(r"\1", row[0]))
            values = _values(page, key, row, cells)
            for number, value in zip(at, values, strict=True):
                row[number] = value
            yield f"| {' | '.join(row)} |\n".replace("|  |", "| |")
            continue
        yield line
    if unused := cells.keys() - used:
        raise SystemExit(f"docs/{page} has no rows for {', '.join(sorted(unused))}.")


def _values(page: str, key: str, row: Sequence[str], cells: Rows) -> Sequence[str]:
    if key in cells:
        value = cells[key]
        return [value] if isinstance(value, str) else value
    names = _VARIABLE.findall(row[-1])
    if not names or set(names) - KNOWN.keys():
        raise SystemExit(f"docs/{page}: docs/default_cells.py knows no value for the row {key!r}.")
    return ["; ".join(KNOWN[name] for name in names)]
