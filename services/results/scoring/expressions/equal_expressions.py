"""Whether two expressions are equal, by math-verify and the parser that it uses. Slow to import.

The library's own bounds of time are signals; they are off, since the process that scores has its own. The
library takes numbers for equal that differ by less than its precision, and does not know the imaginary unit
of a formula: numbers and functions are compared here at points, lists and matrices by their elements. It
decides the rest.
"""

import logging
import re
from functools import lru_cache
from itertools import product
from typing import Any

from latex2sympy2_extended.latex2sympy2 import latex2sympy
from latex2sympy2_extended.math_normalization import NormalizationConfig, normalize_latex
from math_verify.grader import verify
from sympy import (
    And,
    Eq,
    Expr,
    FiniteSet,
    Float,
    I,
    Integral,
    Intersection,
    Interval,
    Limit,
    MatrixBase,
    Or,
    Product,
    Rational,
    Set,
    Sum,
    Symbol,
    Tuple,
    UnevaluatedExpr,
    Union,
    im,
)
from sympy.core.relational import Relational

from services.results.scoring.expressions.written_form import WrittenExpression

# Their warnings are that bounds of time are off.
logging.getLogger("math_verify").setLevel(logging.ERROR)

# Units are left out before: the library takes the last letters of "3x + 2t" for one.
_NORMALIZATION = NormalizationConfig(
    basic_latex=True, units=False, malformed_operators=True, nits=True, boxed="none"
)
_DIGITS = 40
# Of two exact numbers this is a rounding error; a decimal is exact in its first six places and digits.
_EXACT = 1e-25
_ROUNDED = 5e-7
_ROUNDED_OF_SIZE = 5e-6
_FEWEST_POINTS = 2
_POINTS = ((7, 5), (-11, 3), (13, 4), (-2, 9), (29, 6), (17, 10), (-31, 7), (3, 8))
_INEQUALITY = re.compile(r"[<>]|\\(?:le|ge|lt|gt|ne)(?![a-z])")
_CONNECTIVE = re.compile(r",?\s*(?:\\text\s*\{\s*,?\s*)?(?<![A-Za-z])(and|or)(?![A-Za-z])\s*\}?")


def can_be_read(expression: WrittenExpression) -> bool:
    return any(_parsed(reading) is not None for reading in expression.readings)


def are_equal(target: WrittenExpression, answer: WrittenExpression) -> bool:
    if target.text == answer.text:
        return target.unit == answer.unit or not (target.unit and answer.unit)
    if (target.unit and answer.unit and target.unit != answer.unit) or {target.brackets, answer.brackets} == {
        "set",
        "tuple",
    }:
        return False
    readings = [target.readings, answer.readings]
    if target.is_in_base and answer.is_in_base:
        readings = [target.readings[:1], answer.readings[:1]]
    pairs = product(*[[*map(_parsed, each)] for each in readings])
    return any(one is not None and other is not None and _equal(one, other) for one, other in pairs)


# Of one sample many answers may be scored.
@lru_cache(maxsize=256)
def _parsed(latex: str) -> Any | None:
    """None where the parser does not know the notation."""
    joint = _CONNECTIVE.search(latex)
    if joint and _INEQUALITY.search(latex):
        parts = [_region(_parsed(part)) for part in _CONNECTIVE.split(latex)[::2]]
        if None in parts:
            return None
        return (Union if joint[1] == "or" else Intersection)(*parts)
    try:
        parsed = latex2sympy(normalize_latex(latex, _NORMALIZATION), is_real=True, normalization_config=None)
    except Exception:  # noqa: BLE001  # the parser raises this class itself
        return None
    return parsed


def _region(relation: Any) -> Set | None:
    """The numbers for which a relation of one variable holds."""
    if isinstance(relation, Set):
        return relation
    try:
        return relation.as_set() if len(relation.free_symbols) == 1 else None
    except (AttributeError, NotImplementedError, TypeError, ValueError):
        return None


