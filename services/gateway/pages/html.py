"""Templates: what they may use, such as the pages of the rail, and a view as HTML."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from jinja2 import BytecodeCache, Environment, FileSystemLoader, StrictUndefined
from jinja2.bccache import Bucket
from jinja2.ext import Extension
from jinja2.lexer import Token, TokenStream

from services.gateway.http.project_names import project, seen_projects
from services.gateway.pages import text
from services.gateway.pages.asset_files import Assets
from services.gateway.pages.table_files import FORM_NAMES

_FOLDER = Path(__file__).parent
# Elements at whose edges no space is shown.
_BLOCK = (
    "(?:body|caption|circle|data|dd|details|div|dl|dt|fieldset|figcaption|figure|form|h[1-4]|head|header|hr"
    "|label|legend|li|line|link|main|meta|nav|noscript|ol|optgroup|option|p|pre|rect|script|section|summary"
    r"|svg|table|tbody|td|th|thead|title|tr|ul)\b"
)
_ROLLOUTS_OF_A_RUN = re.compile(r"^/runs/[^/]+/rollouts\b")
_INDENTATION = re.compile(r"[ \t\n]{2,}|\n")
_BEFORE_A_BLOCK = re.compile(rf"(?:{_INDENTATION.pattern})(?=</?{_BLOCK})")
_AFTER_A_BLOCK = re.compile(rf"(</?{_BLOCK}[^<>]*>)(?:{_INDENTATION.pattern})")
_FILTERS: tuple[Callable[..., str], ...] = (
    project,
    text.ago,
    text.breakable,
    text.clock,
    text.count,
    text.days,
    text.duration,
    text.duration_tick,
    text.glimpse,
    text.json,
    text.money,
    text.number,
    text.percent,
    text.plain,
    text.score,
    text.signed,
    text.size,
    text.stamp,
    text.tick,
    text.time_range,
    text.total,
)


@dataclass(frozen=True, slots=True)
class Entry:
    """A page of the rail; `g` and then `key` opens it."""

    path: str
    name: str
    key: str
    is_for_operators: bool = False

    def holds(self, path: str) -> bool:
        """The page, or one below it. Rollouts of a run are below the run, and belong to the rollouts."""
        shown = _ROLLOUTS_OF_A_RUN.sub("/rollouts", path)
        return shown == self.path or (self.path != "/" and shown.startswith(f"{self.path}/"))


# One per line, in the order of the rail.
ENTRIES = (
    Entry("/", "Overview", "o"),
    Entry("/runs", "Runs", "r"),
    Entry("/compare", "Compare", "c"),
    Entry("/leaderboard", "Leaderboard", "l"),
    Entry("/suites", "Suites", "s"),
    Entry("/datasets", "Data sets", "d"),
    Entry("/playground", "Playground", "p"),
    Entry("/batches", "Batches", "b"),
    Entry("/rollouts", "Rollouts", "t"),
    Entry("/queue", "Queue", "q"),
    Entry("/schedules", "Schedules", "h"),
    Entry("/audit", "Audit", "a", is_for_operators=True),
    Entry("/settings", "Settings", ","),
)


class _LessSpace(Extension):
    """Leaves out the indentation of templates, which would be half of a page.

    Space between the words of a line of text stays; a line break inside `pre` is written `{{ '\n' }}`.
    Tokens keep their lines, for what errors name.
    """

    def filter_stream(self, stream: TokenStream) -> Iterable[Token]:
        for token in stream:
            yield token._replace(value=_less_space(token.value)) if token.type == "data" else token


def _less_space(text: str) -> str:
    return _INDENTATION.sub(" ", _AFTER_A_BLOCK.sub(r"\1", _BEFORE_A_BLOCK.sub("", text)))


class _Compiled(BytecodeCache):
    """Templates that this process has compiled, each at its first view, which takes some 10 ms.

    All together would take a quarter of the start of a gateway. Its files do not change, however many
    gateways a process has.
    """

    _code: ClassVar[dict[str, Any]] = {}

    def load_bytecode(self, bucket: Bucket) -> None:
        bucket.code = self._code.get(bucket.key)

    def dump_bytecode(self, bucket: Bucket) -> None:
        self._code[bucket.key] = bucket.code


class Html:
    """Renders views. A template gets its `view` (a frozen dataclass) and, where it is a whole page, `page`.

    All text is escaped, and a name that a template misspells raises.
    """

    def __init__(self, assets: Assets) -> None:
        self.build = assets.digest
        self._environment = Environment(
            loader=FileSystemLoader(_FOLDER),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
            bytecode_cache=_Compiled(),
            extensions=[_LessSpace],
        )
        self._environment.globals |= {"asset": assets.url, "entries": ENTRIES, "build": assets.digest}
        self._environment.globals |= {"seen_projects": seen_projects, "file_forms": FORM_NAMES}
        self._environment.filters |= {each.__name__: each for each in _FILTERS}

    def render(self, template: str, **known: Any) -> str:
        """`template` is a path below the folder of pages, without `.html`: `runs/run`."""
        return self._environment.get_template(f"{template}.html").render(**known)

    def renderer(self, template: str) -> Callable[[object], str]:
        """Renders views of one template."""
        return lambda view: self.render(template, view=view)
