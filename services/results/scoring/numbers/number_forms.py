"""One form of the many in which people and LaTeX write numbers, so that few patterns read them.

Digits of all scripts become those of ASCII, LaTeX's commands become signs, and marks of emphasis go.
"""

import re
import sys
import unicodedata

from services.results.scoring.numbers.points_and_commas import COMMA, POINT, in_points

# A sign for what LaTeX computes with: the number beside it is a part of an expression.
_COMMANDS = {
    "times": "×",
    "cdot": "·",
    "div": "÷",
    "pm": "±",
    "mp": "±",
    "pi": "π",
    "sqrt": "√",
    "infty": "∞",
    "le": "≤",
    "leq": "≤",
    "ge": "≥",
    "geq": "≥",
    "lt": "<",
    "gt": ">",
    "ne": "≠",
    "neq": "≠",
    "approx": "≈",
    "sim": "≈",
    "cup": "∪",
    "degree": "°",
    "circ": "°",
    "ldots": "…",
    "dots": "…",
    "cdots": "...",
}
_SPACING = frozenset(
    {"quad", "qquad", "left", "right", "displaystyle", "bf", "rm", "it", "big", "Big", "large", "Large"}
)
_STYLED = re.compile(r"\\(?:text|mathrm|mathbf|textbf|textit|mathit|mathsf|mbox|operatorname)\s*\{([^{}]*)\}")
_FRACTION = re.compile(
    r"\\[dtc]?frac\s*(?:\{\s*([^{}]*?)\s*\}|(\d))\s*(?:\{\s*([^{}]*?)\s*\}|(\d))", re.IGNORECASE
)
_DEGREE = re.compile(r"\^\s*(?:\{\s*\\circ\s*\}|\\circ)")
_PLAIN_PART = re.compile(r"-?[\d.,]+")
_COMMAND = re.compile(r"\\([A-Za-z]+)")
_SPACES = re.compile(r"(?<=\d)(?:[\u00a0\u2009\u202f]|\\[,;: ]|\{,\})(?=\d{3}(?!\d))")
# "1 250" is one number where its last group is 000, and in other languages than English.
_PLAIN_SPACES = re.compile(r"(?<![\d.,])\d{1,3}(?: \d{3})+(?![\d])")
# The calculator of GSM8K's solutions: "6 * 7 = <<6*7=42>>42".
_CALCULATED = re.compile(r"<<[^<>\n]{1,200}>>")
_LATEX_SPACE = re.compile(r"\\[,;: ]|~")
_VULGAR_FRACTION = re.compile("[\u00bc-\u00be\u2150-\u215e]")
_RAISED = re.compile("[\u2070\u00b9\u00b2\u00b3\u2074-\u2079\u207a\u207b]+")
_MINUS = str.maketrans(dict.fromkeys("\u2010\u2011\u2212\ufe63\uff0d", "-"))
_ARROW = re.compile("[-=]{1,3}>")
_STARS = re.compile(r"\*{1,3}")
_OTHER_EMPHASIS = re.compile(r"(?<!\w)_+|_+(?!\w)|`+")
# It begins with one character of a few, so that it is searched fast.
_CURRENCY_WORD = re.compile(
    r"[RrTtFfKk](?<!\w.)(?:(?<=[Rr])[Ss]|(?<=[Tt])[Kk]|(?<=[Ff])[Rr]|(?<=[Kk])[ČčRr])\.?\s?(?=\d)"
)
_BARS = re.compile(r"\\left\s?\|\s{0,3}|\\lvert\s{0,3}|\s?\\right\s?\||\s?\\rvert\b|\\vert\b")
# An absolute value is computed; cells of a table have spaces around what they hold.
_ABSOLUTE = re.compile(
    r"(?<![|\w])\|{1,2}(?P<inside>(?=[^|\n]{0,60}[-+\u2212\u2013])[^\s|=][^|=\n]{0,60}"
    r"|[\w.]{1,20}(?=\|\s?[-+*/=])|\d[\d.]*(?=\|\W*\Z))\|{1,2}(?!\|)"
)
_ENVIRONMENT = re.compile(
    r"\\(?:begin|end)\s?\{(?:align|aligned|alignat|equation|gather|gathered|split|eqnarray|multline)\*?\}"
)
# What a function or a relation has as its value: its arguments are no values beside it.
_CALL = re.compile(
    r"(?<![\w.\\])(?:[A-Za-z]{1,10}(?:_\{?\w{1,4}\}?)?\([^()=\n]{1,60}\)|\\(?:log|ln"
    r"|lg)\s?(?:_\s?\{?\w{1,4}\}?)?\s?[({]?\w{1,8}[)}]?"
    r"|\\(?:gcd|lcm|min|max|det|Pr)\s?\([^()=\n]{1,60}\))(?=\s*[=≈])"
)
_COLOR = re.compile(r"\\(?:text)?color\s?\{[a-z]+\}")
# Of a formula that ends there; a currency behind a number says no more.
_CLOSING_DOLLAR = re.compile(r"\$(?<=[\d})].)(?=[\s.,;:)]|\Z)")
_TAG = re.compile(r"</?(?:b|i|u|em|strong|p|span|mark|code|br)\s?/?>", re.IGNORECASE)
_MAY_CALL = re.compile(r"\((?<=[A-Za-z}\d].)|\\[lgmdP]")
# "Minus" before a number in other languages, but neither "plus or minus" nor "at least" ("au moins").
_MINUS_ABROAD = re.compile(
    r"(?<!плюс.)минус\s?(?=\S?\d)|(?<![胜勝正])[负負](?=\d)|(?:零下|氷点下|マイナス)\s?(?=\d)"
    r"|(?<!플러스 )(?<!플러스)(?:영하|마이너스)\s?(?=\d)",
    re.IGNORECASE,
)
_MINUS_IN_LATIN = re.compile(
    r"\b(?<!\bau )(?<!\bdu )(?<!\bal )(?<!lo )(?<!\bo )(?<!\ba )(?<!ou )(?<!plus )"
    r"(?:menos|moins|meno)\s(?=\S?\d)",
    re.IGNORECASE,
)
_GROUPED_DIGITS = re.compile("(?<=[0-9])\uff0c(?=[0-9])")


