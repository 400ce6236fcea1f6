"""A gate as Markdown for a pull request, and as JUnit XML."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from proctor.v1 import comparison_pb2
from proctor.values.comparison import points_text
from proctor.wire.enums import word_of

_PASS, _FAIL = comparison_pb2.GATE_VERDICT_PASS, comparison_pb2.GATE_VERDICT_FAIL
_ALL_TASKS = "all tasks"
_LONGEST = 80
# Sentences of ours that may hold words of others.
_LONGEST_SENTENCE = 1_000
# All of them could be Markdown; an entity never is.
_PUNCTUATION = re.compile(r"[^\w\s]|_", re.ASCII)
# XML 1.0 has no other characters.
_NOT_XML = re.compile(r"[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True, slots=True)
class GateReport:
    """`lost`: rows with a lower score than in the base. `pages`: address of the web pages; "": no links."""

    gate: comparison_pb2.Gate
    lost: Sequence[comparison_pb2.Flip]
    pages: str = ""

    @property
    def base_id(self) -> str:
        return self.gate.runs[1].run_id

    @property
    def run_id(self) -> str:
        return self.gate.runs[0].run_id


def run_line(run: comparison_pb2.ComparedRun) -> str:
    score = f", {run.score:.4f} on the whole benchmark" if run.HasField("score") else ""
    return f"{run.model}, run {run.run_id}{score}"


def markdown(report: GateReport) -> str:
    return "\n".join(_markdown_lines(report)) + "\n"


def _markdown_lines(report: GateReport) -> Iterator[str]:
    gate = report.gate
    word = word_of(comparison_pb2.GateVerdict, gate.verdict).upper()
    yield f"### {word}: {_plain(gate.benchmark)}"
    yield ""
    run, base = (_plain(run_line(each), _LONGEST_SENTENCE) for each in gate.runs)
    yield f"{run} against {base}. Accepted drop: {points_text(gate.margin_points)} in each task."
    yield ""
    yield "| task | metric | run | base | run − base | limits | pairs | decision |"
    yield "|---|---|--:|--:|--:|--:|--:|---|"
    yield from (_row(task) for task in gate.tasks)
    for sentence in [*gate.reasons, *gate.warnings]:
        yield f"\n- {_plain(sentence, _LONGEST_SENTENCE)}"
    yield ""
    yield from _lost(report)


def _row(task: comparison_pb2.GatedTask) -> str:
    one = task.difference
    limits = f"{task.lower_limit:+z.4f}, {task.upper_limit:+z.4f}" if task.HasField("lower_limit") else "–"
    decision = f"**{word_of(comparison_pb2.GateVerdict, task.verdict)}**"
    cells = (
        _plain(one.task or _ALL_TASKS),
        _plain(one.metric),
        f"{one.first_mean:.4f}" if one.HasField("first_mean") else "–",
        f"{one.second_mean:.4f}" if one.HasField("second_mean") else "–",
        f"{one.difference:+z.4f}" if one.HasField("difference") else "–",
        limits,
        f"{one.pairs:,}",
        f"{decision}: {_plain(task.reason, _LONGEST_SENTENCE)}" if task.reason else decision,
    )
    return f"| {' | '.join(cells)} |"


def _lost(report: GateReport) -> Iterator[str]:
    """Rows that were right, or better, and got worse."""
    if not report.lost:
        return
    yield f"<details><summary>{len(report.lost)} rows that got worse</summary>"
    yield ""
    yield "| row | target | base | run |"
    yield "|---|---|---|---|"
    for flip in report.lost:
        row = _plain(f"{flip.task} {flip.doc_id}")
        cells = (
            f"[{row}]({_row_link(report, flip)})" if report.pages else row,
            _plain(flip.target),
            f"{flip.second_score:g} {_plain(flip.second_prediction)}",
            f"{flip.first_score:g} {_plain(flip.first_prediction)}",
        )
        yield f"| {' | '.join(cells)} |"
    yield ""
    for task in dict.fromkeys(flip.task for flip in report.lost) if report.pages else ():
        query = urlencode([("run", report.base_id), ("run", report.run_id), ("task", task), ("show", "lost")])
        yield f"- [All rows of {_plain(task)} that got worse]({report.pages}/compare?{query})"
    yield "\n</details>"


def _row_link(report: GateReport, flip: comparison_pb2.Flip) -> str:
    query = urlencode({"from": flip.sample, "row": f"{flip.sample}.0"})
    return f"{report.pages}/runs/{report.run_id}/results?{query}#detail"


def _plain(text: str, longest: int = _LONGEST) -> str:
    """A text of others on one line, without any effect as Markdown or HTML."""
    one_line = " ".join(text.split())
    cut = one_line if len(one_line) <= longest else f"{one_line[:longest]}…"
    return _PUNCTUATION.sub(lambda found: _entity(found[0]), cut)


def _entity(character: str) -> str:
    return character if ord(character) > 127 else f"&#{ord(character)};"


def junit(gate: comparison_pb2.Gate) -> str:
    """A test for each task, and one that the runs are comparable; what is inconclusive is an error."""
    failed = sum(task.verdict == _FAIL for task in gate.tasks)
    undecided = sum(task.verdict not in (_PASS, _FAIL) for task in gate.tasks)
    counts = {
        "tests": str(len(gate.tasks) + 1),
        "failures": str(failed),
        "errors": str(undecided + bool(gate.reasons)),
    }
    root = Element("testsuites", counts)
    suite = SubElement(root, "testsuite", {"name": _xml_text(f"gate {gate.benchmark}"), **counts})
    comparable = SubElement(suite, "testcase", {"classname": "gate", "name": "the runs are comparable"})
    if gate.reasons:
        SubElement(comparable, "error", {"message": _xml_text(" ".join(gate.reasons))})
    for task in gate.tasks:
        _add_case(suite, task)
    indent(root)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{tostring(root, encoding="unicode")}\n'


def _add_case(suite: Element, task: comparison_pb2.GatedTask) -> None:
    one = task.difference
    name = _xml_text(f"{one.task or _ALL_TASKS} ({one.metric})")
    case = SubElement(suite, "testcase", {"classname": "gate", "name": name})
    if task.verdict == _PASS:
        return
    kind = "failure" if task.verdict == _FAIL else "error"
    size = (
        f"run − base is {one.difference:+z.4f}" if one.HasField("difference") else "no difference is defined"
    )
    limit = f", at most {task.upper_limit:+z.4f}" if task.verdict == _FAIL else ""
    reason = f": {task.reason}" if task.reason else ""
    SubElement(case, kind, {"message": _xml_text(f"{size}{limit}; accepted is {-task.margin:g}{reason}")})


def _xml_text(text: str) -> str:
    return _NOT_XML.sub("\ufffd", text)
