"""The words of the code are those of the field: a short list of private ones does not come back."""

import ast
import io
import re
import tokenize
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CODE = ("proctor", "services", "tests", "protos", ".ci")
# Texts of tests may be a model's answer.
SHOWS_TEXTS = ("proctor", "services")
PROSE = ("docs", "README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md")
# The old word, and the one to use.
IDENTIFIERS = {
    "apart": "unranked, distinguishable",
    "board": "leaderboard, tracker",
    "boards": "leaderboards",
    "campaign": "leader election",
    "colleague": "peer",
    "crew": "worker registry",
    "desk": "context",
    "door": "API, entry point",
    "doors": "APIs, entry points",
    "gave": "preempted",
    "grant": "quota",
    "grants": "quotas",
    "heed": "honour, apply",
    "heeded": "honoured, applied",
    "holding": "in flight, counted",
    "incarnation": "generation",
    "loose": "unreferenced",
    "pace": "rate limit",
    "paces": "rate limits",
    "patience": "timeout, retry time, linger",
    "place": "slot, position, index",
    "places": "slots, positions, indexes",
    "standing": "leaderboard entry, running",
    "standings": "leaderboard entries",
    "struck": "faulted",
    "told": "reported, stored, detected",
    "urgency": "priority",
}
# Tests may name what a model answered so.
NAMES_OF_CODE = {"said": "answer, output, problem"}
# Texts are counted in characters. Letters are those of choices, A to J, and of runs that a terminal compares.
LETTERED = ("services/results/scoring/", "proctor/cli/results/")
CHOICE_WORDS = ("letter", "letters")
# Words of sentences, such as names of tests, that name nothing in the code.
NAMES = {"stay": "minimum run time"}
# The word belongs to chats: their files speak of messages and roles.
CHAT_WORDS = ("turn", "turns")
# The first word of a constant.
# A constant whose value is the word itself is one of several, and no limit: `LONGEST = "longest"`.
LIMITS = {
    **dict.fromkeys(("most", "longest", "largest", "greatest", "biggest", "highest"), "MAX_"),
    **dict.fromkeys(("least", "fewest", "shortest", "smallest", "lowest", "slowest"), "MIN_"),
    "usual": "DEFAULT_",
}
# Arguments and fields too, where no other word stands beside it.
LIMIT_NAMES = {
    **dict.fromkeys(("most", "longest", "largest"), "maximum, limit, max_…"),
    **dict.fromkeys(("least", "fewest", "shortest", "smallest"), "minimum, min_…"),
    "usual": "default",
}
WORDS = {
    "gave way": "was preempted",
    "gives way": "is preempted",
    "heed": "honour, apply",
    "heeded": "honoured, applied",
    "nobody": "no user, no caller",
    "somebody": "a user, a caller",
    "told": "reported, stored, refused",
    "whoever": "the user who, any replica that",
}
# Programs report and receive. Tests may have such words in what models and people say.
SPOKEN = {
    **dict.fromkeys(("tell", "tells"), "report, show, decide"),
    **dict.fromkeys(("hear", "hears", "heard"), "receive"),
    "wants": "needs, asks for, must have",
    "believed": "used, assumed",
    **dict.fromkeys(("anybody", "everybody"), "any caller, all users"),
}
# Names of functions are sentences too.
FUNCTIONS = (*WORDS, *SPOKEN)
# "nobody" is also the account that runs Postgres for root.
ALLOWED_PROSE = re.compile(r"`nobody`|\"nobody\"|user nobody|account nobody")
# Data may not suffice for a verdict, and an expression finds how people begin an answer.
ALLOWED_SPEECH = re.compile(r"cannot tell|\|tell\|")
# Functions whose subject is that account.
OF_THE_ACCOUNT = {
    "_programs_for_nobody",
    "become_nobody",
    "test_for_root_the_data_belongs_to_nobody",
    "test_image_runs_as_nobody_and_leaves_probes_to_kubernetes",
    "to_nobody",
}


