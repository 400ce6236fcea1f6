"""A shard of work and what comes back for it, in the worker's own words."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import NewType

from services.worker.engines.engine import FailureClass, Generated, Prompt, Sampling, ScoredChoices

RunId = NewType("RunId", str)


class Method(StrEnum):
    """How a sample is put to the engine."""

    GENERATE = "generate"
    SCORE_CHOICES = "score_choices"
    CONSTRAINED = "constrained"


@dataclass(frozen=True, slots=True)
class ShardSample:
    """`sampling` where it has parameters of its own; `refusal`: why those cannot be read, in one sentence."""

    number: int
    prompt: Prompt
    choices: tuple[str, ...] = ()
    sampling: Sampling | None = None
    refusal: str = ""


@dataclass(frozen=True, slots=True)
class ShardKey:
    """The same for every delivery of one message, and for no other message."""

    message_id: str
    run_id: RunId
    epoch: int
    shard: int
    attempt: int
    first_sample: int
    sample_count: int


@dataclass(frozen=True, slots=True)
class Shard:
    run_id: RunId
    number: int
    attempt: int
    epoch: int
    model: str
    task: str
    rollout: int
    samples: tuple[ShardSample, ...]
    method: Method
    sampling: Sampling
    truncate_left: bool
    deadline: datetime
    # The server to ask instead of the pool's own; empty means the pool's own.
    base_url: str = ""

    @property
    def instructs(self) -> bool:
        """Whether choices are named to the model, which replies in words. All of a task have some or none."""
        return self.method is not Method.SCORE_CHOICES and bool(self.samples and self.samples[0].choices)

    def key_in(self, message_id: str) -> ShardKey:
        """The key of the message that brought it; a rest may hold the very same samples in another."""
        first = self.samples[0].number if self.samples else -1
        count = len(self.samples)
        return ShardKey(message_id, self.run_id, self.epoch, self.number, self.attempt, first, count)


@dataclass(frozen=True, slots=True)
class Failure:
    """Why the machinery could not bring an answer. Never scored."""

    failure_class: FailureClass
    message: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came back for one sample of a shard."""

    shard: Shard
    sample: int
    result: Generated | ScoredChoices | Failure

    @property
    def characters(self) -> int:
        """About the size on the wire."""
        match self.result:
            case Generated(text=text, finish_reason=reason, body_json=body):
                return len(text) + len(reason) + len(body) + 60
            case ScoredChoices(choices=choices):
                return 16 * len(choices) + 60
            case Failure(message=message):
                return len(message) + 30


@dataclass(frozen=True, slots=True)
class OutcomeBatch:
    """Outcomes of one run and epoch that travel as one message."""

    run_id: RunId
    epoch: int
    outcomes: tuple[Outcome, ...]


def single_message_id(shard: Shard, sample: int) -> str:
    """The same whenever a shard is cut up, so that a cut repeated after a crash adds nothing."""
    return f"{shard.run_id}/{shard.number}/{shard.attempt}/{sample}"


def rest_message_id(shard: Shard, unique: str, faults: int) -> str:
    """Never used before; its history travels along as the last part."""
    return f"{shard.run_id}/{shard.number}/{shard.attempt}/{unique}/{faults}"


def faults_of(message_id: str) -> int:
    """The history that a message was sent with."""
    parts = message_id.split("/")
    return int(parts[4]) if len(parts) == 5 else 0
