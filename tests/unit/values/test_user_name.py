"""Names of users are printable, short and free of blanks around them."""

import pytest

from proctor.values.names.user import is_user_name


@pytest.mark.parametrize("name", ["ann", "ann@example.org", "Ann B", "x" * 128, "\u00e9ric"])
def test_a_name_is_accepted(name: str) -> None:
    assert is_user_name(name)


@pytest.mark.parametrize("name", ["", " ann", "ann ", "*", "x" * 129, "a\nb", "a\0b"])
def test_what_is_no_name_is_refused(name: str) -> None:
    assert not is_user_name(name)
