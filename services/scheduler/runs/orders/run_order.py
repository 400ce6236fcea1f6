"""A user's order: one model over one suite or data set, with its settings and limits."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from proctor.values.comparison import UntilDecided
from proctor.values.generation import GenerationParams
from proctor.values.judging.named_judge import NamedJudge
from proctor.values.names.model_name import provider_of
from proctor.values.priority import Priority, default_priority
from proctor.values.rollout import AgentKind
from proctor.values.scoring import MetricUse, PromptForm, Reasoning, ScoringMethod, Truncation
from services.scheduler.judging.judge import Judge
from services.scheduler.suites.suite import Generation

# Judges that an order may name.
MAX_JUDGES = 10


@dataclass(frozen=True, slots=True)
class RunOrder:
    """`tasks` empty means all; `limit` takes the first rows of each; what is unset the scheduler chooses.

    `max_cost` is in the currency of the price file. `base_url` names a server instead of the pool's own.
    One of `suite`, `dataset_id` and `judge` is set; `metrics`, and `line_models`, names by which lines may
    call the model, are for data sets. The completion window counts from when the run was accepted.
    Orders of rollouts set `parallel_group`, which begins with the user. Of all runs with it, at most
    `parallel` rollouts are in flight. They may set `row_rollouts` too: the rollouts of each row, 0 to
    `rollouts`, and set `agent_kind`. Imports set `imported_from`: the tool whose log the run was made of.
    `judges` judge the answers in runs of their own, which are ordered once this one has completed.
    `until_decided`: the run is one of two that stop once they are decided between.
    `without_judges`: none of its suite either. `has_judges_of_suite`: resolved, and named none of its own.
    `takes_repeats`: it is not resolved yet and names no rollouts, so they are those that its tasks need.
    """

    suite: str
    model: str
    project_id: int = 0
    tasks: tuple[str, ...] = ()
    limit: int | None = None
    num_fewshot: int | None = None
    rollouts: int = 1
    priority: Priority = field(default_factory=lambda: default_priority(is_background=False))
    params: GenerationParams = field(default_factory=GenerationParams)
    scoring_method: ScoringMethod | None = None
    truncation: Truncation = Truncation.NONE
    prompt_form: PromptForm | None = None
    reuse_answers: bool = False
    max_cost: float | None = None
    stream_answers: bool = False
    base_url: str = ""
    dataset_id: str = ""
    metrics: tuple[MetricUse, ...] = ()
    line_models: tuple[str, ...] = ()
    completion_window_seconds: int | None = None
    parallel_group: str = ""
    parallel: int | None = None
    reasoning: Reasoning = Reasoning.SEPARATE
    row_rollouts: tuple[int, ...] = ()
    agent_kind: AgentKind | None = None
    judge: Judge | None = None
    imported_from: str = ""
    judges: tuple[NamedJudge, ...] = ()
    without_judges: bool = False
    has_judges_of_suite: bool = False
    until_decided: UntilDecided | None = None
    takes_repeats: bool = False

    @property
    def benchmark(self) -> str:
        """The name that figures are listed by: the suite, or the id of the data set or of the judged run."""
        return self.suite or self.dataset_id or (self.judge.run_id if self.judge else "")

    def is_repeated_by(self, other: "RunOrder") -> bool:
        """Whether a later call orders the same. `self` is stored, `other` resolved at that later time."""
        known = self
        if other.max_cost is None:
            # A budget may have set one.
            known = replace(known, max_cost=None)
        if self.has_judges_of_suite and other.has_judges_of_suite:
            # Another version of the suite may name others.
            known = replace(known, judges=other.judges)
        return known == other

    @property
    def keeps_reasoning(self) -> bool:
        return self.reasoning is Reasoning.KEEP

    def outcomes_of(self, samples: range) -> int:
        """How many the samples with these numbers have."""
        if self.row_rollouts:
            return sum(self.row_rollouts[samples.start : samples.stop])
        return self.rollouts * len(samples)

    @property
    def is_of_rollouts(self) -> bool:
        return bool(self.parallel_group)

    @property
    def provider(self) -> str:
        return provider_of(self.model)

    @property
    def token_settings(self) -> Mapping[str, object]:
        """Settings that change how many tokens an answer takes, whatever the sample."""
        return {
            "num_fewshot": self.num_fewshot,
            "prompt_form": self.prompt_form,
            "truncation": self.truncation,
            "base_url": self.base_url,
            "max_tokens": self.params.max_tokens,
            "context_tokens": self.params.context_tokens,
            "provider_params": self.params.provider_params,
        }


def params_for(ordered: GenerationParams, declared: Generation | None) -> GenerationParams:
    """Parameters of the order; those that it leaves unset are the task's."""
    if declared is None:
        return _greedy_without_top_p(ordered)
    merged = replace(
        ordered,
        temperature=declared.temperature if ordered.temperature is None else ordered.temperature,
        top_p=declared.top_p if ordered.top_p is None else ordered.top_p,
        max_tokens=declared.max_tokens if ordered.max_tokens is None else ordered.max_tokens,
    )
    return _greedy_without_top_p(merged)


def _greedy_without_top_p(params: GenerationParams) -> GenerationParams:
    """A top_p of 0 leaves only the likeliest token. Some engines refuse it; all know temperature 0."""
    # After the merge: a task's own top_p of 0 needs it too.
    return replace(params, temperature=0.0, top_p=None) if params.top_p == 0 else params
