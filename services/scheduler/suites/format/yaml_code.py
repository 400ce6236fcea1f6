"""The Python code that a task of lm-evaluation-harness names, with its files from the suite's folder."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import cast

from proctor.code_files import files_digest, function_file, reached_names, registered_filter
from proctor.values.scoring import CODED_FILTER, MetricUse
from services.scheduler.suites.format.lm_eval_metrics import PROCESS_RESULTS
from services.scheduler.suites.format.lm_eval_task import ConvertedTask
from services.scheduler.suites.format.suite_document import KeyPath, ValueFault
from services.scheduler.suites.format.yaml_document import FunctionName
from services.scheduler.suites.format.yaml_files import Declaration, SuiteFiles
from services.scheduler.suites.rows.task_code import (
    CUSTOM_DATASET,
    PROCESS_DOCS,
    ROW_MAKERS,
    SAMPLER,
    SAMPLES,
    CodeFunction,
    TaskCode,
)

# What makes the rows of data sets, and none of those that the task's file has.
_OF_DATA_SETS = frozenset({CUSTOM_DATASET, PROCESS_DOCS})

_OF_TOKENIZERS = "from_pretrained"


@dataclass(frozen=True, slots=True)
class ScoringCode:
    """`code` that scores, with the metrics that need it by their places in `metric_list`.

    `native_metrics`: of them those that are scored without code, and only summed up by it. `filters`: steps
    by code, as stored, by the places of their pipeline and in it.
    """

    code: TaskCode
    process_results: str
    metrics: Mapping[int, MetricUse]
    native_metrics: frozenset[int]
    filters: Mapping[tuple[int, int], Mapping[str, object]] = field(default_factory=dict)

    @property
    def digest(self) -> str:
        return files_digest(self.code.files)


@dataclass(frozen=True, slots=True)
class TaskCodes:
    """The code of a task: what makes its rows and its examples, draws those, and scores its answers.

    None: there is none.

    `examples_are_made`: it gives the rows of the examples, which no file has.
    """

    rows: TaskCode | None = None
    examples: TaskCode | None = None
    sampler: TaskCode | None = None
    scoring: ScoringCode | None = None

    @property
    def examples_are_made(self) -> bool:
        return self.examples is not None and any(each.key == SAMPLES for each in self.examples.functions)


@dataclass(slots=True)
class _Reading:
    """Functions that were found so far, and the files that they need."""

    files: SuiteFiles
    declaration: Declaration
    task: ConvertedTask
    functions: list[CodeFunction] = field(default_factory=list)
    needed: dict[str, bytes] = field(default_factory=dict)

    def find(self, key: str, name: FunctionName, path: KeyPath) -> CodeFunction | None:
        """None where a fault is added."""
        named_in = self.declaration.location(path).file
        file, function = function_file(name, named_in, lambda each: bool(self.files.code_files(each)))
        found = self.files.code_files(file) if file else {}
        if not found:
            problem = f"!function {name}: {file or 'its file'} is not in the suite's folder"
            self.task.faults.append(ValueFault(path, problem))
            return None
        self.needed |= found
        self.functions.append(CodeFunction(key, file, function))
        return self.functions[-1]

    def code(self) -> TaskCode | None:
        if not self.functions:
            return None
        name, functions = self.declaration.text("task"), tuple(self.functions)
        code = TaskCode(name, functions, self.needed)
        return replace(code, arguments=self.task.arguments) if code.loads_rows else code


def read_codes(files: SuiteFiles, declaration: Declaration, task: ConvertedTask) -> TaskCodes:
    """Adds faults to the task. Its keys that name functions then name columns of its code."""
    rows = _read_row_code(files, declaration, task)
    examples = _read_example_code(files, declaration, task)
    sampler = _read_sampler_code(files, declaration, task, examples)
    return TaskCodes(rows, examples, sampler, _read_scoring_code(files, declaration, task))


def with_registered_filters(files: SuiteFiles, declaration: Declaration) -> Mapping[str, object]:
    """The fields of a task, in which classes stand for the filters that its own files register by names."""
    fields = declaration.fields(is_deep=False)
    pipelines = fields.get("filter_list")
    named = {key: value for key, value in fields.items() if isinstance(value, FunctionName)}
    if not named or not isinstance(pipelines, list):
        return fields
    modules: dict[str, bytes] = {}
    for key, name in named.items():
        file, _ = function_file(
            name, declaration.location((key,)).file, lambda each: bool(files.code_files(each))
        )
        modules[name.rpartition(".")[0]] = files.code_files(file).get(file, b"") if file else b""
    return {**fields, "filter_list": [_with_classes(pipeline, modules) for pipeline in pipelines]}


def _with_classes(pipeline: object, modules: Mapping[str, bytes]) -> object:
    if not isinstance(pipeline, dict) or not isinstance(pipeline.get("filter"), list):
        return pipeline
    return {**pipeline, "filter": [_with_class(step, modules) for step in pipeline["filter"]]}


def _with_class(step: object, modules: Mapping[str, bytes]) -> object:
    if not isinstance(step, dict) or not isinstance(step.get("function"), str):
        return step
    for module, content in modules.items():
        if found := registered_filter(content, step["function"]):
            return {**step, "function": FunctionName(f"{module}.{found}")}
    return step


def _read_row_code(files: SuiteFiles, declaration: Declaration, task: ConvertedTask) -> TaskCode | None:
    reading = _Reading(files, declaration, task)
    for key, name in task.functions.items():
        found = None if key == PROCESS_RESULTS else reading.find(key, name, (key,))
        if found is not None and key == CUSTOM_DATASET:
            _refuse_tokenizer(reading, found)
        if found is not None and key not in ROW_MAKERS:
            task.fields[key] = found.column
    return reading.code()


def _refuse_tokenizer(reading: _Reading, function: CodeFunction) -> None:
    """Such code asks for a model by its name and for its files, neither of which a sandbox gets."""
    if _OF_TOKENIZERS in reached_names(reading.needed, function.function):
        problem = (
            "its code makes rows with the tokenizer of a model, which it does not get here: make them with"
            " lm-evaluation-harness and bring them as a file"
        )
        reading.task.faults.append(ValueFault((function.key,), problem))


def _read_example_code(files: SuiteFiles, declaration: Declaration, task: ConvertedTask) -> TaskCode | None:
    """Examples are made by the code of the rows, where `fewshot_config` says nothing else.

    Rows of the task's own file are not processed, as in lm-evaluation-harness.
    """
    reading = _Reading(files, declaration, task)
    config = dict(cast("Mapping[str, object]", task.fields["fewshot_config"]))
    is_written = "samples" in config or SAMPLES in task.example_functions
    for key, name in {**task.functions, **task.example_functions}.items():
        is_own = key in task.example_functions
        is_unused = key == PROCESS_RESULTS or (key in _OF_DATA_SETS and is_written and not is_own)
        if is_unused or key == SAMPLER or (key in config and not is_own):
            continue
        found = reading.find(key, name, ("fewshot_config", key) if is_own else (key,))
        if found is not None and is_own and key not in ROW_MAKERS:
            config[key] = found.column
    task.fields["fewshot_config"] = config
    return reading.code()


def _read_sampler_code(
    files: SuiteFiles, declaration: Declaration, task: ConvertedTask, examples: TaskCode | None
) -> TaskCode | None:
    """With the functions that word an example, since it may give rows of its own."""
    name = task.example_functions.get(SAMPLER)
    reading = _Reading(files, declaration, task)
    if name is None or reading.find(SAMPLER, name, ("fewshot_config", SAMPLER)) is None:
        return None
    if examples is not None:
        reading.functions += [each for each in examples.functions if each.key not in ROW_MAKERS]
        reading.needed |= examples.files
    return reading.code()


def _read_scoring_code(
    files: SuiteFiles, declaration: Declaration, task: ConvertedTask
) -> ScoringCode | None:
    """None where no code scores, or a fault is added."""
    if not task.coded_metrics and not task.coded_filters:
        return None
    reading = _Reading(files, declaration, task)
    filters = _read_filters(reading)
    process = task.functions.get(PROCESS_RESULTS) if task.coded_metrics else None
    processed = reading.find(PROCESS_RESULTS, process, (PROCESS_RESULTS,)) if process else None
    metrics: dict[int, MetricUse] = {}
    for metric in task.coded_metrics:
        names = {"metric": metric.function, "aggregation": metric.aggregation}
        found = {
            key: reading.find("metric_list", name, ("metric_list", metric.place, key))
            for key, name in names.items()
            if name is not None
        }
        references = {key: each.reference for key, each in found.items() if each is not None}
        metrics[metric.place] = MetricUse(
            metric.name,
            json.dumps(metric.options, sort_keys=True) if metric.options else "",
            references.get("metric", ""),
            references.get("aggregation", metric.summed_up_by),
            metric.less_is_better,
        )
    code = reading.code()
    if code is None:
        return None
    native = frozenset(metric.place for metric in task.coded_metrics if metric.is_native)
    return ScoringCode(code, processed.reference if processed else "", metrics, native, filters)


def _read_filters(reading: _Reading) -> Mapping[tuple[int, int], Mapping[str, object]]:
    found: dict[tuple[int, int], Mapping[str, object]] = {}
    for each in reading.task.coded_filters:
        function = reading.find("filter_list", each.name, each.path)
        if function is not None:
            step = {"function": CODED_FILTER, "code": function.reference, "options": dict(each.options)}
            found[each.pipeline, each.step] = step
    return found
