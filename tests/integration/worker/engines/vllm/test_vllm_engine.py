"""The engine `vllm` for real: the Python that has vLLM runs `vllm_program.py`; judged here is what it saw."""

import json
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.fakes.eventually import eventually
from tests.fakes.stack.observed_processes import command_line_of
from tests.integration.worker.engines.vllm.conftest import LIMIT_SECONDS, running


def test_model_that_cannot_be_loaded_is_one_sentence(seen: dict[str, Any]) -> None:
    for case in ("missing", "broken"):
        assert seen["loading"][case]["type"] == "ModelCannotLoad"
        assert "\n" not in seen["loading"][case]["says"]
    assert "does not exist" in seen["loading"]["missing"]["says"]
    assert seen["loading"]["missing"]["seconds"] < 1


def test_event_loop_goes_on_while_a_model_is_loaded(seen: dict[str, Any]) -> None:
    assert seen["loading"]["loaded"] == "vllm/first"
    assert seen["loading"]["pause"] < seen["loading"]["load_seconds"] / 2


def test_what_makes_a_run_repeatable_is_described(seen: dict[str, Any]) -> None:
    facts = seen["loading"]["facts"]
    assert facts["engine"] == "vllm"
    assert all(
        facts[name] for name in ("engine_version", "torch_version", "dtype", "hardware", "max_model_len")
    )


def test_texts_and_messages_are_answered_with_their_figures(seen: dict[str, Any]) -> None:
    generating = seen["generating"]
    assert generating["texts"][0] == generating["texts"][1]
    assert generating["finish_reason"] == "length"
    assert generating["tokens"][0] > 0
    assert generating["tokens"][1] == 8
    assert generating["chat_tokens"] > 0


def test_answer_has_its_times_and_a_scored_choice_only_the_total(seen: dict[str, Any]) -> None:
    answer, scored = seen["generating"]["timing"], seen["scoring"]["timing"]
    assert 0 <= answer["queue_seconds"] < answer["first_token_seconds"] < answer["total_seconds"]
    assert 0 < answer["between_tokens_seconds"] < answer["total_seconds"] / 7
    assert 0 <= scored["queue_seconds"] < scored["total_seconds"]
    assert scored["first_token_seconds"] is scored["between_tokens_seconds"] is None


def test_prefix_asked_before_is_counted_as_cached(seen: dict[str, Any]) -> None:
    assert seen["generating"]["cached_tokens"] >= 128


def test_one_request_gives_the_same_scores_as_one_for_each_choice(seen: dict[str, Any]) -> None:
    scoring = seen["scoring"]
    assert scoring["single"] == pytest.approx(scoring["several"][:2], abs=0.05)
    assert scoring["token_counts"][2] > 1
    assert scoring["prompt_tokens"][0] * 3 < scoring["prompt_tokens"][1]


def test_an_ending_is_scored_after_the_rest_of_its_choice(seen: dict[str, Any]) -> None:
    scoring = seen["scoring"]
    assert scoring["ended"][0] == pytest.approx(scoring["several"][0], abs=0.05)
    assert scoring["ended"][0] != pytest.approx(scoring["ended"][1], abs=0.05)


def test_a_whole_text_is_scored_in_windows_of_the_context(seen: dict[str, Any]) -> None:
    short, long, empty = seen["scoring"]["whole"]
    assert (short["token_count"], empty["logprob"]) == (1, 0.0)
    assert long["token_count"] > 2048
    assert long["logprob"] < short["logprob"] < 0


def test_likeliest_token_is_greedy_however_it_is_scored(seen: dict[str, Any]) -> None:
    assert seen["scoring"]["greedy"] == [True, False]
    assert seen["scoring"]["greedy_slowly"] == [True, False, False]


def test_prompt_too_long_is_a_failure_unless_it_may_be_cut(seen: dict[str, Any]) -> None:
    scoring = seen["scoring"]
    assert scoring["too_long"]["type"] == scoring["too_long_generation"]["type"] == "PromptTooLong"
    assert scoring["cut_tokens"] == 2047