def _digits() -> dict[int, str]:
    """Each decimal digit outside of ASCII, and the separators that are written between such digits."""
    found = {
        code: str(unicodedata.decimal(chr(code)))
        for code in range(128, sys.maxunicode + 1)
        if unicodedata.category(chr(code)) == "Nd"
    }
    return found | {
        0x2044: "/",
        0xFF1A: ":",
        0x066B: ".",
        0x066C: ",",
        0xFF0E: ".",
        0x066A: "%",
        0xFF05: "%",
        0xFF0B: "+",
        0xFF1D: "=",
    }


_DIGITS = _digits() | _MINUS
# What is written otherwise than in ASCII.
_IN_OTHER_FORM = re.compile(
    f"[{''.join(map(chr, _DIGITS))}\u00a0\u2009\u202f\uff0c"
    "\u00bc-\u00be\u2150-\u215e\u2070\u00b9\u00b2\u00b3\u2074-\u2079\u207a\u207b]"
)


def in_one_form(text: str) -> str:
    """Lines stay lines. What LaTeX sets as a fraction of two numbers is written 3/4, with its sign before."""
    if ("," in text and COMMA.search(text)) or ("." in text and POINT.search(text)):
        text = in_points(text)
    if not text.isascii() and _IN_OTHER_FORM.search(text):
        text = _SPACES.sub(",", text).translate(_DIGITS)
        text = _GROUPED_DIGITS.sub(",", text) if "\uff0c" in text else text
        text = _VULGAR_FRACTION.sub(_as_fraction, text)
        text = _RAISED.sub(_lowered, text)
    if not text.isascii():
        text = _MINUS_ABROAD.sub("-", text).replace("正负", "±")
    if "enos " in text or "oins " in text or "eno " in text:
        text = _MINUS_IN_LATIN.sub("-", text)
    text = _TAG.sub(" ", text) if "</" in text else text
    text = _CLOSING_DOLLAR.sub("", text) if "$" in text else text
    if "\\" in text and ("|" in text or "vert" in text):
        text = _BARS.sub("|", text)
    if "|" in text:
        text = _ABSOLUTE.sub(r"√(\g<inside>)", text)
    if "=" in text and ("(" in text or "\\" in text) and _MAY_CALL.search(text):
        text = _CALL.sub("f", text)
    if "\\" in text or "{" in text:
        text = _without_latex(text)
    if " 000" in text or not text.isascii():
        text = _PLAIN_SPACES.sub(_grouped, text)
    text = _CALCULATED.sub("", text) if "<<" in text else text
    text = _ARROW.sub("⇒", text) if ">" in text else text
    text = _STARS.sub(_unless_computed_with, text) if "*" in text else text
    text = _OTHER_EMPHASIS.sub("", text) if "_" in text or "`" in text else text
    return _CURRENCY_WORD.sub("$", text)


