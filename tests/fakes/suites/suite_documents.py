"""Documents as users write them, and what the scheduler says of them."""

from textwrap import dedent

from services.scheduler.suites.format.suite_document import SuiteDocument
from services.scheduler.suites.format.yaml_suite_reader import read_document
from services.scheduler.suites.suite import SuiteDefinition

TASK = """\
task: colours
version: "1"
dataset: {id: org/colours, split: validation, fewshot_split: train}
output_type: multiple_choice
doc_to_text: "{{thing}} is"
doc_to_choice: [red, green]
doc_to_target: label
metric_list: [{metric: acc}]
"""


def document(text: str, **files: str) -> SuiteDocument:
    """Files by name, `_` for the dot: `rows_jsonl` is rows.jsonl; a name may begin with one that stays."""
    named = {_file_name(name): content.encode() for name, content in files.items()}
    return SuiteDocument(dedent(text), "mine.yaml", named)


def suite_of(text: str, **files: str) -> SuiteDefinition:
    reading = read_document(document(text, **files))
    assert reading.faults == ()
    assert reading.suite is not None
    return reading.suite


def faults_of(text: str, **files: str) -> list[tuple[str, int, str, str]]:
    """File, line, field and problem, in the order in which they are reported."""
    reading = read_document(document(text, **files))
    assert (reading.suite is None) == bool(reading.faults)
    return [(one.file, one.line, one.field, one.problem) for one in reading.faults]


def _file_name(name: str) -> str:
    stem, _, suffix = name.rpartition("_")
    return f"{stem}.{suffix}"
