"""Every variable that code or text names is in the reference, which `make check` holds current."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
SETTINGS = ROOT / "docs" / "reference" / "settings.md"
# Names of the tests, of CI and of compose.yaml, or parts of names that are put together.
NOT_SETTINGS = {"PROCTOR_REFERENCE_DIR", "PROCTOR_REGISTRY", "PROCTOR_"}


def test_every_variable_that_code_or_text_names_is_in_the_reference() -> None:
    known = set(re.findall(r"PROCTOR_[A-Z_]+", SETTINGS.read_text(encoding="utf-8")))
    folders = ("proctor", "services", "docs")
    files = [
        path for folder in folders for path in (ROOT / folder).rglob("*") if path.suffix in {".py", ".md"}
    ]
    named = {
        (name, str(path.relative_to(ROOT)))
        for path in [*files, ROOT / "README.md"]
        if "decisions" not in path.parts
        for name in re.findall(r"\bPROCTOR_[A-Z_]*[A-Z]\b", path.read_text(encoding="utf-8"))
    }
    assert {(name, where) for name, where in named if name not in known | NOT_SETTINGS} == set()
