"""What is ordered of a model and a data set."""

from collections.abc import Sequence
from dataclasses import dataclass

from proctor.v1 import run_pb2, sample_pb2


@dataclass(frozen=True, slots=True)
class DatasetRun:
    """One model over one data set. What its rows say of parameters wins over `params`.

    `metrics` hold answers against targets, by name or with options; none: answers are kept and not scored.
    `line_models` are names by which rows may call the model, beside its own. With `window_seconds` it fails
    when it has not ended so long after it was accepted.
    """

    dataset_id: str
    model: str
    metrics: Sequence[str | sample_pb2.MetricUse] = ()
    line_models: Sequence[str] = ()
    limit: int | None = None
    rollouts: int | None = None
    params: run_pb2.GenerationParams | None = None
    window_seconds: int | None = None
    project_id: int = 0

    def order(self) -> run_pb2.RunOrder:
        return run_pb2.RunOrder(
            project_id=self.project_id,
            dataset_id=self.dataset_id,
            model=self.model,
            metrics=[
                sample_pb2.MetricUse(name=metric) if isinstance(metric, str) else metric
                for metric in self.metrics
            ],
            line_models=self.line_models,
            limit=self.limit,
            rollouts=self.rollouts,
            params=self.params,
            completion_window_seconds=self.window_seconds,
        )
