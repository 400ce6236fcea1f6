"""Writes the rows of the starter suite: made by rule from small word lists, the same on every machine.

Train and test rows share no prompt, nor a reordered or commuted form of one: see `row_identity`. The stamp of
a built model says whether today's recipe, rows and templates would give the same (without torch).
"""

import argparse
import hashlib
import json
import random
from collections.abc import Callable, Hashable, Iterator, Mapping
from pathlib import Path

Row = dict[str, object]

SUITE_DIR = Path(__file__).resolve().parents[2] / "suites" / "starter"
TRAIN_ROWS = 200
TEST_ROWS: Mapping[str, int] = {"sentiment": 200, "odd_one": 160, "addition": 140}

WORDS = json.loads((Path(__file__).parent / "words.json").read_text(encoding="utf-8"))
_MAX_TERM = 49


_STAMP = "recipe.sha256"


def draw_sentiment(rng: random.Random) -> Row:
    label = rng.randrange(2)
    text = rng.choice(WORDS["reviews"]).format(
        thing=rng.choice(WORDS["things"]),
        degree=rng.choice(WORDS["degrees"]),
        word=rng.choice(WORDS["good" if label else "bad"]),
        day=rng.choice(WORDS["days"]),
    )
    return {"text": text[0].upper() + text[1:], "label": label}


def draw_odd_one(rng: random.Random) -> Row:
    words = rng.sample(WORDS["animals"], 3)
    answer = rng.randrange(4)
    words.insert(answer, rng.choice(WORDS["others"]))
    return {"words": words, "answer": answer}


def draw_addition(rng: random.Random) -> Row:
    a, b = rng.randint(0, _MAX_TERM), rng.randint(0, _MAX_TERM)
    return {"a": a, "b": b, "sum": a + b}


DRAWS: Mapping[str, Callable[[random.Random], Row]] = {
    "sentiment": draw_sentiment,
    "odd_one": draw_odd_one,
    "addition": draw_addition,
}


def row_identity(task: str, row: Row) -> Hashable:
    """Equal for rows with the same question: the text, the set of words, two numbers in either order."""
    if task == "odd_one":
        words = row["words"]
        assert isinstance(words, list)
        return frozenset(words)
    if task == "addition":
        return frozenset((row["a"], row["b"]))
    return row["text"]


def draw_rows(task: str, rng: random.Random, excluded: set[Hashable]) -> Iterator[Row]:
    """Endless rows of a task, none of which asks an excluded question."""
    while True:
        row = DRAWS[task](rng)
        if row_identity(task, row) not in excluded:
            yield row


def make_split(task: str, split: str, count: int, excluded: set[Hashable]) -> list[Row]:
    """`count` rows that ask different questions, none of them excluded."""
    seen = set(excluded)
    rows: list[Row] = []
    for row in draw_rows(task, random.Random(f"starter/{task}/{split}"), seen):
        seen.add(row_identity(task, row))
        rows.append({"id": f"{task}-{split}-{len(rows):04d}", **row})
        if len(rows) == count:
            break
    return rows


def make_task(task: str) -> dict[str, list[Row]]:
    test = make_split(task, "test", TEST_ROWS[task], set())
    asked_in_test = {row_identity(task, row) for row in test}
    return {"test": test, "train": make_split(task, "train", TRAIN_ROWS, asked_in_test)}


def row_file(suite_dir: Path, task: str, split: str) -> Path:
    return suite_dir / "data" / f"{task}.{split}.jsonl"


def read_rows(suite_dir: Path, task: str, split: str) -> list[Row]:
    text = row_file(suite_dir, task, split).read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def write_rows(suite_dir: Path) -> None:
    for task in DRAWS:
        for split, rows in make_task(task).items():
            path = row_file(suite_dir, task, split)
            path.parent.mkdir(parents=True, exist_ok=True)
            lines = [json.dumps(row, ensure_ascii=False) for row in rows]
            path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description="write the rows of the starter suite")
    parser.add_argument("suite_dir", type=Path, nargs="?", default=SUITE_DIR)
    write_rows(parser.parse_args().suite_dir)


if __name__ == "__main__":
    main()


def recipe_digest(suite_dir: Path = SUITE_DIR) -> str:
    """A digest of all that shapes the model: this package's code and words, the suite's YAML and rows."""
    digest = hashlib.sha256()
    for folder, patterns in (
        (Path(__file__).parent, ("*.py", "*.json")),
        (suite_dir, ("*.yaml", "data/*.jsonl")),
    ):
        for path in sorted(path for pattern in patterns for path in folder.glob(pattern)):
            digest.update(path.name.encode() + b"\0" + hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def is_current(model_dir: Path, suite_dir: Path = SUITE_DIR) -> bool:
    stamp = model_dir / _STAMP
    return stamp.is_file() and stamp.read_text(encoding="ascii") == recipe_digest(suite_dir)


def write_stamp(model_dir: Path, suite_dir: Path = SUITE_DIR) -> None:
    (model_dir / _STAMP).write_text(recipe_digest(suite_dir), encoding="ascii")
