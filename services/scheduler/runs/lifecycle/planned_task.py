"""A task of a run as planned: where its samples are, and what a worker needs to know beside them."""

from dataclasses import dataclass

from proctor.values.generation import GenerationParams
from proctor.values.scoring import OutputType
from services.scheduler.runs.orders.run_order import params_for
from services.scheduler.suites.suite import Generation


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
