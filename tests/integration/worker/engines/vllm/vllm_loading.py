"""Part of `vllm_program.py`: loads what cannot be loaded, and LoRA adapters."""

import asyncio
import json
import shutil
from dataclasses import asdict
from pathlib import Path

from proctor.values.providers.pool import PoolModel
from proctor.values.providers.worker import EngineLoad
from proctor.values.sample import Prompt
from services.worker.engines import engine
from services.worker.engines.vllm.engine import VllmEngine
from services.worker.engines.vllm.model_files import VllmSettings
from tests.fakes.worker.lora_adapter import make_adapter
from tests.integration.worker.engines.vllm.vllm_models import (
    ADAPTED,
    GREEDY,
    QUESTION,
    SECOND,
    Seen,
    engine_processes,
    failure_of,
    lasting_engines,
)

ADAPTERS = ("vllm/one", "vllm/two")


def altered(folder: Path, name: str, **changes: object) -> str:
    """The base with another config."""
    shutil.copytree(folder / "first", folder / name)
    config_file = folder / name / "config.json"
    config = json.loads(config_file.read_text(encoding="utf-8"))
    config_file.write_text(json.dumps(config | changes), encoding="utf-8")
    return str(folder / name)


def bad_models(folder: Path) -> dict[str, PoolModel]:
    base = str(folder / "first")
    cut_off = altered(folder, "cut-off")
    weights = Path(cut_off) / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1000])
    return {
        "architecture": PoolModel(
            "vllm/architecture", altered(folder, "unknown", architectures=["NoSuchLM"])
        ),
        "cut_off": PoolModel("vllm/cut_off", cut_off),
        "too_big": PoolModel("vllm/too_big", base, {"num_gpu_blocks_override": 8}),
        "parallel": PoolModel("vllm/parallel", base, {"tensor_parallel_size": 3}),
        "argument": PoolModel("vllm/argument", base, {"no_such": 1}),
        "parser": PoolModel("vllm/parser", base, reasoning_parser="no_such"),
    }


async def see_unloadable(folder: Path) -> Seen:
    models = bad_models(folder)
    vllm = VllmEngine(VllmSettings(tuple(models.values())))
    seen: Seen = {case: await failure_of(vllm.load(model.name)) for case, model in models.items()}
    await vllm.close()
    return {"refusals": seen, "left": len(engine_processes())}


def adapter_models(folder: Path) -> tuple[PoolModel, ...]:
    """Of the second model, in one engine with it."""
    base = folder / "second"
    one = make_adapter(base, folder / "one", seed=1)
    two = make_adapter(base, folder / "two", seed=2, rank=12)
    damaged = make_adapter(base, folder / "damaged", seed=3)
    (damaged / "adapter_model.safetensors").write_bytes(b"no weights")
    folders = {ADAPTERS[0]: one, ADAPTERS[1]: two, "vllm/damaged": damaged, "vllm/absent": folder / "absent"}
    return tuple(PoolModel(name, str(base), {}, str(lora), ADAPTED) for name, lora in folders.items())


async def see_adapters(vllm: VllmEngine) -> Seen:
    """In the engine of the second model, which was asked nothing yet; closes it."""
    load = await see_load(vllm)
    engines = {process.pid for process in engine_processes()}
    await vllm.load(ADAPTERS[0])
    await vllm.load(SECOND)
    bad = {name: await failure_of(vllm.load(f"vllm/{name}")) for name in ("damaged", "absent")}
    names = (SECOND, *ADAPTERS)
    answers = await asyncio.gather(*(vllm.generate(name, QUESTION, GREEDY) for name in names * 4))
    said = {name: {each.answer.text for each in answers[index::3]} for index, name in enumerate(names)}
    scores = {
        name: (await vllm.score_choices(name, QUESTION, [" positive", " negative"], truncate_left=False))
        for name in names
    }
    seen = {
        "bad": bad,
        "said": {name: sorted(texts) for name, texts in said.items()},
        "logprobs": {
            name: [choice.logprob for choice in each.answer.choices] for name, each in scores.items()
        },
        "same_engine": engines == {process.pid for process in engine_processes()},
        "facts": dict(await vllm.describe()),
        "load": load,
    }
    await vllm.close()
    left = len(await lasting_engines())
    return {**seen, "left_after_close": left, "told_after_close": vllm.current_load()}


def load_of(vllm: VllmEngine) -> EngineLoad:
    load = vllm.current_load()
    assert load is not None
    return load


async def see_load(vllm: VllmEngine) -> Seen:
    """Eight long questions that begin alike, asked at once of a fresh engine."""
    idle, most_busy = load_of(vllm), 0
    sampling = engine.Sampling(max_tokens=64, extra={"ignore_eos": True})
    prompt = Prompt("good " * 200)
    asking = asyncio.gather(*(vllm.generate(SECOND, prompt, sampling) for _ in range(8)))
    while not asking.done():
        await asyncio.sleep(0.01)
        most_busy = max(most_busy, load_of(vllm).running_requests + load_of(vllm).waiting_requests)
    answers = await asking
    return {
        "idle": asdict(idle),
        "most_busy": most_busy,
        "done": asdict(load_of(vllm)),
        "tokens": sum(answer.usage.completion_tokens for answer in answers),
    }
