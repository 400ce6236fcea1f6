"""What to know beside a comparison: how far single runs scatter, and whether the runs were judged alike."""

from collections.abc import Iterator, Sequence

from proctor.v1 import answer_service_pb2 as answer_pb2
from proctor.v1 import comparison_pb2, leaderboard_service_pb2, run_pb2

# A judge by what its verdicts depend on: model, prompt with its digest, scale, and verdicts on each answer.
_Judge = tuple[str, str, str, str, int]


def main_metric(comparison: comparison_pb2.Comparison) -> str:
    """That of the benchmark as a whole; "" where it was not compared."""
    return next((each.metric for each in comparison.differences if not each.task), "")


def names_of_runs(runs: Sequence[comparison_pb2.ComparedRun]) -> Sequence[str]:
    """Their models; where two are of one model, with the first digits of their ids."""
    models = [run.model for run in runs]
    if len({*models}) == len(models):
        return models
    return [f"{run.model} (run {run.run_id[:8]})" for run in runs]


def noise_sentence(model: str, noise: leaderboard_service_pb2.GetNoiseResponse, floor: str) -> str:
    """`floor` is that of the noise, as figures are written where it is shown."""
    count, rollouts = len(noise.run_ids), noise.rollouts
    of = f"{count} runs" if count > 1 else f"{rollouts} rollouts of one run"
    return (
        f"Two single runs of {model} must differ by {floor} here ({noise.metric}): in 95 % of repetitions "
        f"they differ by less, as {of} tell."
    )


def judge_warnings(names: Sequence[str], judging: Sequence[Sequence[run_pb2.Run]]) -> Iterator[str]:
    """A sentence where two of the runs were judged by other panels. `judging`: the judging runs of each run.

    Runs that nobody judged, and judges that compare pairs of answers, say nothing.
    """
    panels = [frozenset(map(_judge, filter(_counts, runs))) for runs in judging]
    judged = [(name, panel) for name, panel in zip(names, panels, strict=True) if panel]
    if len({panel for _, panel in judged}) > 1:
        shared = frozenset.intersection(*(panel for _, panel in judged))
        words = "; ".join(f"{name} by {_words(panel, shared)}" for name, panel in judged)
        yield f"The runs were judged under other conditions, so verdicts on them do not compare: {words}."


def judges_of_both(judging: Sequence[Sequence[run_pb2.Run]]) -> Sequence[tuple[run_pb2.Run, run_pb2.Run]]:
    """The newest judging runs of each judge that has judged both of two runs; nothing of more runs."""
    if len(judging) != 2:
        return []
    first, second = ({_judge(run): run for run in reversed(runs) if _counts(run)} for runs in judging)
    return [(first[judge], second[judge]) for judge in first if judge in second]


def judged_sentence(names: Sequence[str], judge: run_pb2.Run, found: answer_pb2.CalibratedDifference) -> str:
    """What the judged runs differ by; "" where too few answers are marked. `judge`: a judging run."""
    if not found.HasField("ci_low"):
        return ""
    of = f"{judge.order.model} ({judge.order.judge.prompt}, {judge.order.judge.scale})"
    interval = f"95 % from {found.ci_low:+.4f} to {found.ci_high:+.4f}"
    p = f", p = {found.p_value:.3g}" if found.HasField("p_value") else ""
    return (
        f"By the judge {of}, corrected for its error by marks of people: {names[0]} minus {names[1]} is "
        f"{found.difference:+.4f} ({interval}{p}, {found.pairs:,} samples)."
    )


def compares(judge: run_pb2.Judge) -> bool:
    """Whether its verdicts are on pairs: marks say whether an answer is right, not which of two is better."""
    return bool(judge.against_run_id) or judge.against_target


def _counts(run: run_pb2.Run) -> bool:
    return run.state == run_pb2.RUN_STATE_COMPLETED and not compares(run.order.judge)


def _judge(run: run_pb2.Run) -> _Judge:
    judge = run.order.judge
    prompt = f"{judge.prompt} {judge.version}".strip()
    return run.order.model, prompt, judge.digest, judge.scale, max(run.order.rollouts, 1)


def _words(panel: frozenset[_Judge], shared: frozenset[_Judge]) -> str:
    """Those that not all have, and how many others."""
    own = [
        f"{model} ({prompt} {digest[:8]}, {scale}" + (f", {rollouts} verdicts each)" if rollouts > 1 else ")")
        for model, prompt, digest, scale, rollouts in sorted(panel - shared)
    ]
    others = f"{len(panel & shared)} that all have" if panel & shared else ""
    return " and ".join(part for part in (", ".join(own), others) if part)
