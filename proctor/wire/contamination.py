"""What a corpus has of the rows of a run, in sentences."""

from collections.abc import Iterator

from proctor.v1 import summary_pb2


def contamination_sentences(summary: summary_pb2.RunSummary) -> Iterator[str]:
    for figure in summary.contamination:
        yield " ".join([_share(figure), *map(_difference, figure.differences)])


def _share(figure: summary_pb2.ContaminationFigure) -> str:
    counted = f"{figure.found:,} of {figure.searched:,}"
    share = f"{figure.share:.1%}, 95 % from {figure.ci_low:.1%} to {figure.ci_high:.1%}"
    if figure.kind == summary_pb2.CONTAMINATION_KIND_CANARY:
        return f"{counted} documents of {figure.corpus} hold a canary ({share})."
    return f"{counted} rows share {figure.ngram}-grams of words with {figure.corpus} ({share})."


def _difference(one: summary_pb2.ContaminationDifference) -> str:
    interval = f"95 % from {one.ci_low:+.4f} to {one.ci_high:+.4f}"
    return f"Their {one.metric} minus that of the others: {one.difference:+.4f} ({interval})."
