"""Frozen values that are made by the million.

Decision record: docs/decisions/0078-some-values-are-frozen-for-mypy-only.md.
"""

from dataclasses import MISSING, field, fields, is_dataclass, make_dataclass
from typing import Any, TypeVar

V = TypeVar("V")


def quickly_made(frozen: type[V]) -> type[V]:
    """Gives a frozen dataclass the `__init__` of one that is not: it takes a fifth of the time.

    Type checkers still refuse assignments to its fields; at run time none is refused any more.
    """
    assert is_dataclass(frozen)
    plain = make_dataclass(
        frozen.__name__,
        [(each.name, each.type, _same(each)) for each in fields(frozen)],
        # The generated `__init__` calls it only where the class has one.
        namespace={name: getattr(frozen, name) for name in ("__post_init__",) if hasattr(frozen, name)},
        slots=True,
    )
    # Also over those of a frozen parent.
    frozen.__setattr__, frozen.__delattr__ = object.__setattr__, object.__delattr__  # type: ignore[method-assign]  # as they are without `frozen`
    frozen.__init__ = plain.__init__  # type: ignore[misc, method-assign]  # of the same fields
    return frozen


def _same(of_frozen: Any) -> Any:
    given = {"default": of_frozen.default, "default_factory": of_frozen.default_factory}
    return field(
        **{name: value for name, value in given.items() if value is not MISSING},
        init=of_frozen.init,
        kw_only=of_frozen.kw_only,
    )
