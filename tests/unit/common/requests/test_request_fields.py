"""Who may store and change what is in a project."""

import pytest

from proctor.values.names.project import FIRST_DECLARED
from proctor.values.names.user import Caller, Role
from services.common.errors import BelongsToAnother, ProjectNotFound
from services.common.requests.request_fields import check_owner, check_stores

DECLARED = FIRST_DECLARED + 1


def member(name: str, role: Role) -> Caller:
    return Caller(name, projects=((DECLARED, role),))


def test_who_has_the_role_stores_things_in_a_declared_project_and_everybody_elsewhere() -> None:
    for caller in (member("ann", Role.RUNNER), Caller("olga", Role.OPERATOR)):
        check_stores(caller, DECLARED)
    for caller in (member("vic", Role.VIEWER), Caller("bob")):
        check_stores(caller, 7)
        with pytest.raises(ProjectNotFound):
            check_stores(caller, DECLARED)


def test_nobody_is_told_that_what_is_their_own_belongs_to_them_and_is_closed() -> None:
    """An owner who became a viewer lacks the role in the project, and not the thing."""
    with pytest.raises(ProjectNotFound):
        check_owner(member("ann", Role.VIEWER), "ann", "Run 7", DECLARED)
    with pytest.raises(BelongsToAnother):
        check_owner(member("ann", Role.RUNNER), "bob", "Run 7", DECLARED)
    check_owner(member("ann", Role.RUNNER), "ann", "Run 7", DECLARED)
    check_owner(member("ann", Role.MAINTAINER), "bob", "Run 7", DECLARED)
