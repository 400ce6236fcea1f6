"""The priority of a run: which one starts first when the limits hold runs back."""

from proctor.values.contract_enum import ContractEnum


class Priority(ContractEnum):
    """HIGH sorts first: `min` is the most urgent of several."""

    HIGH = "high", 1
    NORMAL = "normal", 2
    LOW = "low", 3

    def is_above(self, other: "Priority") -> bool:
        """Whether runs of this priority start before those of the other."""
        return self < other

    def limited_to(self, highest: "Priority") -> "Priority":
        """This priority, or `highest` where this one is above it."""
        return max(self, highest)


def default_priority(*, is_background: bool) -> Priority:
    """The priority of an order that names none: data sets, batches and rollouts run in the background."""
    return Priority.NORMAL if is_background else Priority.HIGH


def priority_note(priority: Priority | None) -> str:
    """The end of a sentence about a run: a priority below HIGH, which may be lower than ordered."""
    return f", with priority {priority}" if priority and Priority.HIGH.is_above(priority) else ""
