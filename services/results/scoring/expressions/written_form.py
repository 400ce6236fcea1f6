"""Expressions in the one form that the library parses: LaTeX without layout, units, and marks of money.

The library drops what it does not know of units, bases and repeating decimals, so these are read here.
"""

import re
from dataclasses import dataclass
from fractions import Fraction

from services.results.scoring.expressions.units import SCALES, known_unit, without_unit

# Words that are no prose.
_FUNCTIONS = frozenset(
    {"sin", "cos", "tan", "cot", "sec", "csc", "arcsin", "arccos", "arctan", "sinh", "cosh", "tanh", "log"}
    | {"ln", "exp", "sqrt", "pi", "and", "or", "inf", "infinity", "min", "max", "gcd", "lcm", "mod", "theta"}
)
# Words of two letters that are no products of variables.
_SHORT_WORDS = frozenset(
    {
        "is",
        "of",
        "to",
        "no",
        "it",
        "in",
        "on",
        "at",
        "by",
        "we",
        "so",
        "be",
        "an",
        "as",
        "if",
        "my",
        "he",
        "do",
    }
)
_WORD = re.compile(r"(?<![A-Za-z\\])[^\W\d_]{2,}")
_COMMANDS = re.compile(
    r"\\(?:text|textbf|textit|textrm|mathrm|mathbf|mathit|mathbb|mbox|operatorname|begin|end)\s*\{[^{}]*\}|\\[A-Za-z]+"
)
_ONE_SIGN = {
    "−": "-",
    "–": "-",
    "\u2011": "-",
    "×": r"\times ",
    "·": r"\cdot ",
    "⋅": r"\cdot ",
    "÷": r"\div ",
    "π": r"\pi ",
    "θ": r"\theta ",
    "∞": r"\infty ",
    "≤": r"\le ",
    "≥": r"\ge ",
    "≠": r"\ne ",
    "±": r"\pm ",
    "∪": r"\cup ",
    "∩": r"\cap ",
    "∈": r"\in ",
    "∅": r"\emptyset ",
    "°": r"^\circ ",
    "²": "^2",
    "³": "^3",
    "½": r"\frac{1}{2}",
    "¼": r"\frac{1}{4}",
    "¾": r"\frac{3}{4}",
    "ℝ": r"\mathbb{R}",
    "，": ",",
    "（": "(",
    "）": ")",
    "…": r"\ldots ",
}
_SIGNS = str.maketrans(_ONE_SIGN)
_SET_BUILDER = (
    r"^\s*\\\{\s*[A-Za-z]\s*(?:\\in\s*\\mathbb\s*\{?R\}?\s*)?"
    r"(?:\\mid|\\vert|\||:|\\colon)\s*([^{}]*)\\\}\s*$"
)
_REPLACED = [
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (r"^\s*(?:\$\$?|\\\(|\\\[)|(?:\$\$?|\\\)|\\\])\s*$", ""),
        (r"\\(?:displaystyle|textstyle|limits|nolimits|,\!|!)", ""),
        (r"\\\$|\$|[€£¥]", ""),
        (r"\\[,;:>]|\\ |~|\\q?quad\b", " "),
        (r"\\(?:big|Big|bigg|Bigg)[lrm]?(?![a-z])", ""),
        (r"\\langle", "("),
        (r"\\rangle", ")"),
        (r"\\(?:leqslant|leq|le)(?![a-z])", r"\\le "),
        (r"\\(?:geqslant|geq|ge)(?![a-z])", r"\\ge "),
        (r"<=", r"\\le "),
        (r">=", r"\\ge "),
        (r"!=", r"\\ne "),
        (r"\\(?:mathrm|text|operatorname)\s*\{([eid])\}", r" \1 "),
        (r"\\(?:lor|vee)(?![a-z])", r"\\text{ or }"),
        (r"\\(?:land|wedge)(?![a-z])", r"\\text{ and }"),
        (r"\\(?:ldots|cdots|dots|dotsc)(?![a-z])", r"\\text{dots}"),
        (r"\.\.\.", r"\\text{dots}"),
        (r"√\s*\(([^()]*)\)|(?:\\|(?<![A-Za-z\\]))sqrt\s*\(([^()]*)\)", r"\\sqrt{\1\2}"),
        (r"√\s*(\w+)|(?<![A-Za-z\\])sqrt\s*(\d+)", r"\\sqrt{\1\2}"),
        (r"(?<![A-Za-z\\])(pi|theta|infty)(?![A-Za-z])", r"\\\1 "),
        (r"(?<=[)\]])\s*U\s*(?=[(\[])", r"\\cup "),
        (r"(?<!\\)%", r"\\%"),
        (r"\*\*", "^"),
        (r"(?<=[\w)\]}])\s*\*\s*(?=[\w(\\])", r"\\cdot "),
        (r"\^\s*\{\s*\\circ\s*\}|\^\s*\\circ|\\degree|\\textdegree", r"^\\circ "),
        # The set of the x for which something holds.
        (_SET_BUILDER, r"\1"),
        # Neither a name nor "x is in" is a part of a set.
        (r"^\s*[A-Za-z]\s*\\in(?![a-z])\s*(?=[\\(\[])", ""),
    )
]
_SCIENTIFIC = re.compile(r"(-?\d+(?:\.\d+)?)[eE]([+-]?\d+)")
_GROUPS = re.compile(r"(?<![\d.,])\d{1,3}(?:,\d{3})+(?![\d,])")
_REPEATING = re.compile(r"(\d*)\.(\d*)\\(?:overline|bar|dot)\s*\{?(\d+)\}?")
_IN_BASE = re.compile(r"(?P<digits>[0-9A-Fa-f]+)_(?:\{(?:\\text\{)?(?P<base>\d\d?)\}?\}|(?P<one>\d))")
_CLOCK = re.compile(r"\d{1,2}:[0-5]\d(?::[0-5]\d)?")
_DEGREE = r"^\circ "
_RADIANS = r"\cdot\frac{\pi}{180}"
# Words that are an answer by themselves.
_NAME = re.compile(r"[^\W\d_]{3,}(?:[ '-][^\W\d_]+)*")


