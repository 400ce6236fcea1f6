"""What a caller may do in a project: the key's role outside of declared ones, the member's inside."""

import pytest

from proctor.values.names.project import FIRST_DECLARED, is_declared
from proctor.values.names.user import Caller, Role

DECLARED, OTHER = FIRST_DECLARED + 1, FIRST_DECLARED + 2


def test_numbers_that_people_choose_are_of_no_declared_project() -> None:
    # A date, a time in microseconds, and the largest number of 32 bits.
    assert not any(map(is_declared, (0, 7, 20261129, 1_795_000_000_000_000, 2**32 - 1)))
    assert is_declared(FIRST_DECLARED)


@pytest.mark.parametrize(
    ("role", "given", "expected"),
    [
        (Role.RUNNER, Role.MAINTAINER, Role.MAINTAINER),
        (Role.MAINTAINER, Role.RUNNER, Role.RUNNER),
        (Role.MAINTAINER, Role.VIEWER, Role.VIEWER),
        # A viewer's key reads, everywhere.
        (Role.VIEWER, Role.MAINTAINER, Role.VIEWER),
        (Role.OPERATOR, None, Role.OPERATOR),
    ],
)
def test_in_a_declared_project_the_role_of_the_member_counts(
    role: Role, given: Role | None, expected: Role
) -> None:
    caller = Caller("ann", role, projects=((DECLARED, given),) if given else ())
    assert caller.role_in(DECLARED) is expected
    assert caller.role_in(7) is role
    assert caller.role_in(OTHER) is (Role.OPERATOR if role is Role.OPERATOR else None)


def test_a_maintainer_of_a_key_changes_nothing_of_others_in_a_project_of_runners() -> None:
    ann = Caller("ann", Role.MAINTAINER, projects=((DECLARED, Role.RUNNER),))
    assert ann.may_change("bob", 7)
    assert not ann.may_change("bob", DECLARED)
    assert ann.may_change("ann", DECLARED)
    assert not ann.may_change("ann", OTHER)


def test_who_viewed_what_is_shared_by_callers_of_one_sight() -> None:
    assert Caller("olga", Role.OPERATOR).sight is None
    assert Caller("ann", projects=((DECLARED, Role.RUNNER),)).sight == (0, DECLARED)
    assert Caller("vic", projects=((DECLARED, Role.VIEWER),)).sight == (0, DECLARED)
    assert Caller("bob").sight == (0,)
