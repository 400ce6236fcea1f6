"""A suite made for tests: each row asks for its own key, so that the right answer is known beforehand."""

import json
from pathlib import Path

SUITE = "keyed"
TASK = "echo_key"
# A stop that no model says by chance, so that the number of tokens is the asked one.
STOP = "END OF ANSWER"

# About a kilobyte per prompt: what a question with a passage weighs.
_FILLER = "The passage that goes with this question is long and says little. " * 13

_SUITE_YAML = f"""\
suite: {SUITE}
description: Rows that ask for their own key.
tasks: [{TASK}]
"""

_TASK_YAML = f"""\
task: {TASK}
version: "1"
dataset: {{file: rows.jsonl}}
output_type: generate_until
doc_to_text: "{{{{passage}}}}\\nSay the key. KEY={{{{key}}}}"
doc_to_target: key
generation_kwargs: {{until: ["{STOP}"], max_gen_toks: 64, temperature: 0.0}}
filter_list:
  - name: key
    filter:
      - {{function: regex, regex_pattern: "The answer is (\\\\w+)\\\\."}}
      - {{function: take_first}}
metric_list: [{{metric: exact_match}}]
metadata: {{license: Apache-2.0}}
"""


def write_keyed_suite(suites: Path, rows: int, *, is_long: bool = True) -> None:
    """Writes the suite below `suites`, with `rows` rows of about 1 KB, or of some words."""
    folder = suites / SUITE
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "suite.yaml").write_text(_SUITE_YAML, encoding="utf-8")
    (folder / f"{TASK}.yaml").write_text(_TASK_YAML, encoding="utf-8")
    passage = _passage(is_long=is_long)
    with (folder / "rows.jsonl").open("w", encoding="utf-8") as file:
        for number in range(rows):
            file.write(json.dumps({"passage": passage, "key": f"k{number}"}) + "\n")


def keyed_prompts(rows: int, *, is_long: bool = True) -> list[str]:
    """What the suite's samples ask, in order."""
    passage = _passage(is_long=is_long)
    return [f"{passage}\nSay the key. KEY=k{number}" for number in range(rows)]


def _passage(*, is_long: bool) -> str:
    return _FILLER if is_long else "Read."
