"""Both sides over the same rows and model, document by document, and what differs between them."""

import asyncio
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean

from rich.table import Table

from proctor.stack.vllm.environment import find_vllm_python
from tests.fakes.stack.state_dir import temporary_state_dir
from tests.harness.starter_model import starter_pool
from tests.real_model.compared_tasks import COMPARED_TASKS
from tests.real_model.examined_side import ExaminedTask, Said
from tests.real_model.lm_eval_side import Completions, examine_with_lm_eval
from tests.real_model.proctor_side import examine_with_proctor
from tests.real_model.vllm_server import vllm_server
from tests.reference.golden_reference import folder_of

# Short enough for passages of boolq to be cut, long enough for a question of gsm8k and its answer.
MAX_MODEL_LEN = 512


@dataclass(frozen=True, slots=True)
class TaskParity:
    """One task as it went on both sides."""

    proctor: ExaminedTask
    lm_eval: ExaminedTask

    @property
    def pairs(self) -> list[tuple[Said, Said]]:
        return list(zip(self.proctor.said, self.lm_eval.said, strict=True))

    @property
    def is_weighed(self) -> bool:
        """Choices were weighed; else texts were generated."""
        return bool(self.lm_eval.said[0].choices)

    @property
    def logprob_differences(self) -> list[float]:
        """Absolute, one per continuation."""
        return [
            abs(ours - theirs)
            for pair in self.pairs
            for ours, theirs in zip(pair[0].logprobs, pair[1].logprobs, strict=True)
        ]

    @property
    def unequal(self) -> list[tuple[Said, Said]]:
        """Documents of which the sides hold different answers: another choice, or another text."""
        return [(ours, theirs) for ours, theirs in self.pairs if is_other(ours, theirs)]


def is_other(ours: Said, theirs: Said) -> bool:
    return (ours.choice, ours.text) != (theirs.choice, theirs.text)


async def compare_on_real_model() -> Mapping[str, TaskParity]:
    """One after the other: lm-evaluation-harness asks a server, then Proctor its own engine.

    Skips the calling test where vLLM, the model or the rows are missing.
    """
    pool = starter_pool()
    folder_of("PROCTOR_DATA_DIR")
    served = replace(pool.models[0], engine_args={"max_model_len": MAX_MODEL_LEN})
    python = find_vllm_python(os.environ)
    assert python is not None
    with tempfile.TemporaryDirectory() as folder:
        async with vllm_server(python, served, Path(folder) / "vllm.log") as url:
            completions = Completions(url, served, MAX_MODEL_LEN)
            lm_eval = await asyncio.to_thread(examine_with_lm_eval, completions, Path(folder))
    with temporary_state_dir() as state_dir:
        proctor = await examine_with_proctor(replace(pool, models=(served,)), state_dir.parent)
    return {task.name: TaskParity(proctor[task.name], lm_eval[task.name]) for task in COMPARED_TASKS}


def side_by_side(parities: Mapping[str, TaskParity]) -> Table:
    table = Table(title="The small model, examined by Proctor and by lm-evaluation-harness")
    for heading in ("task", "metric"):
        table.add_column(heading)
    for heading in ("n", "Proctor", "lm_eval", "max |Δ log p|", "mean |Δ log p|", "other answers"):
        table.add_column(heading, justify="right")
    for task, parity in parities.items():
        for metric, theirs in parity.lm_eval.figures.items():
            figures = [f"{parity.proctor.figures[metric]:.4f}", f"{theirs:.4f}"]
            table.add_row(task, metric, str(len(parity.pairs)), *figures, *_differences(parity))
    return table


def _differences(parity: TaskParity) -> tuple[str, str, str]:
    other = str(len(parity.unequal))
    if not parity.is_weighed:
        return "", "", other
    return f"{max(parity.logprob_differences):.5f}", f"{fmean(parity.logprob_differences):.6f}", other
