"""vLLM's AsyncLLM with nothing around it: what a worker is held against. Run by vLLM's own python.

Reads {"model", "engine_args", "prompts", "max_tokens", "stop"} from standard input, prints {"seconds"}.
"""

import asyncio
import json
import os
import sys
import time
from typing import Any

CPU_ENVIRONMENT = {
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "OMP_NUM_THREADS": "1",
    "HF_HUB_OFFLINE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_LOGGING_LEVEL": "WARNING",
}


async def measure(order: dict[str, Any]) -> float:
    """Seconds from the first request to the last answer, every prompt at once."""
    from vllm import SamplingParams
    from vllm.engine.arg_utils import AsyncEngineArgs
    from vllm.sampling_params import RequestOutputKind
    from vllm.v1.engine.async_llm import AsyncLLM

    engine = AsyncLLM.from_engine_args(AsyncEngineArgs(model=order["model"], **order["engine_args"]))
    tokenizer = engine.get_tokenizer()
    params = SamplingParams(
        temperature=0,
        max_tokens=order["max_tokens"],
        stop=order["stop"],
        ignore_eos=True,
        output_kind=RequestOutputKind.FINAL_ONLY,
    )
    prompts = [tokenizer.encode(prompt) for prompt in order["prompts"]]

    async def ask(number: int, ids: list[int]) -> None:
        async for _ in engine.generate({"prompt_token_ids": ids}, params, request_id=str(number)):
            pass

    await asyncio.gather(*(ask(-number - 1, ids) for number, ids in enumerate(prompts[:64])))
    started = time.perf_counter()
    await asyncio.gather(*(ask(number, ids) for number, ids in enumerate(prompts)))
    seconds = time.perf_counter() - started
    engine.shutdown()
    return seconds


if __name__ == "__main__":
    for variable, setting in CPU_ENVIRONMENT.items():
        os.environ.setdefault(variable, setting)
    print(json.dumps({"seconds": asyncio.run(measure(json.load(sys.stdin)))}))
