"""STS-B, whose task is ours: the correlations of what was said with what people said, as scipy has them."""

from hashlib import sha256

import pytest
from scipy.stats import pearsonr, spearmanr

from proctor.values.outcome import Answer
from services.scheduler.suites.rendering.sample import RenderedSample
from services.scheduler.suites.rows.file_rows import MirrorRows
from tests.reference.evaluated_tasks import Examination, examine, suites
from tests.reference.golden_reference import folder_of


def said_of(sample: RenderedSample) -> str:
    """A number that leans towards the right one; every tenth answer has none between 0 and 5."""
    noise = sha256(sample.prompt.as_text.encode()).digest()
    if noise[0] < 26:
        return " 10 out of 10"
    return f" about {0.7 * float(sample.target.texts[0]) + noise[1] / 255 * 1.5:.2f} I think"


def test_the_figures_are_the_correlations_over_the_answers_that_could_be_read() -> None:
    suite = suites().suite("glue")
    mirror = MirrorRows(folder_of("PROCTOR_DATA_DIR"))
    order = Examination(
        suite, [suite.task("stsb")], lambda _: mirror, lambda sample: Answer(said_of(sample)), 0
    )
    ours = examine(order)
    read = [sample for sample in ours.samples["stsb"] if "10 out of" not in said_of(sample)]
    targets = [float(sample.target.texts[0]) for sample in read]
    said = [float(said_of(sample).split()[1]) for sample in read]
    [summary] = ours.summary.tasks
    assert (len(ours.samples["stsb"]), summary.unparsed) == (1500, 1500 - len(read))
    assert len(read) < 1400
    for metric, reference in (("pearson", pearsonr), ("spearman", spearmanr)):
        figure = summary.figures[metric]
        assert figure.n == len(read)
        assert figure.mean == pytest.approx(reference(targets, said).statistic, abs=1e-9)
