"""Checks of a task that the schema cannot express: whether its keys fit together."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import PurePosixPath
from typing import cast

from proctor.values.scoring import OutputType
from services.scheduler.suites.format.metric_checks import Fields, metric_faults
from services.scheduler.suites.format.suite_document import KeyPath, ValueFault, path_problem
from services.scheduler.suites.rows.row_source import is_hub_id
from services.scheduler.suites.templates.errors import InvalidTemplate
from services.scheduler.suites.templates.prompt_template import PromptTemplate, compile_template

TEMPLATE_KEYS = (
    "doc_to_text",
    "doc_to_choice",
    "doc_to_target",
    "doc_to_choice_text",
    "doc_to_answers",
    "doc_to_wrong_target",
    "doc_to_cluster",
    "doc_to_counted_text",
    "gen_prefix",
)
EXAMPLE_TEMPLATE_KEYS = ("doc_to_text", "doc_to_choice", "doc_to_target", "gen_prefix")
ROW_FILE_SUFFIXES = (".jsonl", ".json", ".csv", ".tsv", ".parquet")

CHOICE_FILTER = "multi_choice_regex"
_ONLY_FOR = {
    "doc_to_answers": OutputType.MULTIPLE_CHOICE,
    "doc_to_wrong_target": OutputType.GENERATE_UNTIL,
    "doc_to_counted_text": OutputType.LOGLIKELIHOOD_ROLLING,
    "generation_kwargs": OutputType.GENERATE_UNTIL,
    "repeats": OutputType.GENERATE_UNTIL,
}


def task_faults(fields: Fields, invalid_keys: frozenset[str]) -> Iterator[ValueFault]:
    """`invalid_keys` already violate the schema; checks that read them are skipped."""
    for check in _CHECKS:
        if invalid_keys.isdisjoint(check.keys):
            yield from check.faults(fields)


@lru_cache(maxsize=1024)
def compiled(source: str) -> PromptTemplate:
    """Cached, since the tasks of a suite share templates. Raises `InvalidTemplate`."""
    return compile_template(source)


def is_template(description: str) -> bool:
    """A description that names a column is a text: only one with marks of Jinja is rendered."""
    return any(mark in description for mark in ("{{", "{%", "{#"))


def _template_faults(fields: Fields) -> Iterator[ValueFault]:
    of_examples = cast("Fields", fields.get("fewshot_config", {}))
    sources: list[tuple[KeyPath, object]] = [((key,), fields.get(key)) for key in TEMPLATE_KEYS]
    if isinstance(description := fields.get("description"), str) and is_template(description):
        sources.append((("description",), description))
    if isinstance(of_examples, dict):
        sources += [(("fewshot_config", key), of_examples.get(key)) for key in EXAMPLE_TEMPLATE_KEYS]
    for path, source in sources:
        if isinstance(source, str):
            try:
                compiled(source)
            except InvalidTemplate as error:
                yield ValueFault(path, f"template error: {error}")


def _output_faults(fields: Fields) -> Iterator[ValueFault]:
    output_type = OutputType(str(fields["output_type"]))
    if output_type is OutputType.MULTIPLE_CHOICE and "doc_to_choice" not in fields:
        yield ValueFault(("output_type",), "multiple_choice needs doc_to_choice")
    for key, only_type in _ONLY_FOR.items():
        if key in fields and output_type is not only_type:
            yield ValueFault((key,), f"only {only_type} has it")


def _code_faults(fields: Fields) -> Iterator[ValueFault]:
    """A task that executes code must say `unsafe_code: true`, so that readers of the file see it."""
    if "code" not in fields:
        return
    if fields.get("unsafe_code") is not True:
        yield ValueFault(("code",), "answers are executed, in a sandbox: unsafe_code: true says so")
    if fields["output_type"] != OutputType.GENERATE_UNTIL:
        yield ValueFault(("code",), f"only {OutputType.GENERATE_UNTIL} has it")
    prefix = cast("Mapping[str, object]", fields["code"]).get("prefix")
    if prefix is not None:
        try:
            compiled(str(prefix))
        except InvalidTemplate as error:
            yield ValueFault(("code", "prefix"), f"template error: {error}")


def _rollout_faults(fields: Fields) -> Iterator[ValueFault]:
    if "rollout" not in fields:
        return
    if fields.get("unsafe_code") is not True:
        yield ValueFault(("rollout",), "agents execute commands, in a sandbox: unsafe_code: true says so")
    if fields["output_type"] != OutputType.GENERATE_UNTIL:
        yield ValueFault(("rollout",), f"only {OutputType.GENERATE_UNTIL} has it")
    if "code" in fields:
        yield ValueFault(("rollout",), "a task has code or rollout, not both")


def _target_faults(fields: Fields) -> Iterator[ValueFault]:
    target, choices = fields["doc_to_target"], fields.get("doc_to_choice")
    if isinstance(target, list) and fields["output_type"] != OutputType.MULTIPLE_CHOICE:
        yield ValueFault(("doc_to_target",), "only multiple_choice has indexes of right choices")
    if not isinstance(choices, list):
        return
    for path, index in _indexes(target):
        if index >= len(choices):
            problem = f"the label {index} is none of the {len(choices)} choices, which are counted from 0"
            yield ValueFault(path, problem)


def _indexes(target: object) -> Iterator[tuple[tuple[str | int, ...], int]]:
    if isinstance(target, int):
        yield ("doc_to_target",), target
    elif isinstance(target, list):
        for number, index in enumerate(target):
            yield ("doc_to_target", number), index


def _dataset_faults(fields: Fields) -> Iterator[ValueFault]:
    dataset = cast("Mapping[str, str]", fields["dataset"])
    for key in ("file", "fewshot_file"):
        path = dataset.get(key)
        if path is None:
            continue
        problem = path_problem(path)
        if not problem and PurePosixPath(path).suffix not in ROW_FILE_SUFFIXES:
            problem = f"{path!r} is none of the files that are read: {', '.join(ROW_FILE_SUFFIXES)}"
        if problem:
            yield ValueFault(("dataset", key), problem)
    yield from _data_file_faults(dataset)


def _data_file_faults(dataset: Fields) -> Iterator[ValueFault]:
    """Paths in a data set of the hub: nothing else may be read, neither of this machine nor of others."""
    files = cast("Mapping[str, str | Sequence[str]]", dataset.get("data_files", {}))
    for split, named in files.items():
        for path in [named] if isinstance(named, str) else named:
            if path_problem(path):
                problem = f"{path!r} is no path of a file in the data set"
                yield ValueFault(("dataset", "data_files", split), problem)
    for key in ("split", "fewshot_split"):
        if files and key in dataset and dataset[key] not in files:
            problem = f"there is no file for the split {dataset[key]}"
            yield ValueFault(("dataset", "data_files"), problem)


def sent_rows_faults(fields: Fields, sent_files: frozenset[str]) -> Iterator[ValueFault]:
    """A user's suite may only read files sent with it and data sets of the hub, no files of the server."""
    dataset = cast("Mapping[str, str]", fields["dataset"])
    for key in ("file", "fewshot_file"):
        if key in dataset and dataset[key] not in sent_files:
            yield ValueFault(("dataset", key), f"attach {dataset[key]}: it was not sent with the document")
    if "id" in dataset and not is_hub_id(dataset["id"]):
        yield ValueFault(("dataset", "id"), f"{dataset['id']!r} is not the name of a data set of the hub")


