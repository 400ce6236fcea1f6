"""Suites that the schema accepts can be loaded, and results can score them."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from jsonschema import Draft202012Validator

from proctor.values.metrics.catalogue import METRICS
from proctor.values.scoring import OutputType
from services.results.scoring.compiled_scoring import read_filters, read_metric
from services.scheduler.suites.format.task_checks import TEMPLATE_KEYS
from services.scheduler.suites.suite import FewshotSampler
from services.scheduler.suites.yaml_installed_suites import load_suites

SUITES = Path(__file__).parents[3] / "suites"
SCHEMA: dict[str, Any] = json.loads((SUITES / "task.schema.json").read_text(encoding="utf-8"))
DEFINITIONS: Mapping[str, Any] = SCHEMA["$defs"]


def properties(definition: str) -> dict[str, Any]:
    found: dict[str, Any] = DEFINITIONS[definition]["properties"]
    return found


def test_the_schema_is_one() -> None:
    Draft202012Validator.check_schema(SCHEMA)


def test_options_of_texts_are_none_of_choices() -> None:
    assert not METRICS["exact_match"].options_of(OutputType.MULTIPLE_CHOICE)
    assert "ignore_case" in METRICS["exact_match"].options_of(OutputType.GENERATE_UNTIL)
    assert set(METRICS["f1"].options_of(OutputType.MULTIPLE_CHOICE)) == {"average"}


def test_output_types_and_samplers_are_those_of_the_loader() -> None:
    assert properties("task")["output_type"]["enum"] == [output_type.value for output_type in OutputType]
    assert properties("fewshot")["sampler"]["enum"] == [sampler.value for sampler in FewshotSampler]


def test_every_template_of_the_schema_is_compiled_by_the_loader() -> None:
    named = {key for key in properties("task") if key.startswith("doc_to_") or key == "gen_prefix"}
    assert named == set(TEMPLATE_KEYS)


def test_suites_of_the_repository_load_and_results_reads_their_scoring() -> None:
    registry = load_suites(SUITES)
    assert registry.broken == {}
    for suite in registry.suites.values():
        for task in suite.tasks:
            for metric in task.scoring.metrics:
                assert read_metric(metric.name, metric.options_json).name == metric.name
            read_filters(task.scoring.filters_json)


def test_suite_files_of_the_repository_follow_the_schema_as_an_editor_reads_it() -> None:
    """Without the loader, as far as a file stands on its own and includes nothing."""
    for file in sorted(SUITES.glob("*/suite.yaml")):
        validator = Draft202012Validator({**SCHEMA, "$ref": "#/$defs/suite"})
        assert not list(validator.iter_errors(yaml.safe_load(file.read_text(encoding="utf-8")))), file
    for file in sorted(SUITES.glob("*/[!_]*.yaml")):
        written = yaml.safe_load(file.read_text(encoding="utf-8"))
        if "suite" not in written and "include" not in written:
            assert not list(Draft202012Validator(SCHEMA).iter_errors(written)), file
