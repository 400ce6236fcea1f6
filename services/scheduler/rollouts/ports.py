"""The port of orders of rollouts: the writer of their suites."""

from collections.abc import Callable, Sequence

from proctor.values.rollout import RolloutAgent, RolloutTask
from services.scheduler.suites.format.suite_document import SuiteDocument

# The suite of a name with one task, whose rows are rollouts.
WriteSuite = Callable[[str, Sequence[RolloutTask], RolloutAgent], SuiteDocument]
