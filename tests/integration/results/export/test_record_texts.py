"""The texts of prompts and targets in the view of exports (SQL) equal those of the values (Python)."""

import hashlib
import random
from dataclasses import replace

from proctor.values.sample import ChatMessage, Prompt
from services.results.samples.sample import StoredSample, target_as_text
from services.results.scoring.score import ScoringTarget
from tests.fakes.eventually import eventually
from tests.fakes.results.recorded_run import CHOICE_SCORING, batch, failed, plan_of
from tests.fakes.results.results_harness import results_harness

_SAMPLES = 400
_TEXTS = ("", " ", "yes", " yes", "  no", "\nÄ\\n", '{"a": "b"}', "it's | so", "\u2028", "null")


def _sample(position: int, draw: random.Random) -> StoredSample:
    def texts(maximum: int) -> tuple[str, ...]:
        return tuple(draw.choices(_TEXTS, k=draw.randint(0, maximum)))

    choices = texts(4)
    kind = draw.choice(("choice", "several", "texts"))
    target = ScoringTarget(
        choices=choices,
        choice=draw.randint(-2, 5) if kind == "choice" else None,
        texts=texts(3),
        right_choices=tuple(draw.sample(range(5), draw.randint(0, 3))) if kind == "several" else (),
    )
    turns = tuple(
        ChatMessage(
            draw.choice(("user", "assistant")), draw.choice(_TEXTS), draw.choice(("", '{"name": "x"}'))
        )
        for _ in range(draw.randint(1, 4))
    )
    prompt = Prompt(messages=turns) if draw.random() < 0.6 else Prompt(draw.choice(_TEXTS))
    return StoredSample(position, position, hashlib.sha256(f"{position}".encode()).digest(), prompt, target)


async def test_the_view_of_exports_shows_prompts_and_targets_as_python_does() -> None:
    draw = random.Random(20)
    samples = [_sample(position, draw) for position in range(_SAMPLES)]
    delimiters = (" ", "", "yes")
    async with results_harness() as harness:
        sample_set_id = await harness.store(samples)
        plan = plan_of([_SAMPLES] * 3, [sample_set_id] * 3)
        tasks = [
            replace(task, scoring=replace(CHOICE_SCORING, target_delimiter=delimiter))
            for task, delimiter in zip(plan.tasks, delimiters, strict=True)
        ]
        plan = await harness.open(replace(plan, tasks=tuple(tasks)))
        await harness.send(batch(plan.run_id, [failed(number) for number in range(plan.total)]))

        async def all_recorded() -> bool:
            return await harness.recorded(plan.run_id) == plan.total

        await eventually(all_recorded, "everything is recorded")
        async with harness.database() as database:
            rows = await database.fetch(
                "SELECT prompt, target FROM outcome_records WHERE run_id = $1 ORDER BY sample", plan.run_id
            )
    expected = [
        (sample.prompt.as_text, target_as_text(sample.target, delimiter))
        for delimiter in delimiters
        for sample in samples
    ]
    assert [tuple(row) for row in rows] == expected