# What is not an identifier in a contract, a query and a script: comments and texts.
TEXTS = {
    ".proto": re.compile(r'//[^\n]*|"[^"\n]*"'),
    ".sql": re.compile(r"--(?! name: )[^\n]*|(?<=-- name: )(\w+)[^\n]*|'[^']*'"),
    ".js": re.compile(r'//[^\n]*|"[^"\n]*"|`[^`]*`'),
}
IN_TEMPLATE = re.compile(r"\$\{([^}]*)\}")
# Key words and functions of SQL are in upper case.
IDENTIFIER = {".sql": re.compile(r"\b[a-z_][a-z0-9_]*\b")}


def python_files() -> list[Path]:
    files = [path for folder in CODE for path in sorted((ROOT / folder).rglob("*.py"))]
    return [path for path in files if "_pb2" not in path.name and path != Path(__file__)]


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def nodes_of(path: Path) -> list[ast.AST]:
    return list(ast.walk(parsed(path)))


def names_of(path: Path) -> Iterator[str]:
    """The name of the file, and every name that its code defines."""
    yield path.stem
    for node in nodes_of(path):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr


def other_files() -> list[Path]:
    """Contracts, queries and our own scripts. Merged migrations keep their names."""
    found = [*(ROOT / "protos").rglob("*.proto"), *(ROOT / "services").rglob("queries.sql")]
    return sorted(found + list((ROOT / "services/gateway/pages/assets").glob("*.js")))


def names_in(path: Path) -> set[str]:
    """Every identifier of a contract, of a query or of a script."""
    text = TEXTS[path.suffix].sub(code_in, path.read_text(encoding="utf-8"))
    return set(IDENTIFIER.get(path.suffix, re.compile(r"[A-Za-z_]\w*")).findall(text))


def code_in(found: re.Match[str]) -> str:
    """The name of a query, and what a template literal computes; of other texts nothing."""
    return found[1] or "" if found.re.groups else " ".join(IN_TEMPLATE.findall(found[0]))


def words_in(name: str) -> set[str]:
    return {word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)}


def prose_of(path: Path) -> str:
    """Comments, docstrings and shown texts of Python; comments of contracts and SQL; all of a page."""
    text = path.read_text(encoding="utf-8")
    if path.suffix in {".md", ".html"}:
        return text
    if path.suffix in {".proto", ".sql"}:
        return "\n".join(re.findall(r"(?://|--).*", text))
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    texts = [ast.get_docstring(node) or "" for node in nodes_of(path) if isinstance(node, documented)]
    if path.parts[len(ROOT.parts)] in SHOWS_TEXTS:
        texts += [
            node.value
            for node in nodes_of(path)
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value
        ]
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return "\n".join(texts + [token.string for token in tokens if token.type == tokenize.COMMENT])


def prose_files() -> list[Path]:
    pages = [ROOT / name for name in PROSE]
    pages = [page for each in pages for page in (sorted(each.rglob("*.md")) if each.is_dir() else [each])]
    pages += sorted((ROOT / "services/gateway/pages/templates").rglob("*.html"))
    contracts = sorted((ROOT / "protos").rglob("*.proto")) + sorted((ROOT / "services").rglob("*.sql"))
    return [*pages, *contracts, *python_files()]


@cache
def names_by_word() -> dict[str, list[str]]:
    found = defaultdict(list)
    names = {
        **{path: set(names_of(path)) for path in python_files()},
        **{p: names_in(p) for p in other_files()},
    }
    for path, defined in names.items():
        for name in sorted(defined):
            for word in words_in(name):
                found[word].append(f"{path.relative_to(ROOT)}: {name}")
    return found


@cache
def all_prose() -> list[tuple[Path, str]]:
    """Each line of prose with its file."""
    return [
        (file, line.strip())
        for path in prose_files()
        for file in [path.relative_to(ROOT)]
        for line in ALLOWED_PROSE.sub("", prose_of(path)).splitlines()
    ]


def prose_with(word: str) -> Iterator[tuple[Path, str]]:
    """The lines that have the word, in any case."""
    pattern = re.compile(rf"\b{word}\b", re.IGNORECASE)
    # Most lines have it nowhere, and a plain search is some ten times as fast.
    return ((path, line) for path, line in all_prose() if word in line.lower() and pattern.search(line))


