"""A shard of work and its outcomes, as the worker sees them."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from proctor.values.code import CodeCheck
from proctor.values.outcome import Failure
from proctor.values.rollout import Rollout
from proctor.values.run import RunId
from proctor.values.sample import Prompt
from services.worker.engines.engine import Generated, Sampling, ScoredChoices


class Method(StrEnum):
    """How a sample is sent to the engine."""

    GENERATE = "generate"
    SCORE_CHOICES = "score_choices"
    CONSTRAINED = "constrained"


@dataclass(frozen=True, slots=True)
class ShardSample:
    """`sampling` is set for parameters of its own; `refusal` says in one sentence why those are invalid.

    `code_check` is set where the answer is code, which is executed, `rollout` where an agent works on it.
    """

    number: int
    prompt: Prompt
    choices: tuple[str, ...] = ()
    sampling: Sampling | None = None
    refusal: str = ""
    code_check: CodeCheck | None = None
    rollout: Rollout | None = None


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
    # Echoed with the outcomes: results checks that the scheduler dispatched these samples.
    dispatch_proof: bytes = b""
    dispatched_samples: tuple[range, ...] = ()

    @property
    def has_choice_instruction(self) -> bool:
        """Whether the model is shown the choices; all samples of a task have choices or none."""
        return self.method is not Method.SCORE_CHOICES and bool(self.samples and self.samples[0].choices)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of one sample of a shard, with its share of the time of the worker's GPUs."""

    shard: Shard
    sample: int
    result: Generated | ScoredChoices | Failure
    gpu_seconds: float = 0.0

    @property
    def characters(self) -> int:
        """Roughly its size in a message."""
        match self.result:
            case Generated(text=text, finish_reason=reason, body_json=body):
                return len(text) + len(reason) + len(body) + 60
            case ScoredChoices(choices=choices):
                return 16 * len(choices) + 60
            case Failure(message=message):
                return len(message) + 30


@dataclass(frozen=True, slots=True)
class OutcomeBatch:
    """Outcomes of one run and epoch, published as one message."""

    run_id: RunId
    epoch: int
    outcomes: tuple[Outcome, ...]
