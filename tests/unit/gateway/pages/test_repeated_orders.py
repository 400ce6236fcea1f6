"""The form, the command and the JSON that a run's page offers order the same run again."""

import shlex
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
import typer
from google.protobuf.struct_pb2 import Struct
from starlette.datastructures import ImmutableMultiDict
from typer.testing import CliRunner

from proctor.cli.gateway import Session, add_command
from proctor.cli.options import RunIdArgument
from proctor.cli.runs.judge import JudgeOptions
from proctor.cli.runs.order import OrderOptions, order_of
from proctor.v1 import run_pb2, sample_pb2
from services.gateway.api.dataset_runs.requests import DatasetRunRequest
from services.gateway.api.runs.repeat import repeating_body
from services.gateway.api.runs.requests import RunRequest
from services.gateway.http.errors import FormFaults
from services.gateway.pages.orders.form import OrderForm
from services.gateway.pages.runs.repeat import command, form_link, repeated_order


def params(**given: Any) -> run_pb2.GenerationParams:
    others = Struct()
    others.update({"min_p": 0.1, "best_of": 5, "stop": ["a b", "5"], "tag": "5"})
    return run_pb2.GenerationParams(provider_params=others, **given)


def full_suite_run() -> run_pb2.Run:
    order = run_pb2.RunOrder(
        project_id=3,
        suite="mine",
        tasks=["one", "two words"],
        model="openai/org/name",
        limit=7,
        num_fewshot=0,
        rollouts=2,
        priority=run_pb2.PRIORITY_LOW,
        params=params(temperature=0.7, top_p=0.9, top_k=0, max_tokens=9, seed=7, repetition_penalty=1.5),
        scoring_method=run_pb2.SCORING_METHOD_GENERATE,
        truncation=run_pb2.TRUNCATION_LEFT,
        prompt_form=run_pb2.PROMPT_FORM_CHAT,
        reuse_answers=True,
        max_cost=0.25,
        stream_answers=True,
        base_url="http://127.0.0.1:1/v1",
        reasoning=run_pb2.REASONING_KEEP,
    )
    return run_pb2.Run(order=order, suite_version=2)


def full_dataset_run() -> run_pb2.Run:
    order = run_pb2.RunOrder(
        dataset_id="ds_1",
        model="vllm/starter",
        metrics=[
            sample_pb2.MetricUse(name="exact_match"),
            sample_pb2.MetricUse(name="f1", options_json='{"average": "macro"}'),
        ],
        line_models=["a, b", "c"],
        completion_window_seconds=5400,
        params=params(temperature=0),
        truncation=run_pb2.TRUNCATION_LEFT,
        reasoning=run_pb2.REASONING_SEPARATE,
        priority=run_pb2.PRIORITY_NORMAL,
    )
    return run_pb2.Run(order=order)


def bare_run() -> run_pb2.Run:
    order = run_pb2.RunOrder(suite="starter", model="vllm/starter", priority=run_pb2.PRIORITY_HIGH)
    order.truncation, order.reasoning = run_pb2.TRUNCATION_NONE, run_pb2.REASONING_SEPARATE
    return run_pb2.Run(order=order)


def judged_run() -> run_pb2.Run:
    run = bare_run()
    run.order.judges.add(model="ollama/a:8b", scale="1-5", prompt="style")
    run.order.judges.add(model="openai/j", scale="labels:good=1,fair=0.5,poor=0")
    run.order.judges.add(model="openai/j")
    return run


def unjudged_run() -> run_pb2.Run:
    run = bare_run()
    run.order.without_judges = True
    return run


RUNS = {
    "full suite": full_suite_run,
    "full data set": full_dataset_run,
    "bare": bare_run,
    "judged": judged_run,
    "without judges": unjudged_run,
}


@pytest.fixture(params=RUNS)
def run(request: pytest.FixtureRequest) -> run_pb2.Run:
    return RUNS[request.param]()


def accepted(run: run_pb2.Run) -> run_pb2.RunOrder:
    """The order with the version that was evaluated."""
    order = run_pb2.RunOrder()
    order.CopyFrom(run.order)
    if run.suite_version:
        order.suite = f"{order.suite}@{run.suite_version}"
    return order


def test_json_orders_the_same(run: run_pb2.Run) -> None:
    request = DatasetRunRequest if run.order.dataset_id else RunRequest
    assert request.model_validate(repeating_body(run)).to_order() == accepted(run)


