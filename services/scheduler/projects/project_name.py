"""Names of projects: what they may be, and when two of them look the same.

People choose a name from a list and see no code points. Unicode has thousands of letters that look like
others: those of mathematics and of full width are compatibility forms (NFKC), and what is left is in scripts
beside Latin, of which only those in common use are taken (UTS 31, recommended scripts).
"""

import re
import unicodedata

from proctor.values.generation import Problem
from proctor.values.names.project import MAX_PROJECT_CHARACTERS
from services.common.requests.request_fields import hidden_problem

# How the names of letters begin.
_SCRIPTS = re.compile(
    r"(ARABIC|ARMENIAN|BENGALI|BOPOMOFO|CJK|CYRILLIC|DEVANAGARI|ETHIOPIC|GEORGIAN|GREEK|GUJARATI|GURMUKHI|"
    r"HANGUL|HEBREW|HIRAGANA|KANNADA|KATAKANA|KHMER|LAO|LATIN|MALAYALAM|MYANMAR|ORIYA|SINHALA|TAMIL|TELUGU|THAI|"
    r"TIBETAN|THAANA|IDEOGRAPHIC ITERATION|IDEOGRAPHIC CLOSING)\b"
)
# Phonetic letters are Latin too, and look like others.
_PHONETIC = (range(0x0250, 0x02B0), range(0x1D00, 0x1DC0), range(0xA720, 0xA800), range(0xAB30, 0xAB70))
# Those of alphabets that people write: Azerbaijani, Hausa, Ewe, Akan, Dinka.
_WRITTEN = frozenset("əɓɗɖɛɣɩɔʋɨʉɲ")
# Of Hawaiian, Uzbek and Ukrainian; they look like an apostrophe.
_APOSTROPHES = frozenset("ʻʼ")
# Printable, and nothing is seen of them: joiners, fillers, variation selectors, a pattern without dots.
_UNSEEN = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0") | {
    chr(code) for code in (*range(0x180B, 0x1810), *range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0))
}
# Letters of Cyrillic, Greek and Armenian that look like one of Latin (UTS 39, confusables).
_CAPITALS = str.maketrans(
    "АВСЕНІЈКМОРЅТХУҮԚԜӀΑΒΕΖΗΙΚΜΝΟΡΤΥΧϹͿՕՍՏ",
    "ABCEHIJKMOPSTXYYQWIABEZHIKMNOPTYXCJOUS",
)
_SMALL = str.maketrans(
    "асԁеһіјӏорԛѕуүхԝѵәανορικυγχτϲϳօսհոզցıȷǝɛɣɩʋ",
    "acdehijlopqsyyxwvəavopikuyxtcjouhnqgijəεyiu",
)
_MARKS = str.maketrans("‘’ʻʼ′−˗⁄∕", "'''''--//")
# Of Chinese, and letters of Katakana.
_STROKES = str.maketrans("力工二口夕卜八", "カエニロタトハ")


def name_problem(name: str) -> Problem | None:
    if not (0 < len(name) <= MAX_PROJECT_CHARACTERS and name.isprintable() and name == name.strip()):
        shape = f"1 to {MAX_PROJECT_CHARACTERS} printable characters without blanks around them"
        return Problem("name", f"name is {name[:MAX_PROJECT_CHARACTERS]!a}, but must be {shape}.")
    # One of digits would read as the number of another project, also behind a minus.
    if name.removeprefix("-").isdigit():
        return Problem("name", "name has digits only, but a number names a project already.")
    if strange := next((each for each in name if _is_strange(each)), ""):
        called = unicodedata.name(strange, f"U+{ord(strange):04X}")
        return Problem("name", f"name has {called}, which is not seen or looks like another. Leave it out.")
    return hidden_problem("name", name)


def look_of(name: str) -> str:
    """The same for two names that people take for one: by case, width, script, dashes and blanks."""
    if name.isascii():
        return " ".join(name.casefold().split())
    # A letter with a mark is two, so that "ӧ" of Cyrillic is "ö".
    plain = unicodedata.normalize("NFKD", name).translate(_CAPITALS).casefold().translate(_SMALL)
    seen = (_plain(each) for each in plain.translate({**_MARKS, **_STROKES}) if each not in _UNSEEN)
    return " ".join(unicodedata.normalize("NFKC", "".join(seen)).split())


def _is_strange(letter: str) -> bool:
    if letter in _UNSEEN:
        return True
    # Those of mathematics and of full width are compared by what they stand for.
    letters = [
        each
        for each in unicodedata.normalize("NFKC", letter)
        if each.isalpha() and not each.isascii() and each not in _WRITTEN | _APOSTROPHES
    ]
    return any(
        not _SCRIPTS.match(unicodedata.name(each, "")) or any(ord(each) in block for block in _PHONETIC)
        for each in letters
    )


def _plain(character: str) -> str:
    """Digits of other scripts count as much, and all dashes are one."""
    if character.isdecimal():
        return str(unicodedata.decimal(character))
    return "-" if unicodedata.category(character) == "Pd" else character
