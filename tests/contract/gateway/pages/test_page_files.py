"""Files of pages: vendored files as listed, small scripts, and templates that a strict CSP allows."""

import hashlib
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from services.gateway.pages.asset_files import Assets

ROOT = Path(__file__).resolve().parents[4]
ASSETS = ROOT / "services/gateway/pages/assets"
VENDORED = ASSETS / "vendored"
TEMPLATES = sorted((ROOT / "services/gateway/pages").rglob("*.html"))
STYLES = sorted((ASSETS / "styles").glob("*.css"))
SCRIPTS = sorted(ASSETS.glob("*.js"))
MAX_LINES = 600
MAX_LINES_OF_A_SCRIPT = 150
MAX_LINES_OF_A_TEMPLATE = 150
MAX_LINES_OF_STYLES = 200
MAX_COLUMNS = 120
# What a strict Content-Security-Policy refuses, and what would let foreign text become markup.
FORBIDDEN = {
    "an inline style": re.compile(r"<[^>]*\sstyle\s*="),
    "an inline handler": re.compile(r"<[^>]*\son[a-z]+\s*="),
    "an inline script": re.compile(r"<script(?![^>]*\bsrc=)"),
    "a style element": re.compile(r"<style"),
    "an hx-on handler": re.compile(r"hx-on[:-]"),
    "evaluated script": re.compile(r"\bjs:|javascript:"),
    "markup without escaping": re.compile(r"\|\s*safe|autoescape false|Markup"),
    "an address of another host": re.compile(r"""(?:src|href|action)=["'](?:https?:)?//"""),
}


def test_vendored_files_are_those_that_are_listed() -> None:
    listed = tomllib.loads((VENDORED / "vendored.toml").read_text())["files"]
    found = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in VENDORED.iterdir()}
    del found["vendored.toml"]
    assert found == {name: facts["sha256"] for name, facts in listed.items()}
    assert all(facts["licence"] and facts["version"] for facts in listed.values())


def test_own_scripts_stay_small() -> None:
    lines = {path.name: len(path.read_text().splitlines()) for path in SCRIPTS}
    assert sum(lines.values()) <= MAX_LINES
    assert {name: count for name, count in lines.items() if count > MAX_LINES_OF_A_SCRIPT} == {}


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.name)
def test_template_holds_nothing_that_the_policy_refuses(path: Path) -> None:
    text = path.read_text()
    assert [what for what, form in FORBIDDEN.items() if form.search(text)] == []


def test_every_file_that_a_template_names_exists() -> None:
    assets = Assets.load()
    for path in TEMPLATES:
        for name in re.findall(r"asset\('([^']+)'\)", path.read_text()):
            assert name in assets.files, f"{path.name}: {name}"


def test_every_style_sheet_is_sent() -> None:
    sent = Assets.load().files["proctor.css"].body.decode()
    assert STYLES
    assert [path.name for path in STYLES if path.read_text() not in sent] == []


def test_every_script_is_sent_once_and_imports_what_is_sent() -> None:
    sent = {name: file.body.decode() for name, file in Assets.load().files.items() if name.endswith(".js")}
    vendored = [VENDORED / path.name for path in VENDORED.glob("*.js")]
    for path in (*SCRIPTS, *vendored):
        # Its longest line is in one file only.
        line = max(path.read_text().splitlines(), key=len)
        assert sum(line in text for text in sent.values()) == 1, path.name
    for name, text in sent.items():
        for names, other in re.findall(r'^import \{ ([\w, ]+) \} from "\./([\w.]+)";', text, re.MULTILINE):
            [exported] = re.findall(r"^export \{ ([\w, ]*) \};", sent[other], re.MULTILINE)
            assert set(names.split(", ")) <= set(exported.split(", ")), f"{name}: {other}"


@pytest.mark.parametrize("path", [*TEMPLATES, *STYLES], ids=lambda path: f"{path.parent.name}/{path.name}")
def test_source_of_pages_is_short_and_narrow(path: Path) -> None:
    lines = path.read_text().splitlines()
    assert len(lines) <= (MAX_LINES_OF_STYLES if path.suffix == ".css" else MAX_LINES_OF_A_TEMPLATE)
    # An address in a style sheet is one word.
    assert [line for line in lines if len(line) > MAX_COLUMNS and "url(" not in line] == []
    assert [
        line for line in lines if path.suffix == ".css" and line.count(";") > 1 and "url(" not in line
    ] == []


def test_headers_of_tables_are_made_in_one_place() -> None:
    assert [path.name for path in TEMPLATES if "<thead" in path.read_text()] == ["macros.html"]


def test_scripts_have_no_fault_that_a_linter_finds() -> None:
    # `python -m oxlint` has no entry point; the program is installed beside python.
    program = Path(sys.executable).with_name("oxlint")
    done = subprocess.run(
        [program, "--deny-warnings", *SCRIPTS], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stdout + done.stderr
