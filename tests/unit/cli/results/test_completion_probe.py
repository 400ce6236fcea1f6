"""The suite of a completion probe: halves of rows, places in turn, paraphrases that are none left out."""

import json
from pathlib import Path

import pytest

from proctor.cli.results.contamination.probe import (
    MIN_WORDS,
    HalvedRow,
    halved,
    paraphrase,
    prepare_folder,
    probe_lines,
    write_probe,
)
from proctor.cli.results.contamination.rows import Row
from proctor.cli.suites.files import suite_document
from proctor.client.errors import Refused

TEXT = "One two three,\n four five six\tseven eight nine ten eleven twelve."


def test_rows_are_halved_at_the_middle_word_and_lose_no_character_but_white_space() -> None:
    [row] = halved([Row("a", f"  {TEXT}\n", {}), Row("b", "too short", {})])
    assert (row.name, row.begin, row.own) == (
        "a",
        "One two three,\n four five six",
        "seven eight nine ten eleven twelve.",
    )
    assert halved([Row("a", "w " * (MIN_WORDS - 1), {})]) == []
    assert row.begin in row.request["prompt"]
    assert row.own in row.request["prompt"]
    assert row.request["id"] == "a"


def test_own_words_take_both_places_in_turn() -> None:
    rows = [HalvedRow(str(number), "begin", f"own {number}") for number in range(6)]
    said = {"0": " other ", "1": "OWN, 1!", "2": "", "4": "another", "5": "last"}
    lines = [*probe_lines(rows, said)]
    # The second says the same words, the third nothing, and the fourth failed.
    assert [(line["row"], line["place"], line["paraphrase"]) for line in lines] == [
        ("0", 0, "other"),
        ("4", 1, "another"),
        ("5", 0, "last"),
    ]


def test_probe_is_a_suite_with_its_rows(tmp_path: Path) -> None:
    lines = [*probe_lines([HalvedRow("a", "begin", "öwn")], {"a": "other"})]
    suite = write_probe(tmp_path / "new" / "folder", "musr_probe", lines)
    sent = suite_document(suite)
    assert sent.file_name == "musr_probe.yaml"
    assert [json.loads(line) for line in sent.files["musr_probe.jsonl"].splitlines()] == lines
    (tmp_path / "file").write_text("")
    with pytest.raises(Refused, match="cannot be written"):
        write_probe(tmp_path / "file", "probe", lines)


def test_files_of_an_earlier_probe_are_kept(tmp_path: Path) -> None:
    folder = tmp_path / "new"
    prepare_folder(folder, "probe")
    suite = write_probe(folder, "probe", [*probe_lines([HalvedRow("a", "begin", "own")], {"a": "other"})])
    for file in (suite, folder / "probe.jsonl"):
        with pytest.raises(Refused, match=f"{file.name} exists"):
            prepare_folder(folder, "probe")
        file.unlink()
    prepare_folder(folder, "probe")
    with pytest.raises(Refused, match="cannot be written"):
        prepare_folder(Path("/dev/null"), "probe")


@pytest.mark.parametrize(
    ("text", "reason", "said"),
    [
        (" other words\n", "stop", "other words"),
        ("<think>The second part is about cats.</think>\n\nother words", "stop", "other words"),
        ("other wo", "length", ""),
        ("<think>The second part", "length", ""),
    ],
)
def test_a_paraphrase_is_a_whole_answer_without_reasoning(text: str, reason: str, said: str) -> None:
    assert paraphrase(text, reason) == said
