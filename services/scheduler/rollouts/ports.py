"""How tasks are read from what a user sends, and written as a suite."""

from collections.abc import Callable, Mapping, Sequence

from proctor.values.rollout import RolloutAgent, RolloutTask
from services.scheduler.suites.format.suite_document import SuiteDocument

# An archive and overrides by the names of folders. Raises TaskError.
ReadTasks = Callable[[bytes, Mapping[str, str]], Sequence[RolloutTask]]
# The suite of a name with one task, whose rows are rollouts.
WriteSuite = Callable[[str, Sequence[RolloutTask], RolloutAgent], SuiteDocument]
