"""`make bench`: prints every figure; `python -m tests.bench render` prints one."""

import argparse
import asyncio

from tests.bench import cost_per_sample, telemetry
from tests.bench.engine import batch_on_vllm, engine_throughput, parity, prefixes
from tests.bench.gateway import many_parts, traffic
from tests.bench.pages import listing, viewing
from tests.bench.results import archiving, closing, comparing, exporting, leaderboard, reusing, scale
from tests.bench.scheduler import (
    batches,
    cancelling,
    coded_rows,
    leading,
    queueing,
    rate_limiting,
    rendering,
    spreading,
    uploading,
)
from tests.bench.worker import idling, rollouts

BENCHES = {
    "render": rendering.main,
    "coded": coded_rows.main,
    "close": closing.main,
    "compare": comparing.main,
    "archive": archiving.main,
    "reuse": reusing.main,
    "leaderboard": leaderboard.main,
    "cost": cost_per_sample.main,
    "telemetry": telemetry.main,
    "rates": rate_limiting.main,
    "queue": queueing.main,
    "lead": leading.main,
    "cancel": cancelling.main,
    "spread": spreading.main,
    "idle": idling.main,
    "rollouts": rollouts.main,
    "traffic": traffic.main,
    "parts": many_parts.main,
    "pages": viewing.main,
    "live": viewing.live,
    "lists": listing.main,
    "uploads": uploading.main,
    "export": exporting.main,
    "scale": scale.main,
    "engine": engine_throughput.main,
    "batch": batches.main,
    "batch_vllm": batch_on_vllm.main,
    "parity": parity.main,
    "prefixes": prefixes.main,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("bench", nargs="*", choices=[[], *BENCHES], help="which figures (default: all)")
    chosen = parser.parse_args().bench or list(BENCHES)
    for name in chosen:
        asyncio.run(BENCHES[name]())


if __name__ == "__main__":
    main()
