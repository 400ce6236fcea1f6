"""What corpora have of the rows of a run: stored over REST and the command line, shown beside the score."""

from urllib.parse import quote

from proctor.v1 import run_pb2, summary_pb2
from tests.contract.gateway.pages.shown_pages import HOSTILE, RUN_ID, running, show, summary_of
from tests.fakes.gateway.gateway_harness import GatewayHarness
from tests.fakes.gateway.http_calls import call

API = "/api/v1/benchmarking"


async def test_figures_are_stored_and_shown_beside_the_score(harness: GatewayHarness) -> None:
    run = running(tasks=2)
    run.state = run_pb2.RUN_STATE_COMPLETED
    harness.scheduler.put(run)
    summary = harness.results.summaries[RUN_ID] = summary_of(run)
    difference = {"metric": "acc", "difference": 0.1, "ci95": [-0.1, 0.3]}
    body = {"kind": "overlap", "corpus": HOSTILE, "found": 3, "searched": 40, "ngram": 13}
    path = f"{API}/contamination/{quote(RUN_ID)}"
    status, stored, _ = await call(harness, "POST", path, json={**body, "differences": [difference]})
    assert (status, len(stored["contamination"])) == (200, 1)
    [sent] = summary.contamination
    assert (sent.kind, sent.found, sent.searched) == (summary_pb2.CONTAMINATION_KIND_OVERLAP, 3, 40)
    sent.share, sent.ci_low, sent.ci_high = 0.075, 0.026, 0.199
    shown = (await call(harness, "GET", f"{API}/results/{RUN_ID}"))[1]["contamination"]
    assert (shown[0]["ci95"], shown[0]["differences"]) == ([0.026, 0.199], [difference])
    page = (await show(harness, f"/runs/{RUN_ID}")).html
    assert "3 of 40 rows share 13-grams" in page
    assert "(7.5%, 95 % from 2.6% to 19.9%). Their acc minus that of the others: +0.1000" in page
    assert "<img" not in page
    for wrong in ({"found": -1}, {"searched": 0}, {"kind": "claim"}, {"corpus": ""}):
        assert (await call(harness, "POST", path, json={**body, **wrong}))[0] == 422
