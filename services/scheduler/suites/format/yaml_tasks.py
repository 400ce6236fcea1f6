"""Turns a declared task into its definition; faults are reported at their locations."""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import cast

from proctor.values.code import DEFAULT_CODE_SECONDS, CodeAnswer
from proctor.values.metrics.names import headline_first
from proctor.values.scoring import MetricUse, OutputType, TaskScoring
from services.scheduler.suites.format.lm_eval_rows import with_row_counts
from services.scheduler.suites.format.lm_eval_task import code_faults, convert_lm_eval_task, is_lm_eval_task
from services.scheduler.suites.format.metric_checks import NON_OPTION_KEYS, Fields
from services.scheduler.suites.format.schema import schema_faults
from services.scheduler.suites.format.suite_document import ValueFault
from services.scheduler.suites.format.task_checks import compiled, is_template, sent_rows_faults, task_faults
from services.scheduler.suites.format.yaml_code import (
    ScoringCode,
    TaskCodes,
    read_codes,
    with_registered_filters,
)
from services.scheduler.suites.format.yaml_files import Declaration, SuiteFiles
from services.scheduler.suites.rows.csv_form import csv_form
from services.scheduler.suites.rows.file_row_counts import count_rows
from services.scheduler.suites.rows.row_source import RowsReference, SourceRow
from services.scheduler.suites.rows.task_code import TaskCode
from services.scheduler.suites.suite import (
    CodeRule,
    FewshotRule,
    FewshotSampler,
    Generation,
    TaskDefinition,
    TaskTemplates,
)
from services.scheduler.suites.templates.prompt_template import PromptTemplate

DEFAULT_DELIMITER = " "
DEFAULT_FEWSHOT_DELIMITER = "\n\n"


@dataclass(frozen=True, slots=True)
class SuiteLocation:
    """The suite of a task and the folder of its files."""

    suite: str
    folder: Path


def read_task(files: SuiteFiles, declaration: Declaration, location: SuiteLocation) -> TaskDefinition | None:
    """Returns None if the task is invalid; its faults are then reported."""
    fields = declaration.fields(is_deep=True)
    origins: Mapping[str, str] = {}
    codes = TaskCodes()
    has_coded_metrics = False
    is_of_lm_eval = is_lm_eval_task(fields)
    if is_of_lm_eval:
        converted = convert_lm_eval_task(with_registered_filters(files, declaration))
        fields, origins = converted.fields, converted.origins
        if fields:
            codes = read_codes(files, declaration, converted)
        dataset = cast("Fields", fields.get("dataset", {}))
        faults = with_row_counts(converted.faults, dataset, partial(_count, files, location, dataset))
        has_coded_metrics = bool(converted.coded_metrics)
    else:
        faults = list(code_faults(fields))
    # What could not be converted has faults already.
    if fields or not faults:
        faults += _schema_faults(fields, has_coded_metrics=has_coded_metrics)
        invalid_keys = frozenset(str(found.path[0]) for found in faults if found.path)
        if codes.examples_are_made:
            invalid_keys |= {"fewshot_config"}
        faults += task_faults(fields, invalid_keys)
        if files.sent_files is not None and "dataset" not in invalid_keys:
            faults += sent_rows_faults(fields, files.sent_files)
    for found in _first_of_each(faults):
        key = ".".join(str(part) for part in found.path)
        path = (origins[key],) if key in origins else found.path
        files.report(declaration.location(path), found.problem)
    if faults:
        return None
    definition = _definition(fields, location, codes)
    return _with_indexes(definition) if is_of_lm_eval else definition


def _count(files: SuiteFiles, location: SuiteLocation, dataset: Fields, path: str) -> int | None:
    """Rows of a file; that of an installed suite may be large, so it is not read into memory."""
    is_installed = files.sent_files is None
    with (location.folder / path).open("rb") if is_installed else BytesIO(files.read(path)) as content:
        return count_rows(content, path, csv_form(cast("Fields", dataset.get("csv", {}))))


def _with_indexes(task: TaskDefinition) -> TaskDefinition:
    """In lm-evaluation-harness a question that is a number is that of the right choice, a context."""
    if task.scoring.output_type is not OutputType.MULTIPLE_CHOICE:
        return task
    examples = task.example_templates
    return replace(
        task,
        templates=replace(task.templates, text_may_be_index=True),
        example_templates=examples and replace(examples, text_may_be_index=True),
    )


def _schema_faults(fields: Fields, *, has_coded_metrics: bool) -> list[ValueFault]:
    """Metrics that Python code scores are none of the schema, and may be all that there are."""
    found = schema_faults(fields, "task")
    is_absent = has_coded_metrics and "metric_list" not in fields
    return [each for each in found if not (is_absent and each.path == ("metric_list",))]


