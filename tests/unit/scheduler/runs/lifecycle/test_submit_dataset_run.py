"""Orders over data sets: what they come to, and the sentence for what may not be ordered."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import pytest

from proctor.values.scoring import MetricUse, PromptForm, ScoringMethod, Truncation
from services.common.errors import DomainError, InvalidParameter
from services.scheduler.runs.lifecycle.run import Run
from services.scheduler.runs.orders.errors import CannotComplete
from services.scheduler.runs.orders.run_order import RunOrder
from services.scheduler.uploads.errors import CannotCompleteLines
from tests.fakes.scheduler.scheduler_harness import SchedulerHarness, toy_order
from tests.fakes.storage.checked_files import batch_line

PLAIN = [{"prompt": f"{number} + 1 =", "target": str(number + 1)} for number in range(3)]
NO_TARGETS = [{"prompt": "a"}, {"prompt": "b", "target": "c"}, {"prompt": "d"}]
COMPLETIONS = [
    batch_line(number, url="/v1/completions", body={"model": "m", "prompt": "x"}) for number in range(2)
]
EXACT = (MetricUse("exact_match"),)


def chats(model: str | None = "m") -> list[dict[str, object]]:
    named = {} if model is None else {"model": model}
    messages = [{"role": "user", "content": "Hi"}]
    return [batch_line(number, body={"messages": messages, **named}) for number in range(2)]


async def submitted(
    lines: Sequence[object], harness: SchedulerHarness | None = None, **changes: object
) -> Run:
    harness = harness or SchedulerHarness()
    dataset_id = harness.datasets.upload(lines)
    return await harness.submit(toy_order(suite="", dataset_id=dataset_id, **changes))


async def test_run_is_listed_by_its_data_set_and_knows_its_name() -> None:
    harness = SchedulerHarness()
    run = await submitted(PLAIN, harness, metrics=(MetricUse("f1"), *EXACT), limit=2)
    assert run.order.benchmark == run.order.dataset_id
    assert (run.dataset_name, run.scoring_method) == ("rows.jsonl", ScoringMethod.GENERATE)
    assert [use.name for use in run.order.metrics] == ["squad_f1", "exact_match"]
    assert run.expires_at is None
    assert await harness.runs.get(run.run_id) == run


async def test_completion_window_counts_from_when_the_run_was_accepted() -> None:
    run = await submitted(PLAIN, completion_window_seconds=24 * 3600)
    assert run.expires_at == run.created_at + timedelta(hours=24)


@pytest.mark.parametrize("seconds", [3599, 604_801])
async def test_windows_are_of_an_hour_to_a_week(seconds: int) -> None:
    with pytest.raises(DomainError, match="must be at least 3600 and at most 604800") as raised:
        await submitted(PLAIN, completion_window_seconds=seconds)
    assert raised.value.reason == "INVALID_PARAMETER"


@pytest.mark.parametrize(
    ("lines", "ordered", "form"),
    [
        (chats(None), None, PromptForm.CHAT),
        (chats(None), PromptForm.CHAT, PromptForm.CHAT),
        (COMPLETIONS, None, PromptForm.COMPLETION),
        (PLAIN, None, None),
        (PLAIN, PromptForm.CHAT, PromptForm.CHAT),
    ],
)
async def test_lines_are_asked_where_they_say_and_prompts_as_ordered(
    lines: Sequence[object], ordered: PromptForm | None, form: PromptForm | None
) -> None:
    run = await submitted(lines, prompt_form=ordered, line_models=("m",))
    assert run.order.prompt_form is form


ALIASES = {"chatty": "openai/fake", "other": "openai/other"}


@pytest.mark.parametrize("named", [None, "openai/fake", "fake", "chatty", "mine"])
async def test_lines_may_call_the_model_by_all_its_names(named: str | None) -> None:
    run = await submitted(chats(named), SchedulerHarness(aliases=ALIASES), line_models=("mine",))
    assert run.order.model == "openai/fake"


async def test_order_may_call_the_model_by_an_alias() -> None:
    for order in (toy_order(model="chatty"), toy_order(model="openai/fake")):
        run = await SchedulerHarness(aliases=ALIASES).submit(order)
        assert (run.order.model, run.pool) == ("openai/fake", "remote")
    run = await submitted(chats("chatty"), SchedulerHarness(aliases=ALIASES), model="chatty")
    assert run.order.model == "openai/fake"


async def test_lines_for_another_model_are_refused() -> None:
    harness = SchedulerHarness(aliases=ALIASES)
    for named in ("other", "m", "openai/m"):
        with pytest.raises(DomainError) as raised:
            await submitted(chats(named), harness)
        assert raised.value.reason == "MODEL_MISMATCH"
        assert f"name the model {named}, not openai/fake" in raised.value.message


@pytest.mark.parametrize(
    ("lines", "changes", "reason", "sentence"),
    [
        (PLAIN, {"suite": "toy"}, "INVALID_PARAMETER", "Leave one of the two out."),
        (PLAIN, {"dataset_id": ""}, "INVALID_PARAMETER", "neither a suite nor a data set"),
        (PLAIN, {"dataset_id": "ds_" + "9" * 32}, "DATASET_NOT_FOUND", "no data set ds_999"),
        (PLAIN, {"dataset_id": "file-no"}, "DATASET_NOT_FOUND", "no data set file-no"),
        (PLAIN, {"tasks": ("sst2",)}, "INVALID_PARAMETER", "Leave tasks out."),
        (PLAIN, {"num_fewshot": 0}, "INVALID_PARAMETER", "Leave num_fewshot out."),
        (
            PLAIN,
            {"scoring_method": ScoringMethod.LOGLIKELIHOOD},
            "INVALID_PARAMETER",
            "scoring_method is loglikelihood, but rows of a data set have no choices. Leave it out.",
        ),
        (PLAIN, {"truncation": Truncation.LEFT}, "UNSUPPORTED", "cannot cut prompts"),
        (PLAIN, {"metrics": (MetricUse("accuracy"),)}, "UNKNOWN_METRIC", "exact_match"),
        (PLAIN, {"metrics": (MetricUse("exact_match", '{"a": 1}'),)}, "INVALID_PARAMETER", "no such option"),
        (NO_TARGETS, {"metrics": EXACT}, "NO_TARGETS", "in 2 or more of its rows"),
        (NO_TARGETS, {"metrics": EXACT, "limit": 2}, "NO_TARGETS", "in 1 or more of its rows"),
        (chats(None), {"metrics": EXACT}, "NO_TARGETS", "has no target for exact_match"),
        (chats(None), {"prompt_form": PromptForm.COMPLETION}, "INVALID_PARAMETER", "/v1/chat/completions"),
        (
            COMPLETIONS,
            {"prompt_form": PromptForm.CHAT, "line_models": ("m",)},
            "INVALID_PARAMETER",
            "Leave it",
        ),
        (PLAIN, {"line_models": ("a\0b",)}, "INVALID_PARAMETER", "NUL"),
        (PLAIN, {"limit": 0}, "INVALID_PARAMETER", "at least 1"),
    ],
)
async def test_what_makes_no_sense_is_refused_by_a_sentence(
    lines: Sequence[object], changes: dict[str, object], reason: str, sentence: str
) -> None:
    harness = SchedulerHarness()
    order = toy_order(suite="", dataset_id=harness.datasets.upload(lines))
    with pytest.raises(DomainError) as raised:
        await harness.submit(replace(order, **changes))  # type: ignore[arg-type]  # names are checked by replace
    assert raised.value.reason == reason, raised.value.message
    assert sentence in raised.value.message
    assert not harness.runs.runs


@pytest.mark.parametrize("changes", [{"metrics": EXACT}, {"line_models": ("m",)}])
async def test_what_is_for_data_sets_goes_with_no_suite(changes: dict[str, object]) -> None:
    with pytest.raises(InvalidParameter) as refused:
        await SchedulerHarness().submit(toy_order(**changes))
    [field] = changes
    assert refused.value.message.startswith(f"{field} ")


async def test_pool_that_only_chats_is_not_asked_to_complete() -> None:
    harness = SchedulerHarness()
    harness.submitting = replace(
        harness.submitting, pools=[replace(harness.submitting.pools[0], engine="gemini")]
    )
    with pytest.raises(CannotCompleteLines) as lines:
        await submitted(COMPLETIONS, harness, line_models=("m",))
    with pytest.raises(CannotComplete) as plain:
        await submitted(PLAIN, harness, prompt_form=PromptForm.COMPLETION)
    assert lines.value.facts == plain.value.facts == {"pool": "remote", "engine": "gemini"}
    assert (await submitted(PLAIN, harness)).order.prompt_form is None


async def test_repeated_order_is_the_same_order_once_settled() -> None:
    harness = SchedulerHarness(aliases=ALIASES)
    dataset_id = harness.datasets.upload(PLAIN)
    order = RunOrder("", "chatty", dataset_id=dataset_id, metrics=(MetricUse("rouge"),))
    run = await harness.submit(order)
    again = await harness.submit(replace(order, model="openai/fake", metrics=(MetricUse("rougeL_max"),)))
    assert run.order == again.order


async def test_rows_that_are_not_asked_need_no_target() -> None:
    lines = [{"prompt": "a", "target": "b"}, {"prompt": "c", "target": "d"}, {"prompt": "e"}]
    assert (await submitted(lines, metrics=EXACT, limit=2)).order.limit == 2
    with pytest.raises(DomainError) as raised:
        await submitted(lines, metrics=EXACT, limit=3)
    assert raised.value.reason == "NO_TARGETS"
