"""A declared project and its members."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from proctor.values.names.user import Role

# Roles in a project. An operator has all of them everywhere.
ROLES = (Role.VIEWER, Role.RUNNER, Role.MAINTAINER)


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    project_id: int
    name: str
    note: str
    created_by: str
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    user: str
    role: Role
    changed_by: str
    changed_at: datetime


@dataclass(frozen=True, slots=True)
class KnownMember:
    """What gateways follow. `role` is None for one that was removed."""

    project_id: int
    user: str
    role: Role | None


@dataclass(frozen=True, slots=True)
class ProjectPage:
    """By name. `last` is the last name; None on the last page."""

    projects: Sequence[Project]
    last: str | None