def test_names_of_contracts_queries_and_scripts_are_read() -> None:
    by_suffix = {suffix: set[str]() for suffix in TEXTS}
    for path in other_files():
        by_suffix[path.suffix] |= names_in(path)
    assert {"SubmitRun", "max_tokens"} <= by_suffix[".proto"]
    assert {"add_run_record", "sample_sets"} <= by_suffix[".sql"]
    assert {"focusSearch", "announce", "renewedAt"} <= by_suffix[".js"]


@pytest.mark.parametrize("word", IDENTIFIERS)
def test_no_name_has_a_private_word(word: str) -> None:
    assert names_by_word()[word] == [], f"use {IDENTIFIERS[word]}"


@pytest.mark.parametrize("word", NAMES)
def test_no_name_but_that_of_a_test_has_a_word_of_sentences(word: str) -> None:
    found = [name for name in names_by_word()[word] if ": test_" not in name]
    assert found == [], f"use {NAMES[word]}"


@pytest.mark.parametrize("word", NAMES_OF_CODE)
def test_no_name_of_the_code_has_a_word_of_many_meanings(word: str) -> None:
    found = [name for name in names_by_word()[word] if name.startswith(SHOWS_TEXTS)]
    assert found == [], f"use {NAMES_OF_CODE[word]}"


@pytest.mark.parametrize("word", CHOICE_WORDS)
def test_letters_are_those_of_choices_and_of_compared_runs(word: str) -> None:
    found = [name for name in names_by_word()[word] if name.startswith(SHOWS_TEXTS)]
    assert found != []
    others = [name for name in found if not name.startswith(LETTERED)]
    assert others == [], "use characters"


@pytest.mark.parametrize("word", CHAT_WORDS)
def test_turns_are_those_of_chats(word: str) -> None:
    files = {name.partition(": ")[0] for name in names_by_word()[word] if ": test_" not in name}
    chat = re.compile(r"\brole\b|messages|Prompt\b|chat|_of_turn", re.IGNORECASE)
    assert {file for file in files if not chat.search((ROOT / file).read_text(encoding="utf-8"))} == set()


@pytest.mark.parametrize("word", WORDS)
def test_no_sentence_has_a_private_word(word: str) -> None:
    found = [f"{path}: {line}" for path, line in prose_with(word)]
    assert found == [], f"use {WORDS[word]}"


@pytest.mark.parametrize("word", SPOKEN)
def test_no_sentence_of_the_code_or_of_docs_lets_programs_speak(word: str) -> None:
    pattern = re.compile(rf"\b{word}\b", re.IGNORECASE)
    found = [
        f"{path}: {line}"
        for path, line in prose_with(word)
        if path.parts[0] not in {"tests", ".ci"}
        and path.suffix != ".html"
        and path.parts[:2] != ("docs", "decisions")
        if path.parent.name != "migrations" and pattern.search(ALLOWED_SPEECH.sub("", line))
    ]
    assert found == [], f"use {SPOKEN[word]}"


def test_a_noun_is_negated_by_not() -> None:
    """`A text that is not a UUID`, not `that is no UUID`. There may be none of a thing, or no more of it."""
    negated = re.compile(r"\b(?:is|are|was|were|be) no (?!more|longer|other|larger|less|later|better)(?=\S)")
    there = re.compile(r"\bthere (?:\w+ ){0,2}$", re.IGNORECASE)
    found = [
        f"{path}: {line}"
        for path, line in all_prose()
        if path.parts[0] not in {"tests", ".ci"} and path.parent.name != "migrations"
        for each in negated.finditer(line)
        if not there.search(line[: each.start()])
    ]
    assert found == []


def test_a_comment_names_its_subject() -> None:
    """`Maximum texts searched at a time`, not `Of texts that are searched`."""
    begins = re.compile(r"(?:#|--|//) Of ")
    comments = [(path, line) for path, line in all_prose() if path.suffix in {".py", ".sql", ".proto"}]
    assert any(line.startswith("# The ") for _, line in comments)
    assert [f"{path}: {line}" for path, line in comments if begins.match(line)] == []