def _first_of_each(faults: Sequence[ValueFault]) -> Iterator[ValueFault]:
    """Without later faults of a value that names Python code, or of one in it."""
    named = {found.path for found in faults if found.problem.startswith("!function ")}
    for number, found in enumerate(faults):
        is_named = any(found.path[:length] in named for length in range(1, len(found.path) + 1))
        if not is_named or (found.problem.startswith("!function ") and found not in faults[:number]):
            yield found


def _definition(fields: Fields, location: SuiteLocation, codes: TaskCodes) -> TaskDefinition:
    rows, fewshot_rows = _rows(cast("Mapping[str, str]", fields["dataset"]), location)
    if codes.rows is not None and codes.rows.loads_rows:
        rows, fewshot_rows = replace(rows, hub_id=""), fewshot_rows and replace(fewshot_rows, hub_id="")
    fewshot = replace(_fewshot(fields), code=codes.sampler)
    if fewshot_rows is None and codes.examples is not None and (fewshot.samples or codes.examples_are_made):
        fewshot_rows = RowsReference(location.suite, samples=fewshot.samples)
    return TaskDefinition(
        name=str(fields["task"]),
        version=str(fields["version"]),
        rows=replace(rows, code=codes.rows),
        fewshot_rows=fewshot_rows and replace(fewshot_rows, code=codes.examples),
        templates=_templates(fields),
        scoring=_scoring(fields, codes.scoring),
        fewshot=fewshot,
        example_templates=_example_templates(fields),
        generation=_generation(fields),
        metadata=cast("Mapping[str, object]", fields.get("metadata", {})),
        code=_code(fields),
        rollout_column=str(fields.get("rollout", "")),
        repeats=cast("int", fields.get("repeats", 1)),
        definition_digest=_digest(fields, codes),
        scoring_code=codes.scoring.code if codes.scoring else None,
    )


def _digest(fields: Fields, codes: TaskCodes) -> str:
    """Covers the files of code, whichever functions of them are called."""
    parts = [json.dumps(fields, sort_keys=True).encode()]
    for code in (codes.rows, codes.examples if codes.examples != codes.rows else None, codes.sampler):
        parts += _code_parts(code) if code else []
    if codes.scoring:
        uses = [(place, *astuple(use)) for place, use in sorted(codes.scoring.metrics.items())]
        filters = sorted(codes.scoring.filters.items())
        named = [codes.scoring.digest, codes.scoring.process_results, uses, *([filters] if filters else [])]
        parts += [json.dumps(named).encode()]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()


def _code_parts(code: TaskCode) -> list[bytes]:
    files = [part for path, content in sorted(code.files.items()) for part in (path.encode(), _sha(content))]
    arguments = [code.arguments.encode()] if code.loads_rows else []
    return [*files, *(f"{each.key} {each.column}".encode() for each in code.functions), *arguments]


def _sha(content: bytes) -> bytes:
    return hashlib.sha256(content).digest()


def _rows(dataset: Mapping[str, str], location: SuiteLocation) -> tuple[RowsReference, RowsReference | None]:
    form = csv_form(cast("Fields", dataset.get("csv", {})))
    if "file" in dataset:
        rows = RowsReference(
            location.suite, file=location.folder / dataset["file"], csv=form, where=_where(dataset)
        )
        shown = dataset.get("fewshot_file")
        return rows, None if shown is None else replace(rows, file=location.folder / shown)
    shown = dataset.get("fewshot_split")
    return _hub_rows(dataset, location.suite, dataset["split"]), (
        None if shown is None else _hub_rows(dataset, location.suite, shown)
    )


def _hub_rows(dataset: Mapping[str, str], suite: str, split: str) -> RowsReference:
    named = cast("Mapping[str, str | Sequence[str]]", dataset.get("data_files", {})).get(split, ())
    return RowsReference(
        suite,
        hub_id=dataset["id"],
        config=dataset.get("config", ""),
        split=split,
        revision=dataset.get("revision"),
        data_files=(named,) if isinstance(named, str) else tuple(named),
        csv=csv_form(cast("Fields", dataset.get("csv", {}))),
        where=_where(dataset),
    )


def _where(dataset: Fields) -> tuple[tuple[str, object], ...]:
    return tuple(cast("Fields", dataset.get("where", {})).items())


