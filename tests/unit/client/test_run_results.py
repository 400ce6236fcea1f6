"""The figures of a run as a notebook and a terminal show them."""

from html.parser import HTMLParser

from proctor.client.run_results import RunFigure, RunResults
from proctor.v1 import run_pb2, summary_pb2

HOSTILE = "<img src=x onerror=alert(1)>"


def results(task: str = "rte") -> RunResults:
    run = run_pb2.Run(state=run_pb2.RUN_STATE_COMPLETED)
    run.order.model, run.order.suite = "vllm/starter", "glue"
    summary = summary_pb2.RunSummary(answered=277, failed=1)
    summary.groups.add(group="glue", tasks=["rte"]).metrics.add(metric="acc", mean=0.5)
    summary.groups.add(group="entailment", tasks=["rte", "cb"]).metrics.add(metric="acc", mean=0.75, n=300)
    found = summary.tasks.add(task=task)
    found.metrics.add(metric="acc", mean=0.8125, ci_low=0.75, ci_high=0.875, n=277)
    found.metrics.add(metric="f1", n=277)
    return RunResults(run, summary)


class Cells(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:  # noqa: ARG002  # the base's signature
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def test_notebook_shows_a_table_of_all_figures() -> None:
    cells = Cells()
    cells.feed(results()._repr_html_())
    assert cells.tags.count("tr") == 4
    assert cells.texts[0] == "vllm/starter on glue: completed, 277 answered, 1 failed"
    assert cells.texts[-9:] == [
        "rte",
        "acc",
        "0.8125",
        "0.75 to 0.875",
        "277",
        "rte",
        "f1",
        "undefined",
        "277",
    ]


def test_the_share_of_answers_that_could_not_be_read_stands_above_the_figures() -> None:
    found = results()
    found.summary.unparsed = 50
    assert found.title == "vllm/starter on glue: completed, 277 answered, 1 failed, 18.1% unparsed"


def test_names_are_text_in_a_notebook() -> None:
    cells = Cells()
    cells.feed(results(HOSTILE)._repr_html_())
    assert "img" not in cells.tags
    assert HOSTILE in cells.texts


def test_terminal_shows_lines_and_programs_read_rows() -> None:
    lines = str(results()).splitlines()
    assert lines[1].split() == ["task", "metric", "figure", "95", "%", "n"]
    assert lines[3].split() == ["rte", "acc", "0.8125", "0.75", "to", "0.875", "277"]
    group, figure = results().figures[0], results().figures[1]
    assert group == RunFigure("entailment", "acc", mean=0.75, ci_low=None, ci_high=None, n=300)
    assert (figure.mean, figure.ci_low, figure.ci_high) == (0.8125, 0.75, 0.875)
