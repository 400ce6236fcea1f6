"""Comparisons and flips as the contract has them."""

from proctor.v1 import comparison_pb2
from proctor.wire.convert import number_of
from services.results.comparison.comparison import ComparedRun, Comparison, Difference
from services.results.comparison.flip import Flip
from services.results.samples.sample import target_as_text


def comparison_to_proto(comparison: Comparison) -> comparison_pb2.Comparison:
    return comparison_pb2.Comparison(
        suite=comparison.suite,
        runs=[_run(run) for run in comparison.runs],
        differences=[_difference(one) for one in comparison.differences],
        corrected_over=comparison.corrected_over,
        warnings=comparison.warnings,
    )


def flip_to_proto(flip: Flip) -> comparison_pb2.Flip:
    return comparison_pb2.Flip(
        task=flip.task.task,
        doc_id=flip.sample.doc_id,
        digest=flip.sample.digest,
        prompt=flip.sample.prompt.as_text,
        target=target_as_text(flip.sample.target, flip.task.scoring.target_delimiter),
        first_prediction=flip.predictions[0],
        second_prediction=flip.predictions[1],
        first_score=flip.scores[0],
        second_score=flip.scores[1],
    )


def _run(run: ComparedRun) -> comparison_pb2.ComparedRun:
    return comparison_pb2.ComparedRun(
        run_id=run.run_id,
        model=run.model,
        scoring_method=number_of(run.scoring_method),
        limit=run.limit,
        score=run.score,
    )


def _difference(one: Difference) -> comparison_pb2.Difference:
    estimate, tally = one.estimate, one.tally
    return comparison_pb2.Difference(
        first=one.first,
        second=one.second,
        task=one.task,
        metric=one.metric,
        first_mean=estimate.first_mean,
        second_mean=estimate.second_mean,
        difference=estimate.difference,
        ci_low=estimate.ci_low,
        ci_high=estimate.ci_high,
        p_value=estimate.p_value,
        adjusted_p_value=one.adjusted_p_value,
        test=estimate.test,
        pairs=estimate.pairs,
        clusters=estimate.clusters,
        smallest_detectable=estimate.smallest_detectable,
        first_failed=tally.first_failed,
        second_failed=tally.second_failed,
        first_unparsed=tally.first_unparsed,
        second_unparsed=tally.second_unparsed,
        difference_if_parsed=one.difference_if_parsed,
        only_first_right=estimate.only_first_right,
        only_second_right=estimate.only_second_right,
        verdict=number_of(one.verdict),
        remark=estimate.remark,
    )