def _templates(fields: Fields) -> TaskTemplates:
    choices, target = fields.get("doc_to_choice", ()), fields["doc_to_target"]
    indexes = tuple(cast("list[int]", target)) if isinstance(target, list) else ()
    description = str(fields.get("description", ""))
    return TaskTemplates(
        text=compiled(str(fields["doc_to_text"])),
        target=compiled(str(indexes[0] if indexes else target)),
        choices=compiled(choices) if isinstance(choices, str) else tuple(cast("Sequence[str]", choices)),
        cluster=_template(fields, "doc_to_cluster"),
        description=description,
        answers=_template(fields, "doc_to_answers"),
        wrong_texts=_template(fields, "doc_to_wrong_target"),
        target_indexes=indexes,
        choice_texts=_template(fields, "doc_to_choice_text"),
        answer_begin=_template(fields, "gen_prefix"),
        counted_text=_template(fields, "doc_to_counted_text"),
        row_description=compiled(description) if is_template(description) else None,
    )


def _example_templates(fields: Fields) -> TaskTemplates | None:
    """None where examples are worded as the question is."""
    config = cast("Fields", fields.get("fewshot_config", {}))
    own = {key: value for key, value in config.items() if key.startswith("doc_to_") or key == "gen_prefix"}
    return _templates({**fields, **own}) if own else None


def _code(fields: Fields) -> CodeRule | None:
    if "code" not in fields:
        return None
    rule = cast("Mapping[str, object]", fields["code"])
    return CodeRule(
        prefix=compiled(str(rule["prefix"])) if "prefix" in rule else None,
        answer=CodeAnswer(str(rule.get("answer", CodeAnswer.WHOLE))),
        timeout_seconds=cast("float", rule.get("timeout", DEFAULT_CODE_SECONDS)),
    )


def _template(fields: Fields, key: str) -> PromptTemplate | None:
    return compiled(str(fields[key])) if key in fields else None


def _scoring(fields: Fields, code: ScoringCode | None) -> TaskScoring:
    filters = fields.get("filter_list")
    metrics = [_metric(use) for use in cast("Sequence[Fields]", fields.get("metric_list", ()))]
    scoring = TaskScoring(
        output_type=OutputType(str(fields["output_type"])),
        metrics=headline_first(metrics),
        filters_json="" if filters is None else json.dumps(filters),
        target_delimiter=str(fields.get("target_delimiter", DEFAULT_DELIMITER)),
    )
    if code is None:
        return scoring
    return replace(
        scoring,
        metrics=headline_first(_with_coded(metrics, code)),
        filters_json=json.dumps(_with_coded_filters(filters, code)) if filters else "",
        process_results=code.process_results,
        code_digest=code.digest,
    )


def _with_coded_filters(filters: object, code: ScoringCode) -> list[Fields]:
    return [
        {
            **pipeline,
            "filter": [
                code.filters.get((number, place), step) for place, step in enumerate(pipeline["filter"])
            ],
        }
        for number, pipeline in enumerate(cast("Sequence[Mapping[str, list[Fields]]]", filters))
    ]


def _with_coded(metrics: Sequence[MetricUse], code: ScoringCode) -> list[MetricUse]:
    """All metrics in the order of the file: those without code lie between."""
    others = iter(metrics)
    found: list[MetricUse] = []
    for place in range(len(metrics) + len(code.metrics) - len(code.native_metrics)):
        coded = code.metrics.get(place)
        if coded is None:
            found.append(next(others))
        elif place in code.native_metrics:
            found.append(replace(next(others), aggregation=coded.aggregation))
        else:
            found.append(coded)
    return found


def _metric(use: Fields) -> MetricUse:
    options = {key: value for key, value in use.items() if key not in NON_OPTION_KEYS}
    return MetricUse(str(use["metric"]), json.dumps(options) if options else "")


def _fewshot(fields: Fields) -> FewshotRule:
    config = cast("Mapping[str, object]", fields.get("fewshot_config", {}))
    return FewshotRule(
        sampler=FewshotSampler(str(config.get("sampler", FewshotSampler.DEFAULT))),
        drops_document=bool(config.get("drop_document", True)),
        num_fewshot=cast("int", fields.get("num_fewshot", 0)),
        delimiter=str({**fields, **config}.get("fewshot_delimiter", DEFAULT_FEWSHOT_DELIMITER)),
        target_delimiter=cast("str | None", config.get("target_delimiter")),
        seed=cast("int", config.get("seed", FewshotRule().seed)),
        samples=tuple(cast("Sequence[SourceRow]", config.get("samples", ()))),
    )


def _generation(fields: Fields) -> Generation | None:
    if fields["output_type"] != OutputType.GENERATE_UNTIL:
        return None
    options = cast("Mapping[str, object]", fields.get("generation_kwargs", {}))
    until = options.get("until", fields.get("fewshot_delimiter", DEFAULT_FEWSHOT_DELIMITER))
    return Generation(
        until=(until,) if isinstance(until, str) else tuple(cast("Sequence[str]", until)),
        max_tokens=cast("int", options.get("max_gen_toks", Generation().max_tokens)),
        temperature=cast("float", options.get("temperature", Generation().temperature)),
        top_p=cast("float | None", options.get("top_p")),
    )
