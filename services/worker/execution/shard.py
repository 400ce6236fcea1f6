"""A shard of work, and a batch of outcomes of shards."""

from dataclasses import dataclass
from datetime import datetime

from proctor.values.code import CodeCheck
from proctor.values.making.quickly_made import quickly_made
from proctor.values.outcome import Failure, Outcome
from proctor.values.rollout import RolloutSpec
from proctor.values.run import RunId
from proctor.values.sample import Prompt
from proctor.values.scoring import ScoringMethod
from proctor.values.usage import NO_TOKENS, TokenUsage
from services.worker.engines.engine import EngineResponse, Sampling


@quickly_made
@dataclass(frozen=True, slots=True)
class ShardSample:
    """`sampling` is set for parameters of its own; `refusal` says in one sentence why those are invalid.

    `code_check` is set where the answer is code, which is executed, `rollout_spec` where an agent works on
    it, `choice_ending` where only this end of every choice is scored.
    """

    number: int
    prompt: Prompt
    choices: tuple[str, ...] = ()
    sampling: Sampling | None = None
    refusal: str = ""
    code_check: CodeCheck | None = None
    rollout_spec: RolloutSpec | None = None
    choice_ending: str = ""


@dataclass(frozen=True, slots=True)
class DispatchProof:
    """What the scheduler dispatched, as its bytes, and its signature of them."""

    dispatched: bytes = b""
    hmac: bytes = b""


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
    method: ScoringMethod
    sampling: Sampling
    truncate_left: bool
    deadline: datetime
    # The server to ask instead of the pool's own; empty means the pool's own.
    base_url: str = ""
    # Returned with the outcomes: results checks that the scheduler dispatched these samples.
    dispatch_proof: DispatchProof = DispatchProof()
    # Code is taken from the whole text of the model.
    keeps_reasoning: bool = False

    @property
    def has_choice_instruction(self) -> bool:
        """Whether the model is shown the choices; all samples of a task have choices or none."""
        has_choices = bool(self.samples and self.samples[0].choices)
        return has_choices and self.method is not ScoringMethod.LOGLIKELIHOOD

    def outcome(
        self, sample: int, result: EngineResponse | Failure, spent: TokenUsage = NO_TOKENS
    ) -> Outcome:
        """The outcome of one of its samples; `spent` are tokens besides those of the answer."""
        if isinstance(result, Failure):
            return Outcome(sample, self.rollout, self.number, self.attempt, result, spent)
        usage = result.usage if spent is NO_TOKENS else result.usage.plus(spent)
        return Outcome(sample, self.rollout, self.number, self.attempt, result.answer, usage, result.timing)


@dataclass(frozen=True, slots=True)
class OutcomeBatch:
    """Outcomes of one run and epoch, published as one message, and the shards that they are of.

    `is_last`: the worker executes nothing else of the run.
    """

    shards: tuple[Shard, ...]
    outcomes: tuple[Outcome, ...]
    is_last: bool = False

    @property
    def run_id(self) -> RunId:
        return self.shards[0].run_id

    @property
    def epoch(self) -> int:
        return self.shards[0].epoch
