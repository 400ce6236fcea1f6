"""Errors of projects."""

from services.common.errors import DomainError, ErrorKind


class ProjectNameTaken(DomainError, kind=ErrorKind.CONFLICT, reason="PROJECT_NAME_TAKEN"):
    """Another project has the name {name}; choose another one."""


class TooManyProjects(DomainError, kind=ErrorKind.CONFLICT, reason="TOO_MANY_PROJECTS"):
    """There are {limit} {things} already, and gateways follow no more."""
