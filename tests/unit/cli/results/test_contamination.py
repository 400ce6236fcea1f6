"""Overlap of rows with a corpus and canaries, against counts by hand and statsmodels."""

import gzip
import json
import random
import tracemalloc
from pathlib import Path

import pytest
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

from proctor.cli.results.contamination.corpus import corpus_files, documents
from proctor.cli.results.contamination.overlap import RowGrams, Share, difference, find_canaries
from proctor.cli.results.contamination.rows import read_rows
from proctor.client.errors import Refused

ROW = "The quick brown fox jumps over the lazy dog, and then it sleeps until noon."
GUID = "26b5c67b-86ef-4c0e-9d0e-6d6f64656c73"


def shares(texts: list[str], *pieces: str, n: int = 5) -> list[float]:
    grams = RowGrams(texts, n)
    grams.read(pieces)
    return list(grams.shares())


def test_row_is_found_whatever_its_case_and_marks_and_wherever_pieces_end() -> None:
    corpus = f"Before. {ROW.upper().replace(',', ' --')} After."
    for at in range(len(corpus)):
        assert shares(
            [ROW, "Another row that nobody has ever written anywhere"], corpus[:at], corpus[at:]
        ) == [1, 0]


def test_share_counts_the_grams_that_the_corpus_has() -> None:
    words = [f"w{number}" for number in range(10)]
    # 6 of 5 words each; the corpus has the first 7 words, so 3 of them.
    assert shares([" ".join(words)], " ".join(words[:7])) == [0.5]
    assert shares([" ".join(words)], " ".join(words[:4])) == [0]
    # A document ends what is in it.
    grams = RowGrams([" ".join(words)], 5)
    grams.read([" ".join(words[:4])])
    grams.read([" ".join(words[4:8])])
    assert list(grams.shares()) == [0]


def test_short_row_is_looked_for_as_a_whole_and_one_without_words_never() -> None:
    assert shares(["Paris it is", "…", "it is"], "they say paris, it is lovely") == [1, 0, 1]


def test_grams_are_those_of_a_plain_search() -> None:
    drawn = random.Random(3)
    letters = "abc"
    texts = [" ".join(drawn.choice(letters) for _ in range(drawn.randint(1, 12))) for _ in range(50)]
    corpus = [drawn.choice(letters) for _ in range(60)]

    def plain(text: str, n: int) -> float:
        words = text.split()
        n = min(n, len(words))
        grams = {tuple(words[at : at + n]) for at in range(len(words) - n + 1)}
        has = {tuple(corpus[at : at + n]) for at in range(len(corpus) - n + 1)}
        return len(grams & has) / len(grams)

    assert shares(texts, " ".join(corpus)) == [plain(text, 5) for text in texts]


def test_canaries_are_found_across_pieces() -> None:
    text = f"BENCHMARK DATA. canary GUID {GUID} and more"
    for at in range(len(text)):
        assert find_canaries([text[:at], text[at:]], ["DATA. can"]) == {GUID, "DATA. can"}
    assert find_canaries([f"GUID {GUID}"], []) == frozenset()


@pytest.mark.parametrize(("found", "of"), [(0, 10), (3, 10), (10, 10), (1, 100_000)])
def test_interval_is_wilsons(found: int, of: int) -> None:
    assert Share(found, of).interval == pytest.approx(
        proportion_confint(found, of, method="wilson"), abs=1e-12
    )


def test_difference_of_scores_has_welchs_error() -> None:
    first, second = [1.0, 0.0, 1.0, 1.0], [0.0, 0.0, 1.0, 0.0, 1.0]
    found = difference(first, second)
    assert found
    error = (stats.sem(first) ** 2 + stats.sem(second) ** 2) ** 0.5
    assert found.mean == pytest.approx(0.35)
    assert found.high - found.mean == pytest.approx(stats.norm.ppf(0.975) * error)
    assert difference([1.0], second) is None


def test_corpus_has_lines_of_json_packed_files_and_any_bytes(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    line = json.dumps({"text": ROW, "more": [{"a": "b\nc"}], "n": 3}) + "\n"
    (tmp_path / "deep" / "a.jsonl").write_text(line + "not json\n\n")
    with gzip.open(tmp_path / "b.txt.gz", "wt") as packed:
        packed.write(ROW)
    (tmp_path / "c.bin").write_bytes(b"\xff\xfe" + ROW.encode())
    read = ["".join(document) for path in corpus_files(tmp_path) for document in documents(path)]
    assert read == [ROW, ROW, f"{ROW}\nb\nc", "not json\n"]
    (tmp_path / "d.gz").write_bytes(b"no gzip")
    with pytest.raises(Refused, match="cannot be read"):
        [list(document) for path in corpus_files(tmp_path) for document in documents(path)]
    with pytest.raises(Refused, match="is no folder"):
        list(corpus_files(tmp_path / "absent"))


def test_rows_are_lines_of_json_or_an_export_with_scores(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"question": "a b", "answer": "c", "id": 3}\n')
    assert [row.text for row in read_rows(path, ())] == ["a b\nc"]
    assert [row.text for row in read_rows(path, ["answer"])] == ["c"]
    with pytest.raises(Refused, match="no field other"):
        read_rows(path, ["other"])
    lines = [
        {"task": "t", "doc_id": 1, "prompt": "p", "target": "q", "response": "r", "scores": {"acc": score}}
        for score in (1, 0, None)
    ]
    path.write_text("".join(json.dumps(each) + "\n" for each in lines))
    [row] = read_rows(path, ())
    assert (row.name, row.text, row.score("acc"), row.score("f1")) == ("t 1", "p\nq", 0.5, None)


def test_memory_does_not_grow_with_the_corpus(tmp_path: Path) -> None:
    def peak(size: int) -> int:
        path = tmp_path / f"{size}.txt"
        path.write_text("word " * 1000 * size + "x" * 100_000 * size)
        grams = RowGrams([ROW], 5)
        tracemalloc.start()
        for document in documents(path):
            grams.read(document)
        _, highest = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return highest

    small = peak(20)
    assert peak(100) < 1.5 * small