def test_form_orders_the_same(run: run_pb2.Run) -> None:
    query = ImmutableMultiDict(parse_qsl(urlsplit(form_link(run)).query))
    assert OrderForm.of(query).to_order() == accepted(run)


def test_the_form_keeps_judges_and_what_decides() -> None:
    run = full_suite_run()
    run.order.judges.extend(
        (
            run_pb2.NamedJudge(model="openai/j", prompt="helpfulness"),
            run_pb2.NamedJudge(model="openai/j", document="judge: mine", scale="1-3"),
        )
    )
    run.order.until_decided.CopyFrom(
        run_pb2.UntilDecided(against_model="openai/old", margin_points=2, alpha=0.01)
    )
    query = ImmutableMultiDict(parse_qsl(urlsplit(form_link(run)).query))
    form = OrderForm.of(query)
    assert form.to_orders() == [accepted(run)]
    # The address that the form shows is the same order.
    again = ImmutableMultiDict(parse_qsl(urlsplit(form.link()).query))
    assert OrderForm.of(again).to_orders() == [accepted(run)]


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("judges", '{"prompt": "style"}', "This is no judge: "),
        ("judges", "a/b:", "'a/b:' is no judge: "),
        ("alpha", "often", "Write a number of 0 to 0.5"),
    ],
)
def test_what_cannot_be_read_is_a_fault_of_its_field(name: str, text: str, sentence: str) -> None:
    given = [
        ("model", "a/b"),
        ("benchmark", "suite:s"),
        ("also", "a/c"),
        ("until_decided", "1"),
        (name, text),
    ]
    with pytest.raises(FormFaults) as raised:
        OrderForm.of(ImmutableMultiDict(given)).to_orders()
    assert raised.value.faults[name].startswith(sentence)


def test_command_orders_the_same(run: run_pb2.Run) -> None:
    ordered: list[run_pb2.RunOrder] = []

    async def order(_: Session, options: OrderOptions) -> None:
        ordered.append(order_of(options))

    app = typer.Typer()
    add_command(app, order)
    words = shlex.split(command(run))
    assert words[:2] == ["proctor", "run"]
    # No call is sent to it.
    result = CliRunner().invoke(app, [*words[2:], "--gateway", "127.0.0.1:1"])
    assert result.exit_code == 0, result.output
    assert ordered == [accepted(run)]


def test_the_command_of_a_judge_has_each_option_of_its_order() -> None:
    order = run_pb2.RunOrder(
        model="openai/judge",
        judge=run_pb2.Judge(run_id="r", prompt="style", scale="1-5"),
        rollouts=3,
        limit=7,
        priority=run_pb2.PRIORITY_HIGH,
        max_cost=0.25,
        reuse_answers=True,
        stream_answers=True,
        base_url="http://127.0.0.1:1/v1",
        project_id=3,
        params=run_pb2.GenerationParams(temperature=0.7, max_tokens=9),
    )
    ordered: list[JudgeOptions] = []

    async def judge(_: Session, run_id: RunIdArgument, options: JudgeOptions) -> None:
        assert run_id == "r"
        ordered.append(options)

    app = typer.Typer()
    add_command(app, judge)
    words = shlex.split(command(run_pb2.Run(order=order)))
    assert words[:2] == ["proctor", "judge"]
    result = CliRunner().invoke(app, [*words[2:], "--gateway", "127.0.0.1:1"])
    assert result.exit_code == 0, result.output
    assert ordered == [
        JudgeOptions(
            model="openai/judge",
            prompt="style",
            scale="1-5",
            repetitions=3,
            limit=7,
            project=3,
            priority="high",
            temperature=0.7,
            max_tokens=9,
            max_cost=0.25,
            reuse_answers=True,
            stream_answers=True,
            base_url="http://127.0.0.1:1/v1",
        )
    ]


def test_parameters_are_told_in_words() -> None:
    told = dict(repeated_order(full_suite_run()).parameters)
    assert (told["Temperature"], told["Seed"], told["Shots"], told["Project"]) == ("0.7", "7", "0", "3")
    assert told["min_p"] == "0.1"


def test_an_imported_run_says_so_before_its_parameters() -> None:
    run = full_suite_run()
    run.order.imported_from = "lm-eval"
    assert repeated_order(run).parameters[0] == ("Imported from", "lm-eval")
