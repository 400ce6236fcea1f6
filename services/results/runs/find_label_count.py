"""How many labels the figures of a task average over: as many as its samples have choices."""

from services.results.ports import SampleSetStore
from services.results.runs.run_record import PlannedTask
from services.results.scores.task_scoring import TaskScoring


async def find_label_count(sets: SampleSetStore, task: PlannedTask, scoring: TaskScoring) -> int:
    """0 where no figure depends on it, or samples differ in it: those that were seen count."""
    if not scoring.averages_over_labels:
        return 0
    return await sets.label_count(task.sample_set_id)
