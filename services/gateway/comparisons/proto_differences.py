"""Differences from their messages: for conclusions, and as they go out."""

from collections.abc import Sequence

from proctor.v1 import comparison_pb2
from services.gateway.comparisons.difference import Difference, Verdict
from services.gateway.comparisons.http_comparison_bodies import DifferenceShown
from services.gateway.proto_words import verdict_word


def difference_of(message: comparison_pb2.Difference) -> Difference:
    return Difference(
        first=message.first,
        second=message.second,
        task=message.task,
        metric=message.metric,
        value=message.difference if message.HasField("difference") else None,
        interval=_interval(message),
        p_value=message.p_value if message.HasField("p_value") else None,
        adjusted_p_value=message.adjusted_p_value if message.HasField("adjusted_p_value") else None,
        test=message.test,
        pairs=message.pairs,
        smallest_detectable=message.smallest_detectable if message.HasField("smallest_detectable") else None,
        first_failed=message.first_failed,
        second_failed=message.second_failed,
        if_parsed=message.difference_if_parsed if message.HasField("difference_if_parsed") else None,
        verdict=_verdict(message),
        remark=message.remark,
    )


def difference_shown(message: comparison_pb2.Difference, names: Sequence[str]) -> DifferenceShown:
    each = difference_of(message)
    return DifferenceShown(
        first=names[message.first],
        second=names[message.second],
        task=message.task or None,
        metric=message.metric,
        first_mean=message.first_mean if message.HasField("first_mean") else None,
        second_mean=message.second_mean if message.HasField("second_mean") else None,
        difference=each.value,
        ci95=each.interval,
        p_value=each.p_value,
        adjusted_p_value=each.adjusted_p_value,
        test=message.test,
        pairs=message.pairs,
        clusters=message.clusters,
        smallest_detectable=each.smallest_detectable,
        first_failed=message.first_failed,
        second_failed=message.second_failed,
        first_unparsed=message.first_unparsed,
        second_unparsed=message.second_unparsed,
        difference_if_parsed=each.if_parsed,
        only_first_right=message.only_first_right,
        only_second_right=message.only_second_right,
        verdict=each.verdict,
        remark=message.remark,
    )


def _interval(message: comparison_pb2.Difference) -> tuple[float, float] | None:
    has_interval = message.HasField("ci_low") and message.HasField("ci_high")
    return (message.ci_low, message.ci_high) if has_interval else None


def _verdict(message: comparison_pb2.Difference) -> Verdict:
    is_known = message.verdict != comparison_pb2.VERDICT_UNSPECIFIED
    return Verdict(verdict_word(message.verdict)) if is_known else Verdict.UNDEFINED