def _fewshot_faults(fields: Fields) -> Iterator[ValueFault]:
    dataset = cast("Mapping[str, str]", fields["dataset"])
    samples = cast("Mapping[str, Sequence[object]]", fields.get("fewshot_config", {})).get("samples", ())
    wanted = cast("int", fields.get("num_fewshot", 0))
    has_pool = "fewshot_split" in dataset or "fewshot_file" in dataset
    if samples and has_pool:
        yield ValueFault(
            ("fewshot_config", "samples"), "examples come from here or from the data set, not from both"
        )
    if wanted and not samples and not has_pool:
        problem = "there are no examples: name fewshot_split, fewshot_file or fewshot_config.samples"
        yield ValueFault(("num_fewshot",), problem)
    if samples and wanted > len(samples):
        yield ValueFault(("num_fewshot",), f"fewshot_config.samples has only {len(samples)} rows")


def _filter_faults(fields: Fields) -> Iterator[ValueFault]:
    pipelines = cast("Sequence[Mapping[str, object]]", fields.get("filter_list", ()))
    names = [str(pipeline["name"]) for pipeline in pipelines]
    for index, pipeline in enumerate(pipelines):
        if names[index] in names[:index]:
            yield ValueFault(("filter_list", index, "name"), f"{names[index]} is there twice")
        steps = cast("Sequence[Mapping[str, object]]", pipeline["filter"])
        for number, step in enumerate(steps[:-1]):
            if step["function"] == "majority_vote":
                path = ("filter_list", index, "filter", number)
                yield ValueFault(path, "majority_vote is the last step: it makes one answer of all")
        yield from _taken_faults(
            ("filter_list", index, "filter"), steps, cast("int", fields.get("repeats", 1))
        )


