"""The script by which pipelines call a gate: what it hands on, and which exit code it ends with."""

import os
import subprocess
from pathlib import Path

import pytest
import yaml

CI = Path(__file__).parents[2] / "deploy" / "ci"


def gated(tmp_path: Path, code: int, **given: str) -> tuple[int, str, str]:
    """Exit code of the script, arguments of `proctor`, and output, where a gate ends with `code`."""
    program = tmp_path / "proctor"
    program.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > arguments\necho decided > gate.md\nexit {code}\n')
    program.chmod(0o755)
    environ = {
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "GITHUB_OUTPUT": str(tmp_path / "output"),
        "GITHUB_STEP_SUMMARY": str(tmp_path / "summary"),
        "RUN": "r; touch injected",
        "AGAINST": "b",
        **given,
    }
    ended = subprocess.run(["bash", CI / "gate.sh"], cwd=tmp_path, env=environ, check=False, timeout=60)
    assert not (tmp_path / "injected").exists()
    assert (tmp_path / "summary").read_text() == "decided\n"
    return ended.returncode, (tmp_path / "arguments").read_text(), (tmp_path / "output").read_text()


@pytest.mark.parametrize(
    ("code", "may_be_inconclusive", "ends", "decision"),
    [
        (0, "false", 0, "pass"),
        (1, "true", 1, "fail"),
        (9, "false", 9, "inconclusive"),
        (9, "true", 0, "inconclusive"),
        (2, "true", 2, "error"),
        (3, "true", 3, "error"),
    ],
)
def test_only_what_may_be_inconclusive_is_let_through(
    tmp_path: Path, code: int, may_be_inconclusive: str, ends: int, decision: str
) -> None:
    found, _, output = gated(tmp_path, code, MAY_BE_INCONCLUSIVE=may_be_inconclusive)
    assert (found, output) == (ends, f"decision={decision}\n")


def test_a_gate_without_a_decision_leaves_none_of_an_earlier_one(tmp_path: Path) -> None:
    (tmp_path / "proctor").write_text("#!/bin/sh\nexit 3\n")
    (tmp_path / "proctor").chmod(0o755)
    for name in ("gate.md", "gate.xml"):
        (tmp_path / name).write_text("PASS")
    environ = {
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "GITHUB_STEP_SUMMARY": str(tmp_path / "summary"),
        "RUN": "r",
        "AGAINST": "b",
    }
    ended = subprocess.run(["bash", CI / "gate.sh"], cwd=tmp_path, env=environ, check=False, timeout=60)
    assert ended.returncode == 3
    assert [one.name for one in tmp_path.iterdir()] == ["proctor"]


def test_inputs_are_arguments_and_never_a_script(tmp_path: Path) -> None:
    _, arguments, _ = gated(tmp_path, 0, ARGUMENTS="--task * --whole", PAGES="https://p", MARGIN="2pt")
    assert arguments.splitlines() == [
        *("gate", "r; touch injected", "--against", "b", "--margin", "2pt", "--pages", "https://p"),
        *("--task", "*", "--whole", "--markdown", "gate.md", "--junit", "gate.xml"),
    ]
    action = yaml.safe_load((CI / "gate" / "action.yml").read_text())
    assert not any("${{" in step["run"] for step in action["runs"]["steps"])


def test_the_examples_are_yaml_and_hand_in_what_the_action_takes() -> None:
    action = yaml.safe_load((CI / "gate" / "action.yml").read_text())
    workflow = yaml.safe_load((CI / "github-workflow.yml").read_text())
    [step] = [each for each in workflow["jobs"]["gate"]["steps"] if each.get("uses", "").startswith("./")]
    assert set(step["with"]) <= set(action["inputs"])
    required = {name for name, each in action["inputs"].items() if each.get("required")}
    assert required <= set(step["with"])
    assert (
        yaml.safe_load((CI / "gitlab-ci.yml").read_text())["gate"]["artifacts"]["reports"]["junit"]
        == "gate.xml"
    )
