"""Folders of tasks in repositories: any revision, and nothing of a hostile repository is executed."""

import io
import os
import tarfile
from pathlib import Path

import pytest

from proctor.cli.rollouts.archive import packed
from proctor.cli.rollouts.config import read_config
from proctor.cli.rollouts.sources import git_folders
from proctor.cli.rollouts.sources.git_folders import export_folder
from proctor.client.errors import Refused
from tests.harness.rollout_tasks import committed, git, tb_meta_folder, write


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "repository"
    tb_meta_folder(folder / "tasks" / "one")
    git(folder, "init", "-q", "-b", "main")
    git(folder, "config", "core.autocrlf", "false")
    (folder / "tasks" / "one" / "run.sh").write_text("true\n")
    (folder / "tasks" / "one" / "run.sh").chmod(0o755)
    committed(folder)
    return folder


def files_below(folder: Path) -> dict[str, bytes]:
    found = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in found}


@pytest.mark.parametrize("form", ["path", "file", "bare"])
def test_a_folder_is_written_as_it_is_in_its_commit(repository: Path, tmp_path: Path, form: str) -> None:
    wanted = files_below(repository / "tasks" / "one")
    first = git(repository, "rev-parse", "HEAD")
    write(repository, {"tasks/one/tb_meta.json": "later", "tasks/one/not-committed": ""})
    git(repository, "commit", "-q", "-am", "later")
    named = str(repository)
    if form == "file":
        named = repository.as_uri()
    if form == "bare":
        named = str(tmp_path / "bare.git")
        git(repository, "clone", "-q", "--bare", ".", named)
    for revision in (first, "HEAD~1", "main~1"):
        exported = export_folder(named, revision, "tasks/one", tmp_path)
        assert files_below(exported.path) == wanted
        assert (exported.path.name, exported.commit) == ("one", first)
        assert str(exported) == f"{named}@{first}:tasks/one"
        assert os.access(exported.path / "run.sh", os.X_OK)
        assert not os.access(exported.path / "tb_meta.json", os.X_OK)
    assert export_folder(named, "", "tasks", tmp_path).path.name == "tasks"


def test_equal_folders_of_two_models_are_one_order_with_the_files_of_a_folder(
    repository: Path, tmp_path: Path
) -> None:
    entry = '[[tasks]]\ngit = "repository"\nrevision = "main"\nprepared_dir = "tasks/one"\nmodel = "{}"\n'
    (tmp_path / "config.toml").write_text(entry.format("openai/x") + entry.format("openai/y"))
    config = read_config(tmp_path / "config.toml")
    [task] = config.tasks
    assert config.model_rollouts == {"openai/x": [1], "openai/y": [1]}
    assert task.shown.endswith(f"@{git(repository, 'rev-parse', 'HEAD')}:tasks/one")
    plain = '[[tasks]]\nprepared_dir = "repository/tasks/one"\nmodel = "openai/x"\n'
    (tmp_path / "plain.toml").write_text(plain)
    other = read_config(tmp_path / "plain.toml")
    assert {name for name, _ in members(packed(config.tasks).archive)} >= {"1-one/tb_meta.json"}
    assert members(packed(config.tasks).archive) == members(packed(other.tasks).archive)


def members(archive: bytes) -> set[tuple[str, bytes]]:
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        read = ((member.name, tar.extractfile(member)) for member in tar if member.isfile())
        return {(name, file.read()) for name, file in read if file}


def test_nothing_of_a_hostile_repository_is_executed(repository: Path, tmp_path: Path) -> None:
    trap = f"touch {tmp_path / 'executed'}"
    write(repository, {"tasks/one/.gitattributes": "* filter=evil diff=evil export-subst\n"})
    committed(repository)
    for key in (
        "filter.evil.smudge",
        "filter.evil.process",
        "diff.evil.textconv",
        "core.fsmonitor",
        "core.pager",
    ):
        git(repository, "config", key, trap)
    git(repository, "config", "remote.origin.url", f"ext::sh -c '{trap}'")
    git(repository, "config", "remote.origin.promisor", "true")
    git(repository, "config", "remote.origin.partialclonefilter", "blob:none")
    git(repository, "config", "protocol.allow", "always")
    hooks = repository / ".git" / "hooks"
    for name in ("post-checkout", "reference-transaction", "post-index-change"):
        write(hooks, {name: f"#!/bin/sh\n{trap}\n"})
        (hooks / name).chmod(0o755)
    wanted = (repository / "tasks" / "one" / "tb_meta.json").read_bytes()
    exported = export_folder(str(repository), "", "tasks/one", tmp_path)
    assert (exported.path / "tb_meta.json").read_bytes() == wanted
    # A partial clone: an object is not there, and is not fetched.
    digest = git(repository, "rev-parse", "HEAD:tasks/one/tb_meta.json")
    (repository / ".git" / "objects" / digest[:2] / digest[2:]).unlink()
    with pytest.raises(Refused, match="is missing, as in a partial clone"):
        export_folder(str(repository), "", "tasks/one", tmp_path)
    assert not (tmp_path / "executed").exists()


def test_what_cannot_be_a_task_is_refused_by_name(repository: Path, tmp_path: Path) -> None:
    (repository / "tasks" / "one" / "link").symlink_to("/etc/passwd")
    committed(repository)
    with pytest.raises(Refused, match="link is a link"):
        export_folder(str(repository), "", "tasks/one", tmp_path)
    git(repository, "rm", "-q", "tasks/one/link")
    head = git(repository, "rev-parse", "HEAD")
    git(repository, "update-index", "--add", "--cacheinfo", f"160000,{head},tasks/one/sub")
    git(repository, "commit", "-q", "-m", "sub")
    with pytest.raises(Refused, match="sub is a submodule, which is not fetched"):
        export_folder(str(repository), "", "tasks/one", tmp_path)


@pytest.mark.parametrize(
    ("named", "says"),
    [
        (("https://example.org/x.git", "", "."), "is not on this machine"),
        (("ext::sh -c id", "", "."), "is not on this machine"),
        (("file://elsewhere/x", "", "."), "is not on this machine"),
        (("nowhere", "", "."), "no git repository"),
        (("", "never", "."), "no revision never"),
        (("", "--all", "."), "no revision --all"),
        (("", "", "absent"), "no folder absent"),
        (("", "", "../.."), "cannot be"),
    ],
)
def test_a_source_that_is_not_there_is_refused(
    repository: Path, tmp_path: Path, named: tuple[str, str, str], says: str
) -> None:
    source, revision, inner = named
    with pytest.raises(Refused, match=says):
        export_folder(source or str(repository), revision, inner, tmp_path)


def test_a_folder_has_limits(repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(git_folders, "MAX_SET_FILES", 2)
    with pytest.raises(Refused, match="more than 2 files"):
        export_folder(str(repository), "", ".", tmp_path)


def test_a_small_repository_with_a_billion_names_is_refused_while_they_are_listed(
    repository: Path, tmp_path: Path
) -> None:
    digest, kind, mode = git(repository, "rev-parse", "HEAD:tasks/one/tb_meta.json"), "blob", "100644"
    for _ in range(9):
        tree = "".join(f"{mode} {kind} {digest}\t{name}\n" for name in range(10))
        digest, kind, mode = git(repository, "mktree", given=tree), "tree", "40000"
    commit = git(repository, "commit-tree", digest, "-m", "x")
    with pytest.raises(Refused, match="more than 50,000 files"):
        export_folder(str(repository), commit, ".", tmp_path)
