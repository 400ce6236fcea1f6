"""Cached suites and data sets are believed, so their folder is only the service's own."""

from pathlib import Path

import pytest

from services.common.errors import InvalidSetting
from services.scheduler.suites.own_folder import make_own_folder


def test_folder_is_made_for_its_owner_alone_and_taken_again(tmp_path: Path) -> None:
    folder = tmp_path / "above" / "cache"
    for _ in range(2):
        make_own_folder(folder, "CACHE_DIR")
        assert folder.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("mode", [0o770, 0o707])
def test_folder_where_others_may_write_is_refused(tmp_path: Path, mode: int) -> None:
    folder = tmp_path / "cache"
    folder.mkdir()
    folder.chmod(mode)
    with pytest.raises(InvalidSetting, match="other users may write"):
        make_own_folder(folder, "CACHE_DIR")


def test_link_to_a_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    (tmp_path / "cache").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InvalidSetting, match="is a link"):
        make_own_folder(tmp_path / "cache", "CACHE_DIR")
