"""What a run has of a log beside its samples: bounded, and without keys of providers."""

import json
from dataclasses import replace

import pytest

from services.scheduler.imports.errors import LogRefused
from services.scheduler.imports.logged_run import CheckedLog, ImportHeader
from services.scheduler.imports.run_environment import FILE, LEFT_OUT, environment_of
from tests.fakes.imports.read_logs import lines, packed, read
from tests.unit.scheduler.imports.test_harness_log import text_line

HEADER = ImportHeader("log.zip", "olga")


def logged(arguments: object = "", **figures: float) -> CheckedLog:
    results = {
        "results": {"qa": {"alias": "qa", **figures}},
        "config": {"model": "hf", "model_args": arguments},
        "model_name": "m",
    }
    files = {"results_1.json": json.dumps(results), "samples_qa.jsonl": lines(text_line(0, "none", 1.0))}
    run, _ = read(packed(files))
    return CheckedLog(run, digest="ab")


def test_it_says_where_the_run_is_from_and_what_the_log_has() -> None:
    found = environment_of(HEADER, logged("pretrained=m,revision=main", f1=0.5))
    assert (found[FILE], found["import.tool"], found["import.digest"]) == ("log.zip", "lm-eval", "ab")
    assert found["log.model_args"] == "pretrained=m,revision=main"
    assert found["task.qa.log.f1"] == "0.5"


@pytest.mark.parametrize(
    "arguments",
    [
        "model=m,api_key=sk-1",
        "model=m, hf_token = hf_1",
        {"model": "m", "API-Key": "sk-1"},
        {"client": {"default_headers": {"Authorization": "Bearer sk-1"}}},
        "base_url=https://olga:word@host/v1",
    ],
)
def test_arguments_that_may_hold_a_secret_are_left_out(arguments: object) -> None:
    assert environment_of(HEADER, logged(arguments))["log.model_args"] == LEFT_OUT


@pytest.mark.parametrize("arguments", ["base_url=http://host:1/v1,tokenizer=t", "key_value_cache=fp8", "a@b"])
def test_other_arguments_stay(arguments: str) -> None:
    assert environment_of(HEADER, logged(arguments))["log.model_args"] == arguments


def test_a_log_that_says_more_than_a_run_may_have_is_refused() -> None:
    checked = logged()
    assert checked.run is not None
    [task] = checked.run.tasks
    many = replace(task, figures={f"figure{number}": 0.5 for number in range(20_000)})
    with pytest.raises(LogRefused, match="takes more than 262,144 bytes"):
        environment_of(HEADER, replace(checked, run=replace(checked.run, tasks=(many,))))
