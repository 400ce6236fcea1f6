"""Patterns are those of `re`, and are measured as they are written out: groups and repeats multiply."""

import re

import pytest

from services.common.patterns import check_pattern_size, compile_pattern


@pytest.mark.parametrize(
    "pattern",
    [
        "x{9000}",
        "(?:[abc]{90}){100}",
        "[^]{9999}]{100}",
        r"\{9999}\x41{100}",
        "(?P<word>\\w+) (?P=word){100}",
        "(?#x{99999})x",
        "(?x) x{10}  # y{99999}\n",
        "a{} {,5} {b}",
        "(a)(?(1)b|c){100}",
        "(?<=a)b*+(?>c)",
    ],
)
def test_a_pattern_of_usual_size_is_accepted(pattern: str) -> None:
    check_pattern_size(pattern.replace("*+", "*").replace("(?>", "(?:"))


@pytest.mark.parametrize(
    ("pattern", "parts"),
    [
        ("x{4000000000}", "4,000,000,001"),
        ("(?:x{1000}){1000}", "1,001,001"),
        ("(x{100}){100}", "10,201"),
        ("(?i:x{101}){100}", "10,301"),
        ("((a|bc){10}){500,}", "26,001"),
        (r"(?:\d{3}[.,]?){5000}?", "30,001"),
    ],
)
def test_a_pattern_that_repeats_too_much_is_refused_with_its_size(pattern: str, parts: str) -> None:
    with pytest.raises(re.error, match=f"written out it has {parts} parts, and may have 10,000"):
        check_pattern_size(pattern)


@pytest.mark.parametrize("pattern", ["(", "a**", "[a", "(?P<n>a", "(?<=a*)b", "*"])
def test_what_re_does_not_read_is_refused(pattern: str) -> None:
    with pytest.raises(re.error):
        check_pattern_size(pattern)


@pytest.mark.parametrize("pattern", ["{e}", "x{e", "a{s<=}", "(?:a){e<=1,i<=2", r"\N{DIGIT ONE}{2}", "[{]e}"])
def test_a_brace_that_does_not_repeat_is_a_brace(pattern: str) -> None:
    plain, timed = compile_pattern(pattern)
    for text in ("{e}", "x{e", "a{s<=}", "a{e<=1,i<=2", "11", "ab"):
        assert timed.findall(text) == plain.findall(text)


def test_what_is_nested_too_deeply_is_refused_as_such() -> None:
    with pytest.raises(re.error, match="nested too deeply"):
        compile_pattern("(?:" * 3000 + ")" * 3000)
