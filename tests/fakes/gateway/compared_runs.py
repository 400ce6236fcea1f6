"""A small comparison as results would tell it: two models, two tasks, one of them decided."""

import uuid

from proctor.v1 import comparison_pb2, run_pb2


def two_models() -> comparison_pb2.Comparison:
    """b is ahead on the suite as a whole, shown on rte and not shown on sst2; the whole is undecided."""
    comparison = comparison_pb2.Comparison(
        benchmark="glue", corrected_over=3, warnings=["qqp: only a has it"]
    )
    for model, score in (("vllm/a", 0.8), ("vllm/b", 0.82)):
        comparison.runs.add(
            run_id=str(uuid.uuid5(uuid.NAMESPACE_URL, model)),
            model=model,
            score=score,
            unparsed_rate=0.125,
            scoring_method=run_pb2.SCORING_METHOD_LOGLIKELIHOOD,
        )
    comparison.conditions.add(name="temperature", values=["0", "1.0"], tasks=["rte"])
    _add(comparison, "sst2", -0.01, 0.4, comparison_pb2.VERDICT_NOT_SHOWN)
    _add(comparison, "rte", -0.06, 0.003, comparison_pb2.VERDICT_SECOND_BETTER)
    _add(comparison, "", -0.02, 0.06, comparison_pb2.VERDICT_NOT_SHOWN)
    comparison.differences.add(
        second=1, task="cola", metric="mcc", pairs=1, verdict="VERDICT_UNDEFINED", remark="only one pair"
    )
    return comparison


def planned_size() -> comparison_pb2.SizePlan:
    """sst2 has rollouts, rte has one, and cola has no error."""
    compared = two_models()
    plan = comparison_pb2.SizePlan(benchmark="glue", runs=compared.runs, warnings=["qqp: only a has it"])
    sst2, rte, _, cola = compared.differences
    sst2.noise_floor = 0.023
    sizes = [comparison_pb2.PlannedSize(rollouts=k, rows=rows) for k, rows in ((1, 12_000), (2, 9_000))]
    plan.tasks.add(difference=sst2, wanted=0.01, rows=400, sample_std=0.3, rollout_std=0.4, sizes=sizes)
    plan.tasks.add(difference=rte, wanted=0.01, rows=400, sizes=[comparison_pb2.PlannedSize(rows=5_000)])
    plan.tasks.add(difference=cola, wanted=0.01, rows=1)
    return plan


def failed_gate() -> comparison_pb2.Gate:
    """a is worse than b on rte, passes on sst2 and has no figure on cola."""
    compared = two_models()
    gate = comparison_pb2.Gate(
        benchmark="glue",
        runs=compared.runs,
        verdict=comparison_pb2.GATE_VERDICT_FAIL,
        margin_points=1,
        alpha=0.05,
    )
    sst2, rte, _, cola = compared.differences
    gate.tasks.add(
        difference=sst2, margin=0.01, verdict="GATE_VERDICT_PASS", lower_limit=-0.009, upper_limit=0.01
    )
    gate.tasks.add(
        difference=rte,
        margin=0.01,
        verdict="GATE_VERDICT_FAIL",
        lower_limit=-0.09,
        upper_limit=-0.03,
        detectable=0.02,
    )
    gate.tasks.add(difference=cola, margin=0.01, verdict="GATE_VERDICT_INCONCLUSIVE", reason="only one pair")
    return gate


def _add(
    comparison: comparison_pb2.Comparison,
    task: str,
    difference: float,
    p_value: float,
    verdict: comparison_pb2.Verdict.ValueType,
) -> None:
    comparison.differences.add(
        first=0,
        second=1,
        task=task,
        metric="acc",
        first_mean=0.8,
        second_mean=0.8 - difference,
        difference=difference,
        ci_low=difference - 0.02,
        ci_high=difference + 0.02,
        p_value=p_value / 2,
        adjusted_p_value=p_value,
        test="exact McNemar" if task else "stratified normal",
        pairs=400,
        smallest_detectable=0.04,
        second_unparsed=2,
        difference_if_parsed=difference + 0.001,
        verdict_if_parsed=verdict if task else comparison_pb2.VERDICT_SECOND_BETTER,
        depends_on_unparsed=not task,
        only_first_right=10,
        only_second_right=18,
        verdict=verdict,
    )
