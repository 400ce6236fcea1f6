"""The images that users may name. A pull has the rights of the operator, who says from where."""

from collections.abc import Iterable

ANY_IMAGE = "*"
_HUB = "docker.io"
# Behind one of these a name ends: a longer name that only begins alike is another image.
_BOUNDARIES = ("/", ":", "@")


def read_allowed(text: str) -> tuple[str, ...]:
    """The prefixes of a list with commas."""
    return tuple(prefix for part in text.split(",") if (prefix := part.strip()))


def is_allowed(image: str, prefixes: Iterable[str]) -> bool:
    """Whether the image is one of the prefixes, or lies behind one; ANY_IMAGE is a prefix of all."""
    name = _full_name(image)
    return any(prefix == ANY_IMAGE or _is_behind(name, _full_name(prefix)) for prefix in prefixes)


def _is_behind(name: str, prefix: str) -> bool:
    if not name.startswith(prefix):
        return False
    rest = name.removeprefix(prefix)
    return not rest or prefix.endswith(_BOUNDARIES) or rest.startswith(_BOUNDARIES)


def _full_name(image: str) -> str:
    """With the host and the folder that a short name leaves out, as container engines read it."""
    first, slash, _ = image.partition("/")
    if slash and (first == "localhost" or "." in first or ":" in first):
        return image
    return f"{_HUB}/{image}" if slash else f"{_HUB}/library/{image}"