def _as_fraction(found: re.Match[str]) -> str:
    """A space keeps the whole number of a mixed one apart, and a sign stays beside its number."""
    is_signed = found.string[: found.start()].endswith("-")
    return ("" if is_signed else " ") + _decomposed(found[0]).replace("\u2044", "/")


def _grouped(found: re.Match[str]) -> str:
    is_one = found[0].endswith(" 000") or not found.string.isascii()
    return found[0].replace(" ", ",") if is_one else found[0]


def _unless_computed_with(found: re.Match[str]) -> str:
    """Bold and italics go, but neither `2**3`, `2 * 3`, `2 *3` nor `2 boxes * 3`."""
    before, after = (
        found.string[max(0, found.start() - 3) : found.start()],
        found.string[found.end() : found.end() + 1],
    )
    is_factor = before.rstrip()[-1:].isdigit() or before.rstrip().endswith((")", "]", "}"))
    if len(found[0]) == 1 and before.endswith(" ") and before.strip() and after == " ":
        # Neither a bullet nor emphasis.
        return found[0]
    if len(found[0]) == 1:
        is_end = after in ("", "\n", ",") or (
            after == "." and not found.string[found.end() + 1 :][:1].isdigit()
        )
        return found[0] if is_factor and not is_end else ""
    is_before_factor = after.isalnum() or (bool(after) and after in "({-")
    return found[0] if is_factor and is_before_factor and not before.endswith(" ") else ""


def _without_latex(text: str) -> str:
    text = _ENVIRONMENT.sub(" ", text).replace("&=", "=") if "\\begin" in text else text
    text = _COLOR.sub("", text) if "color" in text else text
    text = text.replace("\\!", "").replace("\\$", "$").replace("\\%", "%").replace("\\\\", "\n")
    text = _SPACES.sub(",", text)
    text = _LATEX_SPACE.sub(" ", _STYLED.sub(r" \1 ", _DEGREE.sub("°", text)))
    text = _FRACTION.sub(_divided, text)
    return (
        _COMMAND.sub(_sign, text)
        .replace("\\(", " ")
        .replace("\\)", " ")
        .replace("\\[", " ")
        .replace("\\]", " ")
    )


def _divided(found: re.Match[str]) -> str:
    top, bottom = (found[1] or found[2] or "").strip(), (found[3] or found[4] or "").strip()
    if _PLAIN_PART.fullmatch(top) and _PLAIN_PART.fullmatch(bottom) and not bottom.startswith("-"):
        # A space keeps the whole number of a mixed one apart: 1\frac{1}{2}.
        is_mixed = found.string[found.start() - 1 : found.start()].isdigit()
        return f"{' ' if is_mixed else ''}{top}/{bottom} "
    return f"({top})÷({bottom})"


def _sign(found: re.Match[str]) -> str:
    name = found[1]
    if name in _SPACING:
        return " "
    # Another command stands for a name: a variable or a function.
    return _COMMANDS.get(name, "π" if len(name) > 1 else name)


def _decomposed(text: str) -> str:
    return unicodedata.normalize("NFKC", text)


def _lowered(run: re.Match[str]) -> str:
    """A negative power in braces, so that its minus is no operation."""
    power = _decomposed(run[0]).replace("\u2212", "-")
    return f"^{{{power}}}" if power.startswith("-") else f"^{power}"
