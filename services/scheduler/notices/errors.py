"""Errors of notices."""

from services.common.errors import DomainError, ErrorKind


class NoticeTargetNotFound(DomainError, kind=ErrorKind.NOT_FOUND, reason="NOTICE_TARGET_NOT_FOUND"):
    """You have no target of notices {target_id}."""


class TooManyNoticeTargets(DomainError, kind=ErrorKind.CONFLICT, reason="TOO_MANY_NOTICE_TARGETS"):
    """You have {limit} targets of notices already; delete one."""


class TooManyTests(DomainError, kind=ErrorKind.EXHAUSTED, reason="TOO_MANY_NOTICE_TESTS"):
    """You have tried targets of notices {limit} times in an hour; wait some minutes."""


class NotDelivered(Exception):
    """A receiver did not take a notice. `is_final`: it will not take it later either."""

    def __init__(self, problem: str, *, is_final: bool = False) -> None:
        super().__init__(problem)
        self.problem = problem
        self.is_final = is_final
