"""Suites from a folder of YAML files: `<suite>/suite.yaml` lists tasks, `<suite>/<task>.yaml` is one."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

from services.scheduler.suites.prompt_template import InvalidTemplate, PromptTemplate, compile_template
from services.scheduler.suites.row_source import RowsReference
from services.scheduler.suites.suite_errors import InvalidSuiteFile
from services.scheduler.suites.suite_registry import Fingerprint, SuiteRegistry
from services.scheduler.suites.task_definition import (
    FewshotRule,
    FewshotSampler,
    Generation,
    MetricUse,
    OutputType,
    SuiteDefinition,
    TaskDefinition,
    TaskScoring,
    TaskTemplates,
)
from services.scheduler.suites.yaml_suite_file import Fields, fault, read_suite_file

_METRICS_OF = {
    OutputType.MULTIPLE_CHOICE: {"acc", "acc_norm", "acc_bytes", "f1", "mcc", "exact_match"},
    OutputType.GENERATE_UNTIL: {"exact_match"},
}
_DEFAULT_DELIMITER = " "
_DEFAULT_FEWSHOT_DELIMITER = "\n\n"


def load_suites(folder: Path) -> SuiteRegistry:
    suites: dict[str, SuiteDefinition] = {}
    broken: dict[str, InvalidSuiteFile] = {}
    for suite_file in sorted(folder.glob("*/suite.yaml")):
        name = suite_file.parent.name
        try:
            suites[name] = _load_suite(suite_file)
        except InvalidSuiteFile as error:
            broken[name] = error
    return SuiteRegistry(folder, suites, broken, _fingerprint(folder))


def reload_suites(registry: SuiteRegistry) -> SuiteRegistry:
    """The same registry as long as no file was changed, added or removed."""
    return registry if registry.fingerprint == _fingerprint(registry.folder) else load_suites(registry.folder)


def _fingerprint(folder: Path) -> Fingerprint:
    stats = [(file, file.stat()) for file in sorted(folder.glob("*/*.yaml"))]
    return tuple((str(file), stat.st_mtime_ns, stat.st_size) for file, stat in stats)


def _load_suite(file: Path) -> SuiteDefinition:
    fields = read_suite_file(file, "suite")
    name = str(fields["suite"])
    if name != file.parent.name:
        raise fault(file, "suite", f"{name!r} is not the name of its folder")
    tasks = tuple(_load_task(file.parent / f"{task}.yaml") for task in cast("Sequence[str]", fields["tasks"]))
    return SuiteDefinition(name, str(fields.get("description", "")), tasks)


def _load_task(file: Path) -> TaskDefinition:
    fields = read_suite_file(file, "task")
    name = str(fields["task"])
    if name != file.stem:
        raise fault(file, "task", f"{name!r} is not the name of its file")
    rows, fewshot_rows = _rows(file, cast("Mapping[str, str]", fields["dataset"]))
    return TaskDefinition(
        name=name,
        version=str(fields["version"]),
        rows=rows,
        fewshot_rows=fewshot_rows,
        templates=_templates(file, fields),
        scoring=_scoring(file, fields),
        fewshot=_fewshot(fields),
        generation=_generation(file, fields),
        metadata=cast("Mapping[str, object]", fields.get("metadata", {})),
        definition_digest=hashlib.sha256(file.read_bytes()).hexdigest(),
    )


def _rows(file: Path, dataset: Mapping[str, str]) -> tuple[RowsReference, RowsReference | None]:
    suite = file.parent.name
    if "file" in dataset:
        own = [dataset["file"], *([dataset["fewshot_file"]] if "fewshot_file" in dataset else [])]
        references = [RowsReference(suite, file=file.parent / path) for path in own]
    else:
        splits = [dataset["split"], *([dataset["fewshot_split"]] if "fewshot_split" in dataset else [])]
        hub_id, config, revision = dataset["id"], dataset.get("config", ""), dataset.get("revision")
        references = [
            RowsReference(suite, dataset_id=hub_id, config=config, split=split, revision=revision)
            for split in splits
        ]
    return references[0], references[1] if len(references) == 2 else None


def _templates(file: Path, fields: Fields) -> TaskTemplates:
    choices = fields.get("doc_to_choice", ())
    cluster = fields.get("doc_to_cluster")
    return TaskTemplates(
        text=_template(file, "doc_to_text", str(fields["doc_to_text"])),
        target=_template(file, "doc_to_target", str(fields["doc_to_target"])),
        choices=_template(file, "doc_to_choice", choices)
        if isinstance(choices, str)
        else tuple(cast("Sequence[str]", choices)),
        cluster=None if cluster is None else _template(file, "doc_to_cluster", str(cluster)),
        description=str(fields.get("description", "")),
    )


def _template(file: Path, key: str, source: str) -> PromptTemplate:
    try:
        return compile_template(source)
    except InvalidTemplate as error:
        raise fault(file, key, f"template error: {error}") from error


def _scoring(file: Path, fields: Fields) -> TaskScoring:
    output_type = OutputType(str(fields["output_type"]))
    if output_type is OutputType.MULTIPLE_CHOICE and "doc_to_choice" not in fields:
        raise fault(file, "output_type", "multiple_choice needs doc_to_choice")
    if output_type is OutputType.MULTIPLE_CHOICE and "filter_list" in fields:
        raise fault(file, "filter_list", "choices are weighed, so there is no text to filter")
    metrics = tuple(_metric(one) for one in cast("Sequence[Fields]", fields["metric_list"]))
    for metric in metrics:
        if metric.name not in _METRICS_OF[output_type]:
            raise fault(file, "metric_list", f"{metric.name} does not fit output_type {output_type}")
    filters = fields.get("filter_list")
    return TaskScoring(
        output_type=output_type,
        metrics=metrics,
        filters_json="" if filters is None else json.dumps(filters),
        target_delimiter=str(fields.get("target_delimiter", _DEFAULT_DELIMITER)),
    )


def _metric(fields: Fields) -> MetricUse:
    options = {key: value for key, value in fields.items() if key != "metric"}
    return MetricUse(str(fields["metric"]), json.dumps(options) if options else "")


def _fewshot(fields: Fields) -> FewshotRule:
    config = cast("Mapping[str, object]", fields.get("fewshot_config", {}))
    return FewshotRule(
        sampler=FewshotSampler(str(config.get("sampler", FewshotSampler.DEFAULT))),
        drops_document=bool(config.get("drop_document", True)),
        num_fewshot=cast("int", fields.get("num_fewshot", 0)),
        delimiter=str(fields.get("fewshot_delimiter", _DEFAULT_FEWSHOT_DELIMITER)),
    )


def _generation(file: Path, fields: Fields) -> Generation | None:
    if fields["output_type"] != OutputType.GENERATE_UNTIL:
        if "generation_kwargs" in fields:
            raise fault(file, "generation_kwargs", "only generate_until generates")
        return None
    options = cast("Mapping[str, object]", fields.get("generation_kwargs", {}))
    until = options.get("until", fields.get("fewshot_delimiter", _DEFAULT_FEWSHOT_DELIMITER))
    return Generation(
        until=(until,) if isinstance(until, str) else tuple(cast("Sequence[str]", until)),
        max_tokens=cast("int", options.get("max_gen_toks", 256)),
        temperature=cast("float", options.get("temperature", 0.0)),
        top_p=cast("float | None", options.get("top_p")),
    )
