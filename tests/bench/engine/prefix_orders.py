"""Asks vLLM few-shot questions in order and shuffled, as a worker would. Run by vLLM's own python.

Reads {"model"} from standard input, prints one JSON object: what came of each cache and order.
"""

import asyncio
import json
import random
import sys
import time
from collections.abc import Mapping, Sequence

from proctor.values.providers.pool import PoolModel
from proctor.values.providers.worker import EngineLoad
from proctor.values.sample import Prompt
from services.worker.engines.engine import Sampling
from services.worker.engines.vllm.engine import VllmEngine
from services.worker.engines.vllm.model_files import VllmSettings

# As MMLU: 57 subjects, each with five examples of its own before every question.
SUBJECTS, QUESTIONS, SHOTS, WORDS = 57, 12, 5, 40
CONCURRENCY = 64
# Tokens in blocks of 32: one cache holds the examples of all subjects, the other a few of them.
CACHES = {"holds all prefixes": 2_000, "holds a few": 320}
ENGINE_ARGS = {"max_num_seqs": 16, "max_model_len": 1024}
VOCABULARY = ("film", "good", "bad", "story", "actor", "scene", "music", "slow", "bright", "dull")


def prompts_of(pass_number: int) -> list[str]:
    """In the order of their subjects; those of another pass share no prefix with them."""
    draw = random.Random(pass_number)
    return [
        examples + question(draw)
        for subject in range(SUBJECTS)
        for examples in [
            f"{pass_number} {subject}\n" + "".join(f"{question(draw)} A\n" for _ in range(SHOTS))
        ]
        for _ in range(QUESTIONS)
    ]


def question(draw: random.Random) -> str:
    return f"Question: {' '.join(draw.choices(VOCABULARY, k=WORDS))}\nAnswer:"


async def ask_all(vllm: VllmEngine, prompts: Sequence[str], *, is_weighed: bool) -> Mapping[str, float]:
    """The share of prompt tokens found in the cache, and seconds."""
    slots, before, started = asyncio.Semaphore(CONCURRENCY), load_of(vllm), time.perf_counter()

    async def ask(text: str) -> None:
        async with slots:
            if is_weighed:
                await vllm.score_choices(
                    "vllm/m", Prompt(text), [" positive", " quite so"], truncate_left=True
                )
            else:
                await vllm.generate("vllm/m", Prompt(text), Sampling(max_tokens=4))

    await asyncio.gather(*map(ask, prompts))
    after = load_of(vllm)
    queries = after.prefix_cache_queries - before.prefix_cache_queries
    hits = after.prefix_cache_hits - before.prefix_cache_hits
    return {"hit_rate": hits / max(1, queries), "seconds": time.perf_counter() - started, "queries": queries}


def load_of(vllm: VllmEngine) -> EngineLoad:
    load = vllm.current_load()
    assert load is not None
    return load


async def measure(model: str, blocks: int) -> Mapping[str, Mapping[str, float]]:
    arguments = {**ENGINE_ARGS, "num_gpu_blocks_override": blocks}
    vllm = VllmEngine(VllmSettings((PoolModel("vllm/m", model, arguments),)))
    await vllm.load("vllm/m")
    in_order, shuffled, weighed = prompts_of(1), prompts_of(2), prompts_of(3)[: SUBJECTS * 2]
    random.Random(0).shuffle(shuffled)
    seen = {
        "generated, in order": await ask_all(vllm, in_order, is_weighed=False),
        "generated, shuffled": await ask_all(vllm, shuffled, is_weighed=False),
        "weighed, in order": await ask_all(vllm, weighed, is_weighed=True),
    }
    await vllm.close()
    return seen


async def main() -> None:
    model = json.load(sys.stdin)["model"]
    seen = {name: await measure(model, blocks) for name, blocks in CACHES.items()}
    sys.stdout.write(f"\n{json.dumps(seen)}\n")


if __name__ == "__main__":
    asyncio.run(main())
