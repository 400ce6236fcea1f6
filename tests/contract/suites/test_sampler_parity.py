"""Examples that a class of a task draws: the same prompts as lm-evaluation-harness makes with it."""

import json
from pathlib import Path

import pytest

from services.common.sandboxes.bubblewrap.engine import BubblewrapEngine, find_bubblewrap
from services.common.sandboxes.task_code.bubblewrap import BubblewrapCode
from services.scheduler.suites.code.coded_rows import CodedRows
from services.scheduler.suites.rendering.render_task import SEED, open_task
from services.scheduler.suites.rows.file_rows import FileRows
from tests.fakes.suites.sampled_tasks import SAMPLER, question_rows, sampled_task
from tests.reference.lm_eval_venv import run_in_lm_eval

SPLIT = "fewshot_split: train\n"
OWN_TEST = "fewshot_split: test\n"
CHOICES = (
    "output_type: multiple_choice\ndoc_to_choice: ['0', '1', '2']\ndoc_to_target: kind\n"
    "metric_list: [{metric: acc}]\n"
)
INHERITED = "class Own(ContextSampler):\n    pass\n"
FIRST = "class Own(FirstNSampler):\n    pass\n"
BALANCED = """\
class Own(ContextSampler):
    def __init__(self, df=None, **kwargs):
        super().__init__(df, **kwargs)
        self.by_kind = {}
        for row in self.df:
            self.by_kind.setdefault(row["kind"], []).append(row)

    def sample(self, n, eval_doc=None, df=None, **kwargs):
        kinds = sorted(self.by_kind)
        rows = [self.rnd.choice(self.by_kind[kinds[place % len(kinds)]]) for place in range(n)]
        self.rnd.shuffle(rows)
        return rows
"""
NEAREST = """\
from difflib import SequenceMatcher


class Own(ContextSampler):
    def sample(self, n, eval_doc=None, **kwargs):
        def likeness(row):
            return SequenceMatcher(None, row["question"], eval_doc["question"]).ratio()

        return sorted(self.rm_eval_doc(eval_doc, self.df), key=likeness)[-n:]
"""
CHANGED = """\
class Own(ContextSampler):
    count = 0

    def sample(self, n, eval_doc=None, df=None, **kwargs):
        self.count += 1
        rows = super().sample(n - 1, eval_doc)
        return [{**rows[0], "answer": f"{self.count}. {rows[0]['answer']}"}, *rows]


def text(doc):
    return f"<{doc['kind']}> {doc['question']}"


def process(docs):
    return docs.filter(lambda doc: doc["kind"] != 1)
"""
CODED = "process_docs: !function utils.process\ndoc_to_text: !function utils.text\n"
SAMPLES = "fewshot_config:\n  sampler: !function utils.Own\n  samples: " + json.dumps(question_rows(6)) + "\n"
CASES = {
    "a draw at random": (INHERITED, SAMPLER + SPLIT),
    "a draw at random of documents": (INHERITED, SAMPLER + OWN_TEST),
    "the first ones": (FIRST, SAMPLER + OWN_TEST),
    "a balanced draw": (BALANCED, SAMPLER + SPLIT),
    "a balanced draw for choices": (BALANCED, SAMPLER + SPLIT + CHOICES),
    "the nearest ones": (NEAREST, SAMPLER + OWN_TEST),
    "rows of its own, worded by code": (CHANGED, SAMPLER + SPLIT + CODED),
    "rows of its own, of documents": (CHANGED, SAMPLER + OWN_TEST + CODED),
    "a pool in the task's file": (BALANCED, SAMPLES),
}
THEIRS = """\
import json, os, sys
from lm_eval.api.task import ConfigurableTask
from lm_eval.tasks._yaml_loader import load_yaml

found = {}
for name, folder in json.load(sys.stdin).items():
    os.chdir(folder)
    task = ConfigurableTask(config=dict(load_yaml("sampled.yaml")))
    task.set_fewshot_seed(1234)
    found[name] = [task.fewshot_context(doc, num_fewshot=3) for doc in task.eval_docs]
print(json.dumps(found))
"""


@pytest.mark.thorough
@pytest.mark.timeout(1200)
def test_samplers_show_what_they_show_there(tmp_path: Path) -> None:
    assert SEED == 1234
    runner = BubblewrapCode(BubblewrapEngine(find_bubblewrap()))
    ours, folders = {}, {}
    for number, (name, (code, more)) in enumerate(CASES.items()):
        folder = tmp_path / str(number)
        folder.mkdir()
        folders[name] = str(folder)
        task = sampled_task(folder, code, more)
        samples = open_task(task, CodedRows(FileRows(), runner)).samples
        ours[name] = [sample.prompt.as_text for sample in samples]
    environment = {"HF_DATASETS_CACHE": str(tmp_path / "cache")}
    printed = run_in_lm_eval(["-c", THEIRS], environment, input_text=json.dumps(folders))
    theirs = json.loads(printed.strip().splitlines()[-1])
    assert {name: len(prompts) for name, prompts in theirs.items() if len(set(prompts)) < 20} == {}
    assert ours == theirs