def _equal(target: Any, answer: Any) -> bool:
    target, answer = _without_names(target, answer)
    if isinstance(target, MatrixBase) and isinstance(answer, MatrixBase):
        return target.shape == answer.shape and all(map(_equal, target, answer))
    if isinstance(target, Interval) and isinstance(answer, Interval):
        is_open = (target.left_open, target.right_open) == (answer.left_open, answer.right_open)
        return is_open and _equal(target.start, answer.start) and _equal(target.end, answer.end)
    if isinstance(target, Tuple) and isinstance(answer, Tuple):
        return len(target) == len(answer) and all(map(_equal, target, answer))
    if isinstance(target, FiniteSet) and isinstance(answer, FiniteSet):
        return _same_elements(list(target), list(answer))
    if isinstance(target, FiniteSet) or isinstance(answer, FiniteSet):
        elements, others = _in_order(target), _in_order(answer)
        if elements is not None and others is not None:
            return len(elements) == len(others) and all(map(_equal, elements, others))
    if isinstance(target, Expr) and isinstance(answer, Expr):
        found = _equal_at_points(target, answer)
        if found is not None:
            return found
    is_list = any(isinstance(one, FiniteSet | Tuple) for one in (target, answer))
    if is_list and any(isinstance(one, Relational | And) for one in (target, answer)):
        return _equal_regions(target, answer)
    return _equal_by_library(target, answer) or _equal_regions(target, answer)


def _without_names(target: Any, answer: Any) -> tuple[Any, Any]:
    """`x = 5` and 5, as both sides mean the value; `x = 5` and `y = 5` keep their names."""
    if isinstance(target, Eq) and isinstance(answer, Eq):
        is_named = target.lhs == answer.lhs and target.lhs.is_Symbol
        return (target.rhs, answer.rhs) if is_named else (target, answer)
    if isinstance(target, Eq) and target.lhs.is_Symbol and not isinstance(answer, Relational | And):
        return target.rhs, answer
    if isinstance(answer, Eq) and not isinstance(target, Relational | And):
        return target, answer.rhs
    return target, answer


def _in_order(value: Any) -> list[Any] | None:
    """The elements as they are written: `1, 2` is a set to the parser, and `(1, 2)` an interval."""
    if isinstance(value, Interval):
        return [value.start, value.end] if value.is_open else None
    if isinstance(value, Tuple):
        return [*value]
    return [*getattr(value, "_unsorted_args", value.args)] if isinstance(value, FiniteSet) else None


def _same_elements(target: list[Any], answer: list[Any]) -> bool:
    if len(target) != len(answer):
        return False
    left = answer
    for one in target:
        place = next((place for place, other in enumerate(left) if _equal(one, other)), None)
        if place is None:
            return False
        left = left[:place] + left[place + 1 :]
    return True


def _equal_at_points(target: Expr, answer: Expr) -> bool | None:
    """None where points do not show it: words, integrals, per cent, infinities."""
    if any(isinstance(one, Symbol) and len(one.name) > 1 for one in (target, answer)) or any(
        one.has(UnevaluatedExpr, Integral, Sum, Product, Limit) for one in (target, answer)
    ):
        return None
    has_decimals = target.has(Float) or answer.has(Float)
    symbols = sorted(target.free_symbols | answer.free_symbols, key=str)
    is_complex = any(symbol.name == "i" for symbol in symbols)
    seen = 0
    for at in range(len(_POINTS) if symbols else 1):
        one, other = (_value(each, _point(at, symbols)) for each in (target, answer))
        if one is None or other is None:
            return None
        if not is_complex and im(one) and im(other):
            # Outside of the domain of both.
            continue
        if not _is_near(one, other, has_decimals=has_decimals):
            return False
        seen += 1
    return True if seen >= (_FEWEST_POINTS if symbols else 1) else None


def _point(at: int, symbols: list[Any]) -> dict[Any, Any]:
    """Values of all symbols; the letter i is the imaginary unit."""
    return {
        symbol: I if symbol.name == "i" else Rational(*_POINTS[(at + 3 * place) % len(_POINTS)]) + place
        for place, symbol in enumerate(symbols)
    }


def _value(expression: Expr, point: dict[Any, Any]) -> Any | None:
    number = expression.subs(point).evalf(_DIGITS)
    return number if number.is_number and number.is_finite and number.is_comparable is not None else None


def _is_near(one: Any, other: Any, *, has_decimals: bool) -> bool:
    apart, size = abs(one - other), max(abs(one), abs(other))
    if has_decimals:
        return bool(apart <= _ROUNDED and apart <= _ROUNDED_OF_SIZE * size)
    return bool(apart <= _EXACT * size)


def _equal_by_library(target: Any, answer: Any) -> bool:
    return bool(
        verify([target], [answer], timeout_seconds=None, allow_set_relation_comp=True, raise_on_error=True)
    )


def _equal_regions(target: Any, answer: Any) -> bool:
    """Inequalities of one variable that are written in two ways."""
    are_relations = [isinstance(one, Relational | And | Or) for one in (target, answer)]
    if not any(are_relations) or (all(are_relations) and target.free_symbols != answer.free_symbols):
        return False
    one, other = _region(target), _region(answer)
    return one is not None and one == other
