"""Result cards: signed by the installation, verified without it, and no value of one is changed unseen."""

import base64
import json
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import replace
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from proctor.cli.results.cards.verify import check, read_card
from proctor.client.errors import Refused
from proctor.values.run import RunState
from proctor.values.scoring import GroupMetric, TaskGroup
from proctor.wire.result_card import DigestTree, signed_content
from services.results.export.cards.json_result_card import CARD
from services.results.export.exported_run import ExportedRun
from services.results.runs.run_plan import RunFacts, RunRecord
from services.results.statistics.figure import Figure
from services.results.summaries.group_figures import group_summary
from services.results.summaries.run_summary import RunSummary, TaskSummary
from tests.fakes.results.recorded_run import plan_of

NOW = datetime(2026, 11, 1, tzinfo=UTC)
KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
Rows = list[dict[str, Any]]


def rows_of(task: str, scores: list[list[float | None]]) -> Rows:
    """A row for each rollout of each sample; None is a failure."""
    return [
        {
            "task": task,
            "doc_id": at,
            "rollout": rollout,
            "status": "failed" if score is None else "scored" if score else "unparsed",
            "answer": f"é {at}",
            "scores": {} if score is None else {"acc": score, "mcc": [1, int(score)]},
            "digest": f"{task}-{at}",
        }
        for at, of_sample in enumerate(scores)
        for rollout, score in enumerate(of_sample)
    ]


# The first sample of the other task has two equal neighbours: their digests are the same.
ROWS = rows_of("t0", [[1, 1], [0, 1], [None, 1], [0, 0]]) + rows_of("t1", [[1, 0], [1, 1]])
MEANS = {"t0": (1 + 0.5 + 1 + 0) / 4, "t1": 0.75}
LINES = [json.dumps(row, ensure_ascii=False).encode() + b"\n" for row in ROWS]


def exported() -> ExportedRun:
    group = TaskGroup("quiz", ("t0", "t1"), (GroupMetric("acc"),))
    facts = RunFacts(benchmark="quiz", model="vllm/m", created_at=NOW)
    plan = replace(plan_of([4, 2], rollouts=2), facts=facts, groups=(group,))
    tasks = []
    for name, (size, failed, unparsed) in {"t0": (4, 1, 3), "t1": (2, 0, 1)}.items():
        figures = {"acc": Figure(MEANS[name], 0.1, 0.1, 0.2, 0.9, size), "mcc": Figure(0.3, n=size)}
        counts = (2 * size, 2 * size - failed, failed, unparsed)
        tasks.append(TaskSummary(name, "1", 0, None, False, "rows", "", *counts, figures))  # noqa: FBT003  # its fields
    by_task = {task.task: task.figures for task in tasks}
    groups = (group_summary(group, by_task),)
    summary = RunSummary(
        plan.run_id, 1, is_partial=False, tasks=tuple(tasks), total=12, computed_at=NOW, groups=groups
    )
    record = RunRecord(plan, 1, is_frozen=True, state=RunState.COMPLETED, frozen_at=NOW)
    return ExportedRun(record, False, {"vllm": "0.11"}, summary, signing_key=KEY)  # noqa: FBT003  # its fields


def made_card() -> dict[str, Any]:
    writer = CARD.open(exported())
    rows = [{"line": line.decode().removesuffix("\n")} for line in LINES]
    content = writer.begin() + writer.write(rows[:3]) + writer.write(rows[3:]) + writer.end()
    card: dict[str, Any] = json.loads(content)
    return card


@pytest.fixture
def export(tmp_path: Path) -> Path:
    path = tmp_path / "export.jsonl"
    path.write_bytes(b"".join(LINES))
    return path


def test_a_card_holds_with_its_export_and_without(export: Path) -> None:
    card = made_card()
    assert check(card, None, "").faults == []
    found = check(card, export, card["key"])
    assert found.faults == []
    assert found.notes == [
        "It is signed by the given key.",
        "2 figures of tasks were computed again from 12 outcomes; 2 are only signed, as are all intervals.",
    ]
    assert (card["samples"]["count"], card["outcomes"]["count"]) == (6, 12)
    assert card["run"]["model"] == "vllm/m"
    assert card["engine"] == {"vllm": "0.11"}


