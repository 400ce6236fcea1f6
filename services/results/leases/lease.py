"""Leases: which replica does a work on an epoch of a run."""

from dataclasses import dataclass
from enum import StrEnum


class WorkKind(StrEnum):
    """Work that is done once with each epoch of a run."""

    CLOSE = "close"
    COMPARISON = "comparison"
    BASELINES = "baselines"


@dataclass(frozen=True, slots=True)
class Work:
    kind: WorkKind
    run_id: str
    epoch: int


@dataclass(frozen=True, slots=True)
class Lease:
    """`starts`: how often the work was begun, this time included.

    Withdrawn: the run was cancelled meanwhile, so little is to be done.
    """

    work: Work
    starts: int
    is_withdrawn: bool = False
