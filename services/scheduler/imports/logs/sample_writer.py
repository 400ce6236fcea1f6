"""Makes samples of what logs have, and hands them over in parts that fit a message."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from proctor.values.sample import ChatMessage, Prompt, Target
from services.scheduler.imports.logged_run import LoggedAnswer, LoggedSample, ReadLimits
from services.scheduler.imports.logs.document import LogProblem
from services.scheduler.suites.rendering.sample import (
    MAX_SAMPLE_BYTES,
    RenderedRow,
    RenderedSample,
    digest_of,
    encode_row,
    row_as_json,
)

PART_SAMPLES = 1000
PART_BYTES = 1024 * 1024
# What an answer takes without its texts, and each of its numbers.
_ANSWER_BYTES, _NUMBER_BYTES = 64, 16

# Takes the index of a task, and some of its samples in order.
Store = Callable[[int, Sequence[LoggedSample]], None]


@dataclass(frozen=True, slots=True)
class LoggedRow:
    """What a log has of a sample: `doc` is the row itself, `choice_ending` as in `Sample`."""

    doc_id: int
    prompt: Prompt
    target: Target
    choices: tuple[str, ...] = ()
    doc: Mapping[str, object] | None = None
    row_id: str = ""
    choice_ending: str = ""


class SampleWriter:
    """Writes the tasks of a log one after the other. Raises `LogProblem` for what is too large."""

    def __init__(self, store: Store, limits: ReadLimits) -> None:
        self._store = store
        self._limits = limits
        self._bytes = 0
        self._held: list[LoggedSample] = []
        self._held_bytes = 0
        self._task_index = -1
        self._name = self._version = ""
        self._count = 0
        self._answer_counts: list[int] = []
        self._answers = 0
        self._sums: dict[str, tuple[float, int]] = {}

    @property
    def answer_counts(self) -> tuple[int, ...]:
        """Of all samples so far."""
        return tuple(self._answer_counts)

    @property
    def means(self) -> Mapping[str, float]:
        """The mean of each metric of the task: over its samples, of the means over their answers."""
        return {metric: total / count for metric, (total, count) in self._sums.items()}

    def begin(self, task: str, version: str) -> None:
        self._task_index += 1
        self._name, self._version, self._count = task, version, 0
        self._sums = {}

    def add(self, row: LoggedRow, answers: Sequence[LoggedAnswer]) -> None:
        sample = self._sample(row)
        size = sample.stored_bytes + sum(_size(answer) for answer in answers)
        if size > MAX_SAMPLE_BYTES:
            raise LogProblem(
                f"Document {row.doc_id} of {self._name} has {size:,} bytes with its answers, "
                f"more than the {MAX_SAMPLE_BYTES:,} that a sample may have."
            )
        self._bytes += size
        if self._bytes > self._limits.sent_bytes:
            raise LogProblem(f"Its samples have more than {self._limits.sent_bytes:,} bytes. Import a part.")
        if self._held and (len(self._held) == PART_SAMPLES or self._held_bytes + size > PART_BYTES):
            self._flush()
        self._held.append(LoggedSample(sample, tuple(answers)))
        self._held_bytes += size
        self._count += 1
        self._answer_counts.append(len(answers))
        self._answers += len(answers)
        if self._answers > self._limits.samples:
            raise LogProblem(f"It has more than {self._limits.samples:,} answers. Import a part.")
        self._add_scores(answers)

    def end(self) -> int:
        """The number of samples of the task."""
        self._flush()
        return self._count

    def _add_scores(self, answers: Sequence[LoggedAnswer]) -> None:
        by_metric: dict[str, list[float]] = {}
        for answer in answers:
            for metric, score in answer.scores.items():
                if not isinstance(score, tuple):
                    by_metric.setdefault(metric, []).append(score)
        for metric, scores in by_metric.items():
            total, count = self._sums.get(metric, (0.0, 0))
            self._sums[metric] = (total + sum(scores) / len(scores), count + 1)

    def _flush(self) -> None:
        if self._held:
            self._store(self._task_index, self._held)
            self._held, self._held_bytes = [], 0

    def _sample(self, row: LoggedRow) -> RenderedSample:
        asked = row.prompt.text if row.prompt.text is not None else _as_json(row.prompt.messages)
        rendered = RenderedRow(asked, row.choices, row.target, row.choice_ending)
        encoded = encode_row(self._name, self._version, rendered)
        try:
            kept = row_as_json(row.doc) if row.doc else b""
        except TypeError as error:
            raise LogProblem(f"Document {row.doc_id} of {self._name} is nested too deeply.") from error
        return RenderedSample(
            position=self._count,
            doc_id=row.doc_id,
            digest=digest_of(encoded),
            prompt=row.prompt,
            choices=row.choices,
            target=row.target,
            doc_json=kept.decode(),
            row_id=row.row_id,
            size_bytes=len(encoded),
            stored_bytes=len(encoded) + len(kept),
            choice_ending=row.choice_ending,
        )


def _size(answer: LoggedAnswer) -> int:
    texts = (answer.failure, answer.prediction, *_texts(answer), *answer.scores)
    numbers = len(answer.scores) + (len(answer.answer.choices) if answer.answer else 0)
    return sum(len(text.encode()) for text in texts) + _ANSWER_BYTES + numbers * _NUMBER_BYTES


def _texts(answer: LoggedAnswer) -> tuple[str, ...]:
    said = answer.answer
    return () if said is None else (said.text, said.reasoning, said.finish_reason, said.body_json)


def _as_json(messages: Sequence[ChatMessage]) -> str:
    return json.dumps([[each.role, each.content, each.fields_json] for each in messages])
