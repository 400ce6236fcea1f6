"""Orders that are accepted, and the sentences of refusals."""

from dataclasses import replace
from math import inf, nan
from pathlib import Path

import pytest

from proctor.values.generation import GenerationParams
from proctor.values.judging.named_judge import NamedJudge
from proctor.values.priority import Priority
from proctor.values.run import RunId, RunState
from proctor.values.scoring import PromptForm, ScoringMethod, Truncation
from services.common.errors import DomainError, InvalidParameter
from services.scheduler.runs.lifecycle.errors import QueueFull
from services.scheduler.runs.lifecycle.run import Run
from services.scheduler.runs.lifecycle.submit_run import Submission
from services.scheduler.runs.orders.errors import (
    BaseUrlNotAllowed,
    CannotComplete,
    CannotTruncate,
    Unsupported,
)
from services.scheduler.runs.orders.run_order import RunOrder
from services.scheduler.suites.errors import InvalidSuiteFile, UnknownSuite, UnknownTask
from services.scheduler.workers.model_names import UnknownModel, UnknownProvider
from tests.fakes.pools import provider_pool
from tests.fakes.scheduler.scheduler_harness import SchedulerHarness, toy_order

NOBODY = 'No pool serves the provider "nobody". Write the model as provider/name. Providers: openai, vllm.'


async def test_accepted_order_is_stored_as_pending_and_reported() -> None:
    harness = SchedulerHarness()
    run = await harness.submit(toy_order(limit=5, priority=Priority.LOW))
    assert run.state is RunState.PENDING
    assert run.pool == "remote"
    assert run.scoring_method is ScoringMethod.LOGLIKELIHOOD
    assert await harness.runs.get(run.run_id) == run
    assert harness.controls.words[run.run_id] == (RunState.PENDING, 1)


async def test_suite_that_only_generates_is_scored_by_generation() -> None:
    run = await SchedulerHarness().submit(toy_order(tasks=("say",)))
    assert run.scoring_method is ScoringMethod.GENERATE


@pytest.mark.parametrize(
    ("order", "method"),
    [
        (toy_order(scoring_method=ScoringMethod.GENERATE), ScoringMethod.GENERATE),
        (toy_order(prompt_form=PromptForm.CHAT), ScoringMethod.GENERATE),
        (toy_order(model="vllm/starter"), ScoringMethod.LOGLIKELIHOOD),
        (toy_order(model="vllm/starter", prompt_form=PromptForm.CHAT), ScoringMethod.LOGLIKELIHOOD),
        (toy_order(tasks=("say",)), ScoringMethod.GENERATE),
        (toy_order(tasks=("say",), scoring_method=ScoringMethod.GENERATE), ScoringMethod.GENERATE),
    ],
)
async def test_choices_are_scored_as_ordered_else_as_the_pool_can(
    order: RunOrder, method: ScoringMethod
) -> None:
    run = await SchedulerHarness().submit(order)
    assert run.scoring_method is method


