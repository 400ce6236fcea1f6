"""A release has one version, wherever it is written, and notes."""

import shutil
from pathlib import Path

import pytest

from tools import release


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """The files that name the version."""
    for name in {place.file for place in release.PLACES} | {"CHANGELOG.md"}:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(release.ROOT / name, tmp_path / name)
    return tmp_path


def test_this_checkout_has_one_version_and_notes_of_it() -> None:
    assert list(release.problems_of(release.ROOT)) == []
    assert release.notes_of(release.ROOT).startswith("The first release.")


@pytest.mark.parametrize("place", release.PLACES, ids=lambda place: f"{place.file} {place.expression[:12]}")
def test_every_place_is_checked(checkout: Path, place: release.Place) -> None:
    file = checkout / place.file
    file.write_text(place.pattern.sub(r"\g<1>9.9.9\g<3>", file.read_text()))
    problems = list(release.problems_of(checkout))
    assert any("9.9.9" in problem for problem in problems)
    file.write_text(place.pattern.sub(r"\g<1>unknown\g<3>", file.read_text()))
    if place.file != "pyproject.toml":
        assert any(
            problem.startswith(f"{place.file}: no version") for problem in release.problems_of(checkout)
        )


def test_version_is_set_everywhere_and_lacks_its_notes_only(checkout: Path) -> None:
    release.set_version(checkout, "1.2.3rc1")
    [problem] = release.problems_of(checkout)
    assert problem.startswith("CHANGELOG.md: nothing is said of 1.2.3rc1")
    changes = checkout / "CHANGELOG.md"
    changes.write_text(changes.read_text().replace("## 0.1.0", "## 1.2.3rc1\n\n- New.\n\n## 0.1.0"))
    assert release.notes_of(checkout) == "- New."
    assert list(release.problems_of(checkout, "v1.2.3rc1")) == []
    assert list(release.problems_of(checkout, "v1.2.3")) == ["the tag v1.2.3 is not v1.2.3rc1"]


@pytest.mark.parametrize("text", ["v1.2.3", "1.2", "latest", "1.2.3-rc1"])
def test_what_is_no_version_is_not_set(checkout: Path, text: str) -> None:
    with pytest.raises(SystemExit, match="is not a version"):
        release.set_version(checkout, text)