def test_unknown_parameter_is_refused_by_name(seen: dict[str, Any]) -> None:
    assert seen["scoring"]["unknown_parameter"]["type"] == "RequestRefused"
    assert "no_such" in seen["scoring"]["unknown_parameter"]["says"]
    assert "context_tokens" in seen["scoring"]["context_tokens"]["says"]


def test_constrained_decoding_answers_only_choices(seen: dict[str, Any]) -> None:
    constraining = seen["constraining"]
    assert set(constraining["said"]) <= set(constraining["allowed"])
    assert len(set(constraining["said"])) > 1
    assert constraining["finish_reasons"] == ["stop"]


def test_constrained_and_greedy_the_likeliest_choice_is_generated(seen: dict[str, Any]) -> None:
    assert seen["constraining"]["greedy"] == seen["constraining"]["likeliest"]


def test_cancelling_the_task_aborts_the_request(seen: dict[str, Any]) -> None:
    assert seen["cancelling"] == {"cancelled": True, "left": 0}


def test_an_answer_that_the_engine_aborts_is_a_failure_and_no_answer(seen: dict[str, Any]) -> None:
    aborted = {"type": "EngineBrokeOff", "says": "vLLM broke off its answer (abort)."}
    assert seen["aborting"] == aborted | {"tokens_after": seen["generating"]["tokens"][1]}


def test_killed_engine_fails_all_in_flight_at_once_and_is_started_again(seen: dict[str, Any]) -> None:
    dying = seen["dying"]
    assert dying["types"] == ["EngineDied"] * 5
    assert dying["seconds"] < 5
    assert dying["loaded"] is None
    assert dying["tokens_after"] == 8


def test_swap_answers_what_is_in_flight_and_ends_the_old_engine(seen: dict[str, Any]) -> None:
    swapping = seen["swapping"]
    assert swapping["answered_tokens"] == 1500
    assert swapping["old_is_gone"]
    assert swapping["loaded"] == "vllm/second"
    assert seen["adapters"]["left_after_close"] == 0


def test_chat_with_a_model_without_a_template_is_refused_for_the_whole_run(seen: dict[str, Any]) -> None:
    refusal = seen["swapping"]["templateless"]
    assert refusal["type"] == "ModelRefused"
    assert "vllm/second has no chat template: order prompt_form completion." in refusal["says"]


def is_gone(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def starting_engines(parent: int) -> list[int]:
    children = psutil.Process(parent).children(recursive=True)
    return [each.pid for each in children if "--multiprocessing-fork" in command_line_of(each)]


def poll_until_not_empty(look: Callable[[], list[int]]) -> list[int]:
    deadline = time.monotonic() + LIMIT_SECONDS
    while time.monotonic() < deadline:
        found = look()
        if found:
            return found
    raise AssertionError("no engine process was started")


# `make test` kills the worker of an engine that is still starting.
@pytest.mark.thorough
@pytest.mark.usefixtures("seen")
async def test_engine_does_not_outlive_a_killed_worker(models: Path) -> None:
    with running(models, "hold") as process:
        assert process.stdout is not None
        held = next(line for line in process.stdout if line.startswith("{"))
        pids = json.loads(held)["engines"]
        assert pids
        os.kill(process.pid, signal.SIGKILL)
        await eventually(lambda: all(map(is_gone, pids)), "the engine's process is gone")


@pytest.mark.thorough
@pytest.mark.usefixtures("seen")
async def test_engine_that_is_still_starting_dies_with_the_worker_too(models: Path) -> None:
    with running(models, "hold") as process:
        pids = poll_until_not_empty(lambda: starting_engines(process.pid))
        os.kill(process.pid, signal.SIGKILL)
        await eventually(lambda: all(map(is_gone, pids)), "the engine's process is gone")
