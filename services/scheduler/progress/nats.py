"""Reports of results and notices of changed runs, from core NATS onto the tracker. Lost ones do no harm."""

from nats.aio.client import Client
from nats.aio.msg import Msg

from proctor.v1 import work_messages_pb2
from proctor.values.messaging import STATES_OF_ALL_RUNS
from proctor.wire.proofs import PROGRESS_PROOF, is_progress_proved
from proctor.wire.subjects import PROGRESS
from proctor.wire.values import COUNTS
from services.common.bounded_messages import read_message
from services.common.clock import Clock
from services.common.structured_logs import get_logger
from services.scheduler.progress.progress_tracker import ProgressReport, ProgressTracker

log = get_logger()

# A sender without the key may publish without end.
_WARN_SECONDS = 60.0


class NatsProgressReports:
    """Two subscriptions; the client renews them by itself after an outage."""

    def __init__(
        self, connection: Client, tracker: ProgressTracker, clock: Clock, dispatch_proof_key: str
    ) -> None:
        self._connection = connection
        self._dispatch_proof_key = dispatch_proof_key
        self._tracker = tracker
        self._clock = clock
        self._dropped = 0
        self._warns_at = 0.0

    async def start(self) -> None:
        await self._connection.subscribe(PROGRESS.subject, cb=self._take_report)
        await self._connection.subscribe(STATES_OF_ALL_RUNS, cb=self._take_state_change)

    async def _take_report(self, message: Msg) -> None:
        # A worker can have JetStream deliver its own messages to any subject.
        proof = (message.headers or {}).get(PROGRESS_PROOF, "")
        if not is_progress_proved(message.data, proof, self._dispatch_proof_key):
            self._warn(message.subject)
            return
        report = read_message(PROGRESS.kind, message.data, PROGRESS.max_bytes)
        self._tracker.record(report_from_proto(report), self._clock.monotonic())

    def _warn(self, subject: str) -> None:
        self._dropped += 1
        now = self._clock.monotonic()
        if now >= self._warns_at:
            log.warning("progress reports without proof are dropped", subject=subject, dropped=self._dropped)
            self._dropped, self._warns_at = 0, now + _WARN_SECONDS

    async def _take_state_change(self, message: Msg) -> None:
        # The message is empty: the new state is read from the store.
        self._tracker.touch(message.subject.rpartition(".")[2], self._clock.monotonic())


def report_from_proto(report: work_messages_pb2.ProgressReport) -> ProgressReport:
    shards = {shard.shard: shard.recorded for shard in report.shards}
    return ProgressReport(report.run_id, COUNTS.from_proto(report), shards)
