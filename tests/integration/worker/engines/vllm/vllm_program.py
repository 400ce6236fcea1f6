"""Run by the Python that has vLLM: exercises the engine and prints what it saw as one JSON object.

`vllm_program.py MODELS observe` does all of it but `… unloadable`, which starts an engine for each of several
models that cannot be loaded; `… hold` loads a model, says so and waits to be killed.
"""

import asyncio
import os
import signal
import sys
import time
from dataclasses import asdict
from pathlib import Path

from proctor.values.sample import ChatMessage, Prompt
from services.worker.engines import engine
from services.worker.engines.vllm.engine import VllmEngine
from tests.fakes.eventually import eventually
from tests.integration.worker.engines.vllm.vllm_loading import adapter_models, see_adapters, see_unloadable
from tests.integration.worker.engines.vllm.vllm_models import (
    BROKEN,
    CHAT,
    ENDLESS,
    FIRST,
    GREEDY,
    MISSING,
    QUESTION,
    SECOND,
    Seen,
    engine_processes,
    failure_of,
    make_engine,
    make_models,
    report,
)
from tests.integration.worker.engines.vllm.vllm_reasoning import see_reasoning
from tests.integration.worker.engines.vllm.vllm_rows import see_rows


async def longest_pause(stop: asyncio.Event) -> float:
    """How long the event loop was deaf, in seconds."""
    longest, last = 0.0, time.monotonic()
    while not stop.is_set():
        await asyncio.sleep(0.01)
        now = time.monotonic()
        longest, last = max(longest, now - last), now
    return longest


async def see_loading(vllm: VllmEngine) -> Seen:
    missing = await failure_of(vllm.load(MISSING))
    broken = await failure_of(vllm.load(BROKEN))
    stop = asyncio.Event()
    watching = asyncio.create_task(longest_pause(stop))
    started = time.monotonic()
    await vllm.load(FIRST)
    stop.set()
    seconds = time.monotonic() - started
    return {"missing": missing, "broken": broken, "pause": await watching, "load_seconds": seconds,
            "loaded": vllm.loaded_model, "facts": dict(await vllm.describe())}  # fmt: skip


async def see_generating(vllm: VllmEngine) -> Seen:
    generated = await vllm.generate(FIRST, QUESTION, GREEDY)
    again = await vllm.generate(FIRST, QUESTION, GREEDY)
    long_prompt = Prompt("good " * 200)
    await vllm.generate(FIRST, long_prompt, GREEDY)
    cached = await vllm.generate(FIRST, long_prompt, GREEDY)
    answer = await vllm.generate(FIRST, CHAT, GREEDY)
    return {
        "texts": [generated.answer.text, again.answer.text],
        "finish_reason": generated.answer.finish_reason,
        "tokens": [generated.usage.prompt_tokens, generated.usage.completion_tokens],
        "chat_tokens": answer.usage.prompt_tokens,
        "cached_tokens": cached.usage.cached_tokens,
        "timing": asdict(generated.timing),
    }


async def likeliest_first(vllm: VllmEngine) -> list[str]:
    """The two answers, the one that the model gives first: so much it has learnt."""
    text = (await vllm.generate(FIRST, QUESTION, engine.Sampling(max_tokens=1))).answer.text
    answers = [" positive", " negative"]
    return sorted(answers, key=lambda answer: answer != text)


# Several times as long as the context.
LONG_TEXT = "The film was good. " * 900


async def see_scoring(vllm: VllmEngine) -> Seen:
    """The same two choices by one request, and with a longer one beside them by a request for each."""
    single = await vllm.score_choices(FIRST, QUESTION, [" positive", " negative"], truncate_left=False)
    several = await vllm.score_choices(
        FIRST, QUESTION, [" positive", " negative", " quite so"], truncate_left=False
    )
    answers = await likeliest_first(vllm)
    greedy = await vllm.score_choices(FIRST, QUESTION, answers, truncate_left=False)
    slowly = await vllm.score_choices(FIRST, QUESTION, [*answers, " quite so"], truncate_left=False)
    ended = await vllm.score_choices(
        FIRST,
        Prompt(""),
        [f"{QUESTION.text} positive", "So positive"],
        ending=" positive",
        truncate_left=False,
    )
    whole = {
        text: await vllm.score_choices(FIRST, Prompt(""), [text], truncate_left=False)
        for text in (" positive", LONG_TEXT, "")
    }
    too_long = Prompt("good " * 3000)
    cut = await vllm.score_choices(FIRST, too_long, [" positive"], truncate_left=True)
    return {
        "single": [choice.logprob for choice in single.answer.choices],
        "several": [choice.logprob for choice in several.answer.choices],
        "whole": [asdict(each.answer.choices[0]) for each in whole.values()],
        "ended": [choice.logprob for choice in ended.answer.choices],
        "token_counts": [choice.token_count for choice in several.answer.choices],
        "timing": asdict(several.timing),
        "prompt_tokens": [single.usage.prompt_tokens, several.usage.prompt_tokens],
        "greedy": [choice.is_greedy for choice in greedy.answer.choices],
        "greedy_slowly": [choice.is_greedy for choice in slowly.answer.choices],
        "too_long": await failure_of(vllm.score_choices(FIRST, too_long, [" positive"], truncate_left=False)),
        "too_long_generation": await failure_of(vllm.generate(FIRST, too_long, GREEDY)),
        "cut_tokens": cut.usage.prompt_tokens,
        "unknown_parameter": await failure_of(
            vllm.generate(FIRST, QUESTION, engine.Sampling(max_tokens=1, extra={"no_such": 1}))
        ),
        "context_tokens": await failure_of(
            vllm.generate(FIRST, QUESTION, engine.Sampling(max_tokens=1, context_tokens=64))
        ),
    }


