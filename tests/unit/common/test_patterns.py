"""Patterns are those of `re`, and are measured as they are written out: groups and repeats multiply."""

import re

import pytest

from services.common.patterns import QUICK_STEPS, check_pattern_size, compile_pattern, quick_characters


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


@pytest.mark.parametrize(
    ("pattern", "repeats"),
    [
        ("yes", 0),
        ("[0-9]+", 0),
        (r"(-?[$0-9.,]{2,})|(-?[0-9]+)", 0),
        (r"The answer is (-?[0-9.,]+)", 0),
        (r"is (?P<key>\w+)\.", 1),
        ("(x+|y)", 1),
        ("(x+)?", 1),
        (r"^(.*?)\s*$", 2),
        ("x{2}y*+z", 2),
    ],
)
def test_a_text_is_quick_where_places_to_the_power_of_repeats_are_few(pattern: str, repeats: int) -> None:
    options = sum(pattern.count(option) for option in "|?") - pattern.count("(?") - pattern.count("*?")
    steps = len(pattern) * 2**options * (quick_characters(pattern) + 1) ** (repeats + 1)
    assert QUICK_STEPS / 5 < steps <= QUICK_STEPS


@pytest.mark.parametrize(
    "pattern",
    [
        "(a|ab)*c",
        "(?:a+)+",
        "(a+){2}",
        r"(a+)\1",
        "(?P<n>a)(?P=n)",
        "(?=a+)b",
        "(?<!a)b",
        "(?x)(a|a) *b",
        "(?>a)",
    ],
)
def test_no_text_is_quick_for_a_pattern_whose_steps_are_not_counted(pattern: str) -> None:
    assert quick_characters(pattern) == 0
