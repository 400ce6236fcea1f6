"""A task of a run as planned: where its samples are, and what a worker needs to know beside them."""

from dataclasses import dataclass, replace

from services.scheduler.runs.run_order import GenerationParams
from services.scheduler.suites.suite import Generation, OutputType


@dataclass(frozen=True, slots=True)
class PlannedTask:
    """Its samples have the run's numbers `first_sample` up to `first_sample + sample_count`."""

    task: str
    version: str
    sample_set_id: str
    first_sample: int
    sample_count: int
    output_type: OutputType
    num_fewshot: int
    is_stand_in: bool
    dataset: str
    dataset_revision: str
    generation: Generation | None = None

    @property
    def stop(self) -> tuple[str, ...]:
        return self.generation.until if self.generation else ()


def merged_params(ordered: GenerationParams, task: PlannedTask) -> GenerationParams:
    return params_for(ordered, task.generation)


def params_for(ordered: GenerationParams, declared: Generation | None) -> GenerationParams:
    """What the order says, and where it says nothing, what the task says."""
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
    return replace(params, temperature=0.0, top_p=None) if params.top_p == 0 else params
