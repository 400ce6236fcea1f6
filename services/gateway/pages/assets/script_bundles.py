"""Scripts of pages as browsers get them: several files as one, because a first visit waits for each request.

A file is a module that imports by name from files beside it, or a vendored one that makes a global. In its
bundle each has a scope of its own.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath

# In the order in which they are executed. Files that no bundle names are sent alone.
BUNDLES: Mapping[str, tuple[str, ...]] = {
    "proctor.js": ("vendored/htmx.min.js", "pages.js", "keys.js"),
    "live.js": ("vendored/hx-ws.min.js", "live.js"),
    "charts.js": ("vendored/uPlot.iife.min.js", "chart_theme.js", "trend_chart.js", "live_chart.js"),
}
_VENDORED = "vendored/"
_GLOBAL = re.compile(r"^var (\w+)=", re.MULTILINE)
_IMPORT = re.compile(r'^import \{ ([\w, ]+) \} from "\./([\w.]+)";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:const|function|class) (\w+))", re.MULTILINE)


def bundled(scripts: Mapping[str, str]) -> dict[str, str]:
    """Texts by name as they are sent. `scripts`: all of them as they are written."""
    inside = {name for names in BUNDLES.values() for name in names}
    alone = {name: _linked(text) for name, text in scripts.items() if name not in inside}
    return alone | {
        bundle: "".join(_parts(bundle, {name: scripts[name] for name in names}))
        for bundle, names in BUNDLES.items()
    }


def _parts(bundle: str, texts: Mapping[str, str]) -> Iterator[str]:
    """What comes from other bundles first; then each file as a function that gives what it exports."""
    imported = dict.fromkeys(
        found.group() for text in texts.values() for found in _IMPORT.finditer(text) if found[2] not in texts
    )
    yield from map(_linked, imported)
    exported: dict[str, list[str]] = {}
    for name, text in texts.items():
        exported[name] = _EXPORT.findall(text)
        if exported[name]:
            yield f"const {{ {', '.join(exported[name])} }} = "
        yield f"(() => {{\n{_scoped(name, text)}"
        yield f"return {{ {', '.join(exported[name])} }};\n}})();\n"
    given = [name for file in exported if _bundle_of(file) == bundle for name in exported[file]]
    yield f"export {{ {', '.join(given)} }};\n"


def _scoped(name: str, text: str) -> str:
    """What it imports are constants around it."""
    made = _GLOBAL.search(text) if name.startswith(_VENDORED) else None
    ending = f"\nglobalThis.{made[1]} = {made[1]};\n" if made else "\n"
    return _EXPORT.sub("", _IMPORT.sub("", text)) + ending


def _linked(text: str) -> str:
    """Its imports by the names of bundles."""
    return _IMPORT.sub(lambda found: f'import {{ {found[1]} }} from "./{_bundle_of(found[2])}";\n', text)


def _bundle_of(name: str) -> str:
    return next((bundle for bundle, names in BUNDLES.items() if name in names), PurePosixPath(name).name)
