"""What users are told of runs, by which way, and of whose runs."""

from proctor.values.contract_enum import ContractEnum

# As Standard Webhooks write a key that signs.
SECRET_PREFIX = "whsec_"  # noqa: S105  # the prefix of any
# Events are of the most that a run may cost.
BUDGET_SHARE = 0.8
STUCK_MINUTES = 30


class NoticeChannel(ContractEnum):
    WEBHOOK = "webhook", 1
    SLACK = "slack", 2
    EMAIL = "email", 3


class NoticeEvent(ContractEnum):
    RUN_ENDED = "run_ended", 1
    RUN_FAILED = "run_failed", 2
    BUDGET_NEARLY_SPENT = "budget_nearly_spent", 3
    QUEUE_STUCK = "queue_stuck", 4
    SCHEDULE_REFUSED = "schedule_refused", 5
    TEST = "test", 6
    GATE_FAILED = "gate_failed", 7
    DROP = "drop", 8


class NoticeScope(ContractEnum):
    OWN = "own", 1
    PROJECT = "project", 2
    ALL = "all", 3
