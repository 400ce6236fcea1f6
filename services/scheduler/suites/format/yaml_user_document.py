"""A document that a user brought is read from memory; nothing that it names is looked for anywhere else."""

from collections.abc import Collection
from pathlib import Path

from services.scheduler.suites.format.suite_document import (
    MAX_DOCUMENT_BYTES,
    MAX_FILES,
    SuiteDocument,
    SuiteProblem,
    file_problems,
)
from services.scheduler.suites.format.suite_reading import SuiteReading
from services.scheduler.suites.format.yaml_files import SuiteFiles
from services.scheduler.suites.format.yaml_suite_reader import NameRule, read_suite

ROOT = "suite.yaml"


def read_document(
    document: SuiteDocument, folder: Path = Path(), taken_names: Collection[str] = ()
) -> SuiteReading:
    """`folder` is where its data files are going to lie; `taken_names` are those of other suites."""
    problems = _problems(document)
    if problems:
        return SuiteReading(None, tuple(problems))
    contents = {**document.files, ROOT: document.text.encode()}

    def read(path: str) -> bytes:
        if path not in contents:
            raise FileNotFoundError(2, "it was not sent along")
        return contents[path]

    files = SuiteFiles(read, ROOT, sent_files=frozenset(document.files))
    return read_suite(files, folder, NameRule(taken=taken_names))


class YamlUserDocuments:
    """Reads what users bring, to tell what is wrong with it."""

    def read(self, document: SuiteDocument, taken_names: Collection[str]) -> SuiteReading:
        return read_document(document, taken_names=taken_names)


def _problems(document: SuiteDocument) -> list[SuiteProblem]:
    if document.size_bytes > MAX_DOCUMENT_BYTES or len(document.files) > MAX_FILES:
        limit = f"{MAX_DOCUMENT_BYTES} bytes in {MAX_FILES} files"
        return [SuiteProblem(f"the suite has more than {limit}; name a data set of the hub for the rows")]
    return list(file_problems(document.files))
