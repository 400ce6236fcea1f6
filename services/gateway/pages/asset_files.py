"""Style sheets, scripts and the font of pages: all below one digest, so that browsers keep them for a year.

A first visit takes one style sheet and few scripts, whatever files they are written in.

Files name each other by relative paths, so one digest covers the folder. A page of another version asks for
another digest: it gets the file of that name, which is not kept.
"""

import gzip
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from fastapi import APIRouter, Request
from starlette.exceptions import HTTPException
from starlette.responses import Response

from services.gateway.http.paths import ASSETS
from services.gateway.pages.assets.script_bundles import bundled

_FOLDER = Path(__file__).with_name("assets")
_MEDIA_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
    ".woff2": "font/woff2",
}
_PACKED = frozenset({".css", ".js", ".svg", ".txt"})
# In the order of the cascade; browsers get them as one file. Its addresses are relative to the folder above.
_STYLE_SHEET = "proctor.css"
_STYLES = (
    "base",
    "rail",
    "page",
    "fields",
    "tables",
    "labels",
    "run_list",
    "live",
    "orders",
    "answers",
    "leaderboard",
    "compare",
    "datasets",
    "suites",
    "busy",
    "rollouts",
    "above",
    "narrow",
    "phone",
    "verdicts",
    "stacked",
)
_VENDORED_STYLES = ("uPlot.min",)
_KEPT = "public, max-age=31536000, immutable"


@dataclass(frozen=True, slots=True)
class Asset:
    """A file as it is sent; `packed` is None where packing gains nothing."""

    body: bytes
    packed: bytes | None
    media_type: str


@dataclass(frozen=True, slots=True)
class Assets:
    """Files by their names, and the digest of all."""

    files: Mapping[str, Asset]
    digest: str

    @classmethod
    def load(cls, folder: Path = _FOLDER) -> Self:
        styles = folder / "styles"
        paths = sorted(
            path for path in folder.rglob("*") if path.suffix in _MEDIA_TYPES and path.parent != styles
        )
        bodies = {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}
        vendored = [bodies.pop(f"vendored/{name}.css") for name in _VENDORED_STYLES]
        own = [(styles / f"{name}.css").read_bytes() for name in _STYLES]
        bodies[_STYLE_SHEET] = b"".join([*own, *vendored])
        scripts = {name: bodies.pop(name).decode() for name in [*bodies] if name.endswith(".js")}
        bodies |= {name: text.encode() for name, text in bundled(scripts).items()}
        digest = hashlib.sha256()
        for name, body in bodies.items():
            digest.update(f"{name} {len(body)}\n".encode() + body)
        return cls({name: _asset(name, body) for name, body in bodies.items()}, digest.hexdigest()[:12])

    def url(self, name: str) -> str:
        """Raises KeyError for a file that does not exist."""
        if name not in self.files:
            raise KeyError(name)
        return f"{ASSETS}/{self.digest}/{name}"


def _asset(name: str, body: bytes) -> Asset:
    suffix = Path(name).suffix
    packed = gzip.compress(body, 9, mtime=0) if suffix in _PACKED else None
    return Asset(body, packed, _MEDIA_TYPES[suffix])


router = APIRouter(prefix=ASSETS, include_in_schema=False)


@router.get("/{digest}/{name:path}")
async def send(request: Request, digest: str, name: str) -> Response:
    assets: Assets = request.app.state.assets
    found = assets.files.get(name)
    if found is None:
        raise HTTPException(404, f"There is no file {name!r:.100} of the pages.")
    headers = {"Cache-Control": _KEPT if digest == assets.digest else "no-store"}
    if found.packed is None or "gzip" not in request.headers.get("accept-encoding", ""):
        return Response(found.body, media_type=found.media_type, headers=headers)
    headers |= {"Content-Encoding": "gzip", "Vary": "Accept-Encoding"}
    return Response(found.packed, media_type=found.media_type, headers=headers)
