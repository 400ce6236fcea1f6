"""Control groups of sandboxes, on plain folders instead of the kernel's."""

from pathlib import Path

import pytest

from services.common.sandboxes.bubblewrap.launcher.cgroups import GroupLimits, find_hierarchy, group_name

LIMITS = GroupLimits(memory_bytes=1024, processes=7, cpus=0.5)
V1 = "".join(
    f"{number} 1 0:1 / /cg/{name} rw - cgroup cgroup rw,{name}\n"
    for number, name in enumerate(("memory", "pids", "cpu"))
)
V2 = "3 1 0:1 / /cg rw,relatime - cgroup2 cgroup2 rw\n"


def machine(root: Path, mounts: str, groups: str) -> Path:
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/self/mountinfo").write_text(mounts)
    (root / "proc/self/cgroup").write_text(groups)
    return root


def unified(root: Path, path: str, enabled: str = "") -> Path:
    """Version 2, with this process in the group `path`."""
    own = root / "cg" / path.strip("/")
    own.mkdir(parents=True)
    (own / "cgroup.controllers").write_text("cpuset cpu io memory pids")
    (own / "cgroup.subtree_control").write_text(enabled)
    (own / "cgroup.procs").write_text("")
    return machine(root, V2, f"0::{path}\n")


def test_version_1_limits_each_controller_in_a_folder_of_its_own(tmp_path: Path) -> None:
    for controller in ("memory", "pids", "cpu"):
        (tmp_path / "cg" / controller / "own").mkdir(parents=True)
    root = machine(tmp_path, V1, "3:memory:/own\n2:pids:/own\n1:cpu:/own\n")
    hierarchy = find_hierarchy(root)
    assert (hierarchy.version, hierarchy.problem) == (1, "")
    group = hierarchy.make("one", LIMITS)
    assert (group.folders["memory"] / "memory.limit_in_bytes").read_text() == "1024"
    assert (group.folders["pids"] / "pids.max").read_text() == "7"
    assert (group.folders["cpu"] / "cpu.cfs_quota_us").read_text() == "50000"
    assert len(group.process_files) == 3


@pytest.mark.parametrize(("path", "enabled"), [("/", ""), ("/user.slice/x.scope", "cpu memory pids")])
def test_version_2_limits_all_in_one_folder(tmp_path: Path, path: str, enabled: str) -> None:
    hierarchy = find_hierarchy(unified(tmp_path, path, enabled))
    assert (hierarchy.version, hierarchy.problem) == (2, "")
    group = hierarchy.make("one", LIMITS)
    folder = group.folders["memory"]
    assert [(folder / name).read_text() for name in ("memory.max", "pids.max", "cpu.max")] == [
        "1024",
        "7",
        "50000 100000",
    ]
    assert len(group.process_files) == 1


def test_processes_of_a_session_are_not_moved(tmp_path: Path) -> None:
    hierarchy = find_hierarchy(unified(tmp_path, "/user.slice/session-1.scope"))
    assert not hierarchy.parents
    assert "delegated" in hierarchy.problem
    assert not list(tmp_path.rglob("proctor-services"))


def test_only_groups_of_dead_launchers_are_left_behind(tmp_path: Path) -> None:
    hierarchy = find_hierarchy(unified(tmp_path, "/", "cpu memory pids"))
    hierarchy.make("proctor-sandbox-1-5-1", LIMITS)
    hierarchy.make(group_name(3), LIMITS)
    left = {folder.name for group in hierarchy.left_behind() for folder in group.folders.values()}
    assert left == {"proctor-sandbox-1-5-1"}
