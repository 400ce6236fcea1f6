"""A key comes from its variable or from the file of a mounted secret, and is never shown."""

from pathlib import Path

import pytest

from services.worker.models.errors import KeyFileUnreadable, KeyUnusable
from services.worker.models.pools_file import read_key


def test_key_is_read_from_its_variable_without_the_line_break_of_a_secret() -> None:
    assert read_key("A_KEY", {"A_KEY": "planted\n"}) == "planted"


def test_key_is_read_from_the_file_that_is_named(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("planted\n")
    environ = {"A_KEY_FILE": str(tmp_path / "key")}
    assert read_key("A_KEY", environ) == "planted"
    assert read_key("A_KEY", {**environ, "A_KEY": "other"}) == "other"


@pytest.mark.parametrize("environ", [{}, {"A_KEY": " "}, {"A_KEY_FILE": ""}, {"OTHER": "planted"}])
def test_key_that_is_nowhere_is_none(environ: dict[str, str]) -> None:
    assert read_key("A_KEY", environ) is None
    assert read_key("", {"": "x", "_FILE": "/nowhere"}) is None


def test_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(KeyFileUnreadable, match=r"/absent that A_KEY_FILE names .* No such file"):
        read_key("A_KEY", {"A_KEY_FILE": str(tmp_path / "absent")})


@pytest.mark.parametrize("key", ["plan\nted", "plänted", "plan\x00ted", "x" * 20_000])
def test_key_that_no_header_can_carry_is_refused_without_telling_it(tmp_path: Path, key: str) -> None:
    (tmp_path / "key").write_text(key)
    with pytest.raises(KeyUnusable) as raised:
        read_key("A_KEY", {"A_KEY_FILE": str(tmp_path / "key")})
    assert "A_KEY" in str(raised.value)
    assert key not in str(raised.value)