def _taken_faults(path: KeyPath, steps: Sequence[Fields], repeats: int) -> Iterator[ValueFault]:
    for number, step in enumerate(steps):
        if step["function"] != "take_first_k":
            continue
        if steps[-1]["function"] != "majority_vote":
            problem = "take_first_k says how many answers vote: majority_vote is the last step then"
            yield ValueFault((*path, number), problem)
        elif cast("int", step["k"]) > repeats:
            problem = f"takes {step['k']} answers of a row, and repeats says that there are {repeats}"
            yield ValueFault((*path, number, "k"), problem)


def _choice_text_faults(fields: Fields) -> Iterator[ValueFault]:
    """Texts of choices are for choices, and for the filter that looks for them in a text."""
    pipelines = cast("Sequence[Mapping[str, Sequence[Fields]]]", fields.get("filter_list", ()))
    steps = [step["function"] for pipeline in pipelines for step in pipeline["filter"]]
    is_choice = fields["output_type"] == OutputType.MULTIPLE_CHOICE
    if CHOICE_FILTER in steps and not is_choice and "doc_to_choice_text" not in fields:
        yield ValueFault(("filter_list",), f"{CHOICE_FILTER} needs doc_to_choice_text")
    if "doc_to_choice_text" in fields and not is_choice and CHOICE_FILTER not in steps:
        problem = f"only {OutputType.MULTIPLE_CHOICE} has it, and the filter {CHOICE_FILTER}"
        yield ValueFault(("doc_to_choice_text",), problem)


def _generation_faults(fields: Fields) -> Iterator[ValueFault]:
    options = cast("Mapping[str, float]", fields.get("generation_kwargs", {}))
    is_random = options.get("temperature", 0) > 0
    if "do_sample" in options and bool(options["do_sample"]) != is_random:
        problem = "contradicts the temperature: a model samples where that is above 0, and only there"
        yield ValueFault(("generation_kwargs", "do_sample"), problem)


@dataclass(frozen=True, slots=True)
class _Check:
    keys: frozenset[str]
    faults: Callable[[Fields], Iterator[ValueFault]]


_CHECKS = (
    _Check(frozenset(), _template_faults),
    _Check(frozenset({"output_type"}), _output_faults),
    _Check(frozenset({"output_type", "code", "unsafe_code"}), _code_faults),
    _Check(frozenset({"output_type", "code", "rollout", "unsafe_code"}), _rollout_faults),
    _Check(frozenset({"output_type", "doc_to_target", "doc_to_choice"}), _target_faults),
    _Check(frozenset({"dataset"}), _dataset_faults),
    _Check(frozenset({"dataset", "fewshot_config", "num_fewshot"}), _fewshot_faults),
    _Check(frozenset({"filter_list", "repeats"}), _filter_faults),
    _Check(frozenset({"filter_list", "output_type", "doc_to_choice_text"}), _choice_text_faults),
    _Check(frozenset({"generation_kwargs"}), _generation_faults),
    _Check(frozenset({"output_type", "metric_list", "doc_to_target"}), metric_faults),
)