def places(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Of every value that holds no other, and of what is empty."""
    members = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    listed = list(members)
    if not listed:
        yield path
    for name, member in listed:
        yield from places(member, (*path, name))


def other_than(value: Any) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    return f"{value}x" if isinstance(value, str) else "x"


@pytest.mark.parametrize("place", list(places(made_card())), ids=lambda place: ".".join(map(str, place)))
def test_no_value_of_a_card_can_be_changed(place: tuple[str | int, ...]) -> None:
    card = made_card()
    *path, last = place
    holder: Any = card
    for name in path:
        holder = holder[name]
    holder[last] = other_than(holder[last])
    assert check(card, None, "").faults


def test_members_can_neither_be_added_nor_left_out(tmp_path: Path) -> None:
    card = made_card()
    assert check({**card, "remark": "best of all"}, None, "").faults
    inner = deepcopy(card)
    inner["conditions"]["more"] = "x"
    assert check(inner, None, "").faults
    del inner["conditions"]["more"], inner["conditions"]["tasks"]
    assert check(inner, None, "").faults
    path = tmp_path / "card.json"
    for text in (
        json.dumps({name: value for name, value in card.items() if name != "engine"}),
        json.dumps(card).replace('"epoch": 1', '"epoch": 2, "epoch": 1'),
        json.dumps(card).replace('"epoch": 1', '"epoch": NaN'),
        "[]",
        "{",
    ):
        path.write_text(text)
        with pytest.raises(Refused, match="is no result card"):
            read_card(path)
    path.write_text(json.dumps(card, indent=1))
    assert check(read_card(path), None, "").faults == []


def test_a_card_that_another_key_signed_holds_for_that_key_alone() -> None:
    forged, other = made_card(), Ed25519PrivateKey.generate()
    forged["figures"]["tasks"][0]["metrics"]["acc"]["ci_high"] = 0.99
    forged["key"] = base64.b64encode(other.public_key().public_bytes_raw()).decode()
    forged["signature"] = base64.b64encode(other.sign(signed_content(forged))).decode()
    assert check(forged, None, "").faults == []
    assert check(forged, None, made_card()["key"]).faults == [
        "it is signed by another key than the given one"
    ]


def changed(row: int, **values: Any) -> list[bytes]:
    lines = list(LINES)
    lines[row] = json.dumps({**ROWS[row], **values}, ensure_ascii=False).encode() + b"\n"
    return lines


@pytest.mark.parametrize(
    "lines",
    [
        changed(0, answer="another"),
        changed(2, scores={"acc": 1, "mcc": [1, 1]}),
        changed(4, status="scored"),
        changed(9, digest="other"),
        LINES[:-1],
        [*LINES, LINES[-1]],
        [LINES[1], LINES[0], *LINES[2:]],
        changed(0, task="unknown"),
        changed(0, scores={"acc": 10**400}),
        changed(0, scores=[]),
        [changed(0, scores={"acc": 1e308})[0]] * 3,
        [b"no json\n", *LINES[1:]],
        [b"[]\n", *LINES[1:]],
        [],
    ],
)
def test_no_line_of_the_export_can_be_changed(export: Path, lines: list[bytes]) -> None:
    export.write_bytes(b"".join(lines))
    assert check(made_card(), export, "").faults


def resigned(card: dict[str, Any]) -> dict[str, Any]:
    """As an installation signs that has computed something wrong."""
    card["signature"] = base64.b64encode(KEY.sign(signed_content(card))).decode()
    return card


def test_one_figure_is_no_plural(export: Path) -> None:
    card = made_card()
    # One of a task is computed again, one of the other is only signed.
    first, second = card["figures"]["tasks"]
    del first["metrics"]["mcc"], second["metrics"]["acc"]
    card["figures"]["groups"] = []
    assert check(resigned(card), export, card["key"]).notes[-1] == (
        "1 figure of tasks was computed again from 12 outcomes; 1 is only signed, as are all intervals."
    )


def test_signed_figures_that_do_not_follow_from_the_outcomes_are_found(export: Path) -> None:
    for name, value in (("mean", 0.7), ("n", 5)):
        card = made_card()
        card["figures"]["tasks"][0]["metrics"]["acc"][name] = value
        card["figures"]["groups"] = []
        assert check(resigned(card), None, "").faults == []
        [fault] = check(card, export, "").faults
        assert fault.startswith("acc of t0 is ")
    card = made_card()
    card["figures"]["tasks"][1]["failed"] = 1
    assert check(resigned(card), export, "").faults == ["failed of t1 is 1, and 0 by the export"]
    card = made_card()
    card["figures"]["groups"][0]["metrics"]["acc"]["mean"] = 0.9
    [fault] = check(resigned(card), None, "").faults
    assert fault.startswith("acc of quiz is 0.9")


@pytest.mark.parametrize("count", [0, 1, 2, 3, 5, 8, 13])
def test_the_tree_is_that_of_rfc_6962(count: int) -> None:
    """By its recursive definition: split at the largest power of two below the number."""

    def root(leaves: list[bytes]) -> bytes:
        if not leaves:
            return sha256(b"").digest()
        if len(leaves) == 1:
            return sha256(b"\x00" + leaves[0]).digest()
        split = 1 << (len(leaves) - 1).bit_length() - 1
        return sha256(b"\x01" + root(leaves[:split]) + root(leaves[split:])).digest()

    leaves = [bytes([at]) * at for at in range(count)]
    tree = DigestTree()
    for leaf in leaves:
        tree.add(leaf)
    assert tree.root() == root(leaves)


@pytest.mark.parametrize("name", ["mean", "n"])
def test_a_number_that_no_figure_has_is_a_fault(export: Path, name: str) -> None:
    card = made_card()
    card["figures"]["tasks"][0]["metrics"]["acc"][name] = 10**400
    assert check(resigned(card), export, "").faults


@pytest.mark.parametrize("text", ['"\\ud800"', "[" * 980 + "]" * 980, "[" * 990 + "]" * 990])
def test_what_json_takes_and_no_card_has_is_a_fault(tmp_path: Path, text: str) -> None:
    path = tmp_path / "card.json"
    path.write_text(json.dumps({**made_card(), "engine": 0}).replace('"engine": 0', f'"engine": {text}'))
    try:
        found = check(read_card(path), None, "").faults
    except Refused as refused:
        # At some depth it can no longer be read.
        found = [str(refused)]
    assert len(found) == 1


@pytest.mark.parametrize("figures", [[], {"tasks": []}, {"tasks": [1], "groups": []}])
def test_figures_of_another_form_are_a_fault_though_they_are_signed(figures: Any) -> None:
    found = check(resigned({**made_card(), "figures": figures}), None, "")
    assert found.faults == ["its figures are not in the form of a result card"]