@dataclass(frozen=True, slots=True)
class WrittenExpression:
    """`readings`: what it may mean, as LaTeX: 30° is 30, and π/6. `text`: compared where none can be parsed.

    `unit` is empty where none is known. `brackets`: "set", "tuple", or none around the whole.
    `is_in_base`: a number in another base; its digits alone mean the same, unless another base stands there.
    """

    text: str
    readings: tuple[str, ...]
    unit: str = ""
    brackets: str = ""
    is_in_base: bool = False


def is_expression(text: str) -> bool:
    """Whether a text outside of LaTeX's dollars is an expression, maybe with a unit, and no prose."""
    latex, unit = without_unit(text.translate(_SIGNS))
    if not latex.strip() or (unit and not latex.strip()[-1:].isalnum() and latex.strip()[-1:] not in ")}]%"):
        return False
    bare = _COMMANDS.sub(" ", latex)
    words = [word.lower() for word in _WORD.findall(bare)]
    are_symbols = all(
        word in _FUNCTIONS or (len(word) == 2 and word.isascii() and word not in _SHORT_WORDS)
        for word in words
    )
    return are_symbols and bool(re.search(r"[\d\\]|^\W*[A-Za-z]\W*$|[-+*/^=<>(]", latex)) and "?" not in latex


def written_expression(text: str) -> WrittenExpression:
    latex = text.strip().rstrip(".,;").translate(_SIGNS)
    if _NAME.fullmatch(latex) and not is_expression(latex):
        latex = rf"\text{{{latex}}}"
    for pattern, replacement in _REPLACED:
        latex = pattern.sub(replacement, latex)
    latex, unit = without_unit(latex.strip().rstrip(".,;").strip())
    if _SCIENTIFIC.fullmatch(latex):
        latex = _SCIENTIFIC.sub(r"\1\\times 10^{\2}", latex)
    latex = _REPEATING.sub(_as_fraction, latex)
    if not re.search(r"[(\[{].*,.*[)\]}]", latex.replace("{,}", "")):
        latex = _GROUPS.sub(lambda found: found[0].replace(",", ""), latex.replace("{,}", ","))
    if unit in SCALES:
        latex, unit = rf"({latex})\cdot {SCALES[unit]}", ""
    plain = "".join(latex.split()).replace("\\left", "").replace("\\right", "")
    in_base = _IN_BASE.fullmatch(latex)
    readings = _in_base(in_base) if in_base else _readings(latex)
    unit = known_unit(unit)
    return WrittenExpression(plain.casefold(), readings, unit, _brackets(plain), is_in_base=bool(in_base))


def _in_base(found: re.Match[str]) -> tuple[str, ...]:
    """The value, and the digits; neither where the base has no such digits."""
    digits = found["digits"]
    try:
        value = str(int(digits, int(found["base"] or found["one"])))
    except ValueError:
        return ()
    return (value, digits) if digits.isdecimal() else (value,)


def _readings(latex: str) -> tuple[str, ...]:
    if _CLOCK.fullmatch(latex):
        # No quotient: 12:30 is not 6:15.
        return (rf"\begin{{pmatrix}}{latex.replace(':', '&')}\end{{pmatrix}}",)
    if _DEGREE.strip() in latex:
        return latex.replace(_DEGREE.strip(), " "), latex.replace(_DEGREE.strip(), _RADIANS)
    return (latex,)


def _as_fraction(found: re.Match[str]) -> str:
    whole, start, period = found[1] or "0", found[2], found[3]
    value = Fraction(
        int(whole + start + period) - int(whole + start), (10 ** len(period) - 1) * 10 ** len(start)
    )
    return rf"(\frac{{{value.numerator}}}{{{value.denominator}}})"


def _brackets(plain: str) -> str:
    if "," not in plain:
        return ""
    if plain.startswith(r"\{") and plain.endswith(r"\}"):
        return "set"
    is_around = plain.startswith(("(", "[")) and plain.endswith((")", "]"))
    return "tuple" if is_around and not re.search(r"\\c[ua]p|\)[,;]|\][,;]", plain) else ""
