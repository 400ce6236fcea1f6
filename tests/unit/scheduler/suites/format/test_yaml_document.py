"""YAML as suites have it: values with their lines, and texts that would break a reader are refused."""

import pytest

from services.scheduler.suites.format.yaml_document import MAX_DEPTH, FunctionName, InvalidYaml, read_yaml


def value(text: str) -> object:
    document = read_yaml(text.encode())
    assert not document.faults
    return document.root.value()


def faults(text: str) -> list[tuple[str, int, str]]:
    found = read_yaml(text.encode()).faults
    return [(".".join(str(part) for part in one.path), one.line, one.problem) for one in found]


def refusal(text: str) -> InvalidYaml:
    with pytest.raises(InvalidYaml) as refused:
        read_yaml(text.encode())
    return refused.value


def test_scalars_are_what_yaml_says_and_keys_are_texts() -> None:
    text = 'a: 1\nb: 1.5\nc: yes\nd: ~\ne: "1"\nyes: 0x10\n7: 2024-01-01\n'
    assert value(text) == {"a": 1, "b": 1.5, "c": True, "d": None, "e": "1", "yes": 16, "7": "2024-01-01"}


def test_values_know_their_lines() -> None:
    root = read_yaml(b"a: 1\nb:\n  - x\n  - {c:\n      2}\n").root
    second = root.child("b").child(1)  # type: ignore[union-attr]  # they are there
    assert root.child("b").line == 2  # type: ignore[union-attr]  # they are there
    assert second.line == 4  # type: ignore[union-attr]  # they are there
    assert second.child("c").line == 4  # type: ignore[union-attr]  # they are there
    assert root.child("nothing") is None
    assert second.child(0) is None  # type: ignore[union-attr]  # they are there


def test_anchors_and_merge_keys_work_and_the_own_key_wins() -> None:
    text = "base: &base {a: 1, b: 1}\nother: &other {b: 2, c: 2}\nall: {<<: [*base, *other], a: 3}\n"
    merged = value(text)
    assert isinstance(merged, dict)
    assert merged["all"] == {"a": 3, "b": 1, "c": 2}


def test_a_key_that_is_there_twice_is_reported_with_the_line_of_the_second() -> None:
    assert faults("a: {b: 1}\nc: 1\na: 2\n") == [("a", 3, "this key is there twice")]


def test_a_function_is_a_name_and_no_text() -> None:
    named = value("a: !function utils.score\nb: '!function utils.score'\n")
    assert isinstance(named, dict)
    assert (named["a"], type(named["a"])) == ("utils.score", FunctionName)
    assert type(named["b"]) is str


def test_unknown_tags_are_reported_where_they_are() -> None:
    assert faults("b: !mine [1]\nc: !env x\n") == [
        ("b", 1, "the tag !mine means nothing in a suite"),
        ("c", 2, "the tag !env means nothing in a suite"),
    ]


@pytest.mark.parametrize("number", [".nan", ".inf", "-.inf"])
def test_numbers_that_are_none_are_reported(number: str) -> None:
    assert faults(f"a: {number}") == [("a", 1, f"{number} is not a finite number")]


@pytest.mark.parametrize("number", ["9" * 5000, "1:" + ":".join(["59"] * 5000), "!!int x", '!!int ""'])
def test_numbers_that_cannot_be_read_are_reported(number: str) -> None:
    [(key, _, problem)] = faults(f"a: {number}")
    assert key == "a"
    assert problem.endswith("is not of the type int")


def test_a_bomb_of_aliases_is_refused_with_its_line() -> None:
    levels = [f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 10)}]" for n in range(1, 9)]
    refused = refusal("l0: &l0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n" + "\n".join(levels))
    assert "aliases counted as often as they are used" in refused.problem
    assert refused.line == 6


@pytest.mark.parametrize("text", ["[" * 200_000, "{a: " * 100_000, "- " * 100_000])
def test_what_is_nested_without_end_is_refused(text: str) -> None:
    assert refusal(text).problem == f"nested deeper than {MAX_DEPTH} levels"


@pytest.mark.parametrize(
    ("text", "problem", "line"),
    [
        ("", "the file is empty", 0),
        ("# only words\n", "the file is empty", 0),
        ("a: &x [*x]", "the alias *x names nothing that comes before it", 1),
        ("a: 1\n---\nb: 1\n", "one document per file", 2),
        ("a: 1\n? [b]\n: 1\n", "a key must be a plain text", 2),
        ("a: 1\n<<: 3\n", "a merge key (<<) takes a mapping or a list of mappings", 2),
        ("a: [1\nb: 2", "not valid YAML: did not find expected ',' or ']'", 2),
        ('a: "\x00"', "not valid YAML: ", 0),
    ],
)
def test_what_is_no_yaml_is_reported_with_its_line(text: str, problem: str, line: int) -> None:
    refused = refusal(text)
    assert refused.problem.startswith(problem)
    assert refused.line == line


def test_bytes_that_are_no_utf_8_are_reported_with_their_line() -> None:
    with pytest.raises(InvalidYaml, match="not valid UTF-8") as refused:
        read_yaml(b"a: 1\nb: \xff\n")
    assert refused.value.line == 2