async def see_constraining(vllm: VllmEngine) -> Seen:
    """Hot, so that without a constraint it would say anything; and with texts that no model says alone."""
    colours = ("blue", "blue green", ' crimson "dark"')
    chat = Prompt(messages=(ChatMessage("user", QUESTION.as_text),))
    hot = [
        engine.Sampling(max_tokens=64, temperature=2.0, seed=seed, allowed_texts=colours)
        for seed in range(20)
    ]
    answers = await asyncio.gather(*(vllm.generate(FIRST, QUESTION, sampling) for sampling in hot))
    chatted = await vllm.generate(FIRST, chat, hot[0])
    answers_given = [" positive", " negative"]
    greedy = engine.Sampling(max_tokens=64, allowed_texts=tuple(answers_given))
    return {
        "allowed": colours,
        "said": [each.answer.text for each in (*answers, chatted)],
        "finish_reasons": sorted({each.answer.finish_reason for each in answers}),
        "greedy": (await vllm.generate(FIRST, QUESTION, greedy)).answer.text,
        "likeliest": (await likeliest_first(vllm))[0],
    }


def unfinished(vllm: VllmEngine) -> int:
    assert vllm._runtime is not None
    count: int = vllm._runtime._async_llm.get_num_unfinished_requests()
    return count


async def until_asked(vllm: VllmEngine, *, requests: int) -> None:
    await eventually(lambda: unfinished(vllm) >= requests, "the engine has the requests")


async def see_cancelling(vllm: VllmEngine) -> Seen:
    asking = asyncio.create_task(vllm.generate(FIRST, QUESTION, ENDLESS))
    await until_asked(vllm, requests=1)
    asking.cancel()
    await asyncio.wait([asking])
    return {"cancelled": asking.cancelled(), "left": unfinished(vllm)}


async def see_aborting(vllm: VllmEngine) -> Seen:
    """The engine itself ends what it answers, as it does where weights are exchanged."""
    asking = asyncio.create_task(failure_of(vllm.generate(FIRST, QUESTION, ENDLESS)))
    await until_asked(vllm, requests=1)
    assert vllm._runtime is not None
    await vllm._runtime._async_llm.pause_generation(mode="abort")
    failure = await asking
    await vllm._runtime._async_llm.resume_generation()
    again = await vllm.generate(FIRST, QUESTION, GREEDY)
    return {"type": failure["type"], "says": failure["says"], "tokens_after": again.usage.completion_tokens}


async def see_dying(vllm: VllmEngine) -> Seen:
    """The engine's process is killed while it answers; asked again, it is there again."""
    asking = [asyncio.create_task(failure_of(vllm.generate(FIRST, QUESTION, ENDLESS))) for _ in range(5)]
    await until_asked(vllm, requests=len(asking))
    started = time.monotonic()
    for process in engine_processes():
        os.kill(process.pid, signal.SIGKILL)
    failures = await asyncio.gather(*asking)
    seconds = time.monotonic() - started
    loaded = vllm.loaded_model
    again = await vllm.generate(FIRST, QUESTION, GREEDY)
    return {"types": [failure["type"] for failure in failures], "seconds": seconds, "loaded": loaded,
            "tokens_after": again.usage.completion_tokens}  # fmt: skip


async def see_swapping(vllm: VllmEngine) -> Seen:
    """A request in flight on the first model is answered before the second one takes its place."""
    before = {process.pid for process in engine_processes()}
    asking = asyncio.create_task(vllm.generate(FIRST, QUESTION, ENDLESS))
    await until_asked(vllm, requests=1)
    await vllm.load(SECOND)
    answered = await asking
    gone = not before & {process.pid for process in engine_processes()}
    loaded = vllm.loaded_model
    templateless = await failure_of(vllm.generate(SECOND, CHAT, GREEDY))
    return {"answered_tokens": answered.usage.completion_tokens, "old_is_gone": gone, "loaded": loaded,
            "templateless": templateless}  # fmt: skip


async def observe(folder: Path) -> Seen:
    vllm = make_engine(folder, *adapter_models(folder))
    return {
        "loading": await see_loading(vllm),
        "generating": await see_generating(vllm),
        "scoring": await see_scoring(vllm),
        "constraining": await see_constraining(vllm),
        "cancelling": await see_cancelling(vllm),
        "aborting": await see_aborting(vllm),
        "dying": await see_dying(vllm),
        "rows": await see_rows(vllm),
        "reasoning": see_reasoning(folder),
        "swapping": await see_swapping(vllm),
        "adapters": await see_adapters(vllm),
    }


async def hold(folder: Path) -> Seen:
    vllm = make_engine(folder)
    await vllm.load(FIRST)
    report({"engines": [process.pid for process in engine_processes()]})
    await asyncio.Event().wait()
    return {}


PROGRAMS = {"observe": observe, "unloadable": see_unloadable, "hold": hold}


def main() -> None:
    folder = Path(sys.argv[1])
    make_models(folder)
    report(asyncio.run(PROGRAMS[sys.argv[2]](folder)))


if __name__ == "__main__":
    main()