@pytest.mark.parametrize(
    ("order", "kind", "sentence"),
    [
        (toy_order(suite="glu"), UnknownSuite, "Invalid benchmark suite. Supported: toy"),
        (
            toy_order(tasks=("sst3",)),
            UnknownTask,
            "Suite toy has no task sst3. Its tasks: choose, say.",
        ),
        (
            toy_order(model="nobody/x"),
            UnknownProvider,
            NOBODY,
        ),
        (
            toy_order(model="vllm/nothing"),
            UnknownModel,
            'No pool serves the model "vllm/nothing". Models of this provider: vllm/starter.',
        ),
        (
            toy_order(limit=0),
            InvalidParameter,
            "limit is 0, but must be at least 1. Leave it out to take all rows.",
        ),
        (
            toy_order(limit=-1),
            InvalidParameter,
            "limit is -1, but must be at least 1. Leave it out to take all rows.",
        ),
        (
            toy_order(model="openai/a\tb"),
            InvalidParameter,
            "model holds the character U+0009, which is not part of a name.",
        ),
        (
            toy_order(model="openai/a\u202eb"),
            InvalidParameter,
            "model holds the character U+202E, which is not part of a name.",
        ),
        (
            toy_order(model="openai/../admin"),
            InvalidParameter,
            "model holds the part .., which is not part of a name.",
        ),
        (
            toy_order(model="openai"),
            InvalidParameter,
            'model is "openai", but must name a model after the provider: provider/name.',
        ),
        (
            toy_order(model="openai/ "),
            InvalidParameter,
            'model is "openai/ ", but must name a model after the provider: provider/name.',
        ),
        (
            toy_order(model="nobody"),
            UnknownProvider,
            NOBODY,
        ),
        (
            toy_order(tasks=("say",), scoring_method=ScoringMethod.LOGLIKELIHOOD),
            InvalidParameter,
            "scoring_method is loglikelihood, but no task ordered has choices to score so. Leave it out.",
        ),
        (
            toy_order(max_cost=float("inf")),
            InvalidParameter,
            "max_cost is inf, but must be a finite number. Leave it out for no limit.",
        ),
        (
            toy_order(params=GenerationParams(provider_params={"topP": 7})),
            InvalidParameter,
            (
                "provider_params has topP, but Proctor sets it itself. "
                "Leave it out, or use the parameter of the order where there is one."
            ),
        ),
        (
            toy_order(model="openai/" + "a" * 506),
            InvalidParameter,
            "model has 513 characters, but must have at most 512.",
        ),
        (
            toy_order(params=GenerationParams(context_tokens=4096)),
            InvalidParameter,
            (
                "A server behind the OpenAI protocol takes no context_tokens (num_ctx); "
                "leave it out of the run's parameters."
            ),
        ),
        (
            toy_order(base_url="http://inside:8000/v1"),
            BaseUrlNotAllowed,
            ("The base URL http://inside:8000/v1 is not allowed. Operators set PROCTOR_ALLOWED_BASE_URLS."),
        ),
        (
            toy_order(rollouts=101),
            InvalidParameter,
            "rollouts is 101, but must be at least 1 and at most 100.",
        ),
        (
            toy_order(params=GenerationParams(temperature=9.0)),
            InvalidParameter,
            "temperature is 9.0, but must be at least 0 and at most 2.",
        ),
        (
            toy_order(params=GenerationParams(top_p=-0.1)),
            InvalidParameter,
            "top_p is -0.1, but must be at least 0 and at most 1.",
        ),
        (
            toy_order(model="openai/a\0b"),
            InvalidParameter,
            "model holds a NUL character. Leave it out.",
        ),
        (
            toy_order(params=GenerationParams(provider_params={"a": [{"b": "\0"}]})),
            InvalidParameter,
            "provider_params holds a NUL character, which no server takes. Leave it out.",
        ),
        (
            toy_order(params=GenerationParams(provider_params={"a": [inf]})),
            InvalidParameter,
            "provider_params holds the number inf, which no server takes. Leave it out.",
        ),
        (
            toy_order(truncation=Truncation.LEFT),
            CannotTruncate,
            "Pool remote cannot cut prompts: only a vLLM pool knows their tokens. Leave truncation out.",
        ),
        (
            toy_order(scoring_method=ScoringMethod.CONSTRAINED),
            Unsupported,
            "Pool remote cannot score choices by constrained. It can by loglikelihood or generate.",
        ),
        (
            toy_order(scoring_method=ScoringMethod.LOGLIKELIHOOD, prompt_form=PromptForm.CHAT),
            Unsupported,
            "Pool remote cannot score choices by loglikelihood after a chat prompt. It can by generate.",
        ),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
async def test_bad_order_is_refused_in_one_sentence_and_leaves_nothing(
    order: RunOrder, kind: type[DomainError], sentence: str
) -> None:
    harness = SchedulerHarness()
    with pytest.raises(kind) as refusal:
        await harness.submit(order)
    assert refusal.value.message == sentence
    assert not harness.runs.runs


@pytest.mark.parametrize(
    "params",
    [
        {"api_key": "sk-planted"},
        {"extra_headers": {"X-Any": "sk-planted"}},
        {"extra_body": [{"Authorization": "Bearer sk-planted"}]},
        {"token sk-planted": 1, "headers": "sk-planted"},
    ],
)
async def test_order_with_a_key_is_refused_without_repeating_it(params: dict[str, object]) -> None:
    harness = SchedulerHarness()
    with pytest.raises(InvalidParameter, match="names a secret") as refusal:
        await harness.submit(toy_order(params=GenerationParams(provider_params=params)))
    assert "planted" not in f"{refusal.value!r} {refusal.value.message} {refusal.value.facts}"
    assert not harness.runs.runs


@pytest.mark.parametrize("engine", ["gemini", "anthropic"])
async def test_plain_text_is_no_order_for_an_engine_that_only_chats(engine: str) -> None:
    harness = SchedulerHarness()
    pool = provider_pool("chats", engine)
    harness.submitting = replace(harness.submitting, pools=(pool,))
    with pytest.raises(CannotComplete) as refusal:
        await harness.submit(toy_order(prompt_form=PromptForm.COMPLETION))
    assert refusal.value.facts == {"pool": "chats", "engine": engine}
    assert (await harness.submit(toy_order())).scoring_method is ScoringMethod.GENERATE


@pytest.mark.parametrize("model", ["openai", "", "openai/"])
async def test_model_without_provider_or_name_is_refused(model: str) -> None:
    with pytest.raises((UnknownProvider, InvalidParameter)):
        await SchedulerHarness().submit(toy_order(model=model))


async def test_nan_is_no_temperature() -> None:
    with pytest.raises(InvalidParameter):
        await SchedulerHarness().submit(toy_order(params=GenerationParams(temperature=nan)))


@pytest.mark.parametrize(
    "name", ["model", "messages", "stream", "n", "echo", "logprobs", "stop", "max_tokens"]
)
async def test_provider_params_may_not_replace_what_proctor_asks(name: str) -> None:
    with pytest.raises(InvalidParameter, match=f"provider_params has {name}, but Proctor sets it"):
        await SchedulerHarness().submit(toy_order(params=GenerationParams(provider_params={name: 1})))


async def test_truncation_is_for_pools_that_count_tokens() -> None:
    await SchedulerHarness().submit(toy_order(model="vllm/starter", truncation=Truncation.LEFT))


@pytest.mark.parametrize(
    ("order", "field"),
    [
        (toy_order(params=GenerationParams(provider_params={"x": "y" * 70_000})), "params"),
        (toy_order(tasks=tuple(f"task {number}" for number in range(10_000))), "tasks"),
        (toy_order(base_url="http://x/" + "y" * 70_000), "base_url"),
    ],
)
async def test_order_that_is_too_large_is_refused_with_what_is_large_in_it(
    order: RunOrder, field: str
) -> None:
    harness = SchedulerHarness()
    with pytest.raises(InvalidParameter, match=f"at most 65536. Shorten {field}, which takes") as reported:
        await harness.submit(order)
    assert reported.value.facts["field"] == f"order.{field}"
    assert not harness.runs.runs


@pytest.mark.parametrize("user", ["a\0b", "a" * 129, "", " ", " ann", "*", "\n\x1b[31mroot", "a\u202eb"])
async def test_user_that_cannot_be_kept_is_refused(user: str) -> None:
    with pytest.raises(InvalidParameter, match=r"^user "):
        await SchedulerHarness().submit(user=user)


async def test_top_p_may_be_0() -> None:
    await SchedulerHarness().submit(toy_order(params=GenerationParams(top_p=0.0)))


async def test_broken_suite_says_what_is_wrong_with_its_file() -> None:
    harness = SchedulerHarness()
    harness.suites.broken["mine"] = InvalidSuiteFile(Path("mine/task.yaml"), "is missing", "doc_to_text")
    with pytest.raises(InvalidSuiteFile, match=r"mine/task\.yaml: doc_to_text") as refusal:
        await harness.submit(toy_order(suite="mine"))
    assert refusal.value.reason == "INVALID_SUITE_FILE"


async def test_eleventh_pending_run_of_a_user_is_refused_and_another_users_is_not() -> None:
    harness = SchedulerHarness()
    for _ in range(10):
        await harness.submit(user="ann")
    with pytest.raises(QueueFull) as refusal:
        await harness.submit(user="ann")
    assert refusal.value.facts == {"user": "ann", "limit": 10, "retry_after_seconds": 30}
    assert refusal.value.facts["retry_after_seconds"] == 30
    await harness.submit(user="ben")


async def test_repeated_request_finds_the_run_of_the_first() -> None:
    harness = SchedulerHarness()
    first, second = [await _submit(harness, name, "again") for name in ("a", "b")]
    assert first == second
    assert len(harness.runs.runs) == 1


async def test_repeated_request_finds_the_first_run_though_it_would_be_refused_by_now() -> None:
    harness = SchedulerHarness()
    order = toy_order(judges=(NamedJudge("openai/judge"),))
    first, again, other = (
        Submission(RunId(name), replace(order, limit=limit), "local", "again")
        for name, limit in (("a", None), ("b", None), ("c", 5))
    )
    run = await harness.submitting.submit(first)
    without_pools = replace(harness.submitting, pools=())
    assert await without_pools.submit(again) == run
    for refused in (other, replace(again, request_id=""), replace(again, user="ben")):
        with pytest.raises(UnknownProvider):
            await without_pools.submit(refused)


async def test_estimate_is_distinguished_from_runs_before_and_missing_without_any() -> None:
    harness = SchedulerHarness()
    submission = Submission(RunId("one"), toy_order(), "local")
    first = await harness.submitting.submit(submission)
    assert (await harness.estimate(first)).time is None
    await harness.admit()
    await harness.finish(RunId("one"), harness.driver(RunId("one")))
    later = await harness.submitting.submit(Submission(RunId("two"), toy_order(rollouts=2), "local"))
    past = (await harness.runs.past_runs("toy", "openai/fake"))[0]
    time = (await harness.estimate(later)).time
    assert time
    assert time.seconds == pytest.approx(2 * past.seconds)


async def test_order_is_estimated_as_if_it_were_submitted_and_nothing_is_stored() -> None:
    harness = SchedulerHarness()
    first = await harness.submitting.submit(Submission(RunId("one"), toy_order(), "local"))
    await harness.admit()
    await harness.finish(first.run_id, harness.driver(first.run_id))
    ordered = Submission(RunId("two"), toy_order(rollouts=2), "local")
    estimate = await harness.estimate(await harness.submitting.prepare(ordered), is_stored=False)
    assert estimate.time
    assert list(harness.runs.runs) == ["one"]
    assert await harness.estimate(await harness.submitting.submit(ordered)) == estimate


async def _submit(harness: SchedulerHarness, run_id: str, request_id: str) -> Run:
    submission = Submission(RunId(run_id), toy_order(), "local", request_id)
    return await harness.submitting.submit(submission)
