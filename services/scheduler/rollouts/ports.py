"""How the tasks of an order are written as a suite."""

from collections.abc import Callable, Sequence

from proctor.values.rollout import RolloutAgent, RolloutTask
from services.scheduler.suites.format.suite_document import SuiteDocument

# The suite of a name with one task, whose rows are rollouts.
WriteSuite = Callable[[str, Sequence[RolloutTask], RolloutAgent], SuiteDocument]