def test_pages_call_what_is_not_chosen_the_default() -> None:
    pages = [(path, line) for path, line in all_prose() if path.suffix == ".html"]
    assert any("default" in line for _, line in pages)
    assert [f"{path}: {line}" for path, line in pages if re.search(r"\busual\b", line)] == []


@cache
def function_names() -> list[tuple[str, str]]:
    """The names of all functions as sentences, each with its file."""
    return [
        (f"{path.relative_to(ROOT)}: {node.name}", node.name.replace("_", " "))
        for path in python_files()
        for node in nodes_of(path)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name not in OF_THE_ACCOUNT
    ]


@pytest.mark.parametrize("word", FUNCTIONS)
def test_no_function_has_a_private_word_in_its_name(word: str) -> None:
    pattern = re.compile(rf"\b{word}\b")
    assert [name for name, sentence in function_names() if pattern.search(sentence)] == []


@pytest.mark.parametrize(("word", "limit"), LIMITS.items())
def test_a_constant_is_named_max_min_or_default(word: str, limit: str) -> None:
    constant = re.compile(rf"([^:]+): _?{word.upper()}(_[A-Z0-9_]+)?")
    found = [name for name in names_by_word()[word] if constant.fullmatch(name)]
    own = f'{word.upper()} = "{word}"'
    assert [name for name in found if own not in (ROOT / name.partition(": ")[0]).read_text()] == [], (
        f"use {limit}"
    )


def name_of_contract(module: str) -> str:
    """What `scheduler_service_pb2` is called in the code: `scheduler_pb2`, unless that is a contract too."""
    if module.endswith("_pb2_grpc"):
        return f"{module.removesuffix('_pb2_grpc').removesuffix('_service')}_grpc"
    short = module.replace("_service_pb2", "_pb2")
    return module if (ROOT / "proctor/v1" / f"{short}.py").is_file() else short


def test_a_contract_has_one_name_in_all_of_the_code() -> None:
    imported = [
        (f"{path.relative_to(ROOT)}: {each.name}", each.name, each.asname or each.name)
        for path in python_files()
        for node in nodes_of(path)
        if isinstance(node, ast.ImportFrom) and node.module in {"proctor.v1", "proctor.keda"}
        for each in node.names
    ]
    assert len(imported) > 500
    wrong = {
        where: name_of_contract(module)
        for where, module, name in imported
        if name != name_of_contract(module)
    }
    assert wrong == {}


def test_use_cases_that_list_or_show_do_it_by_methods_of_that_name() -> None:
    methods = [
        f"{node.name}.{each.name}"
        for path in sorted((ROOT / "services").rglob("*.py"))
        if path.stem.startswith(("list_", "show_"))
        for node in parsed(path).body
        if isinstance(node, ast.ClassDef) and re.match("(List|Show)[A-Z]", node.name)
        for each in node.body
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef) and each.name[0] != "_"
    ]
    assert {"ListRuns.list_page", "ListFlips.list_page", "ShowBatch.show"} <= set(methods)
    verbs = re.compile(r"\w+\.(list|show|read|watch|report|close)(_\w+)?")
    assert [method for method in methods if not verbs.fullmatch(method)] == []


@cache
def argument_names() -> list[tuple[str, str]]:
    """The names of fields, and of arguments as calls give them, each with its file."""
    found = []
    for path in python_files():
        file = path.relative_to(ROOT)
        for node in nodes_of(path):
            if isinstance(node, ast.keyword) and node.arg:
                found.append((f"{file}:{node.value.lineno}", node.arg))
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                found.append((f"{file}:{node.lineno}", node.target.id))
            elif isinstance(node, ast.arg):
                found.append((f"{file}:{node.lineno}", node.arg))
    return found


@pytest.mark.parametrize("word", LIMIT_NAMES)
def test_a_limit_that_is_given_is_named_maximum_minimum_or_default(word: str) -> None:
    assert len(argument_names()) > 1000
    assert [where for where, name in argument_names() if name == word] == [], f"use {LIMIT_NAMES[word]}"
