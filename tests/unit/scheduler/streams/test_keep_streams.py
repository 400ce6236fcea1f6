"""What is known of the streams of NATS: made or refused, written or not, or without an answer."""

from collections.abc import Collection
from dataclasses import dataclass, field

import pytest

from proctor.values.messaging import JETSTREAM
from services.scheduler.streams.keep_streams import PROBE_SECONDS, SILENT_SECONDS, KeepStreams
from services.scheduler.streams.refused_streams import awaited_stream
from tests.fakes.scheduler.surroundings import SetClock


@dataclass
class Server:
    """Streams of a server that answers, or not."""

    refused: dict[str, str] = field(default_factory=dict)
    probed: Collection[str] = ("OUTCOMES", "KV_RUNS")
    last_messages: dict[str, int] = field(default_factory=lambda: {"OUTCOMES": 7, "KV_RUNS": 1})
    is_away: bool = False

    async def make_missing(self) -> None:
        if self.is_away:
            raise TimeoutError


@dataclass
class Writes:
    refused: dict[str, str] = field(default_factory=dict)
    rounds: int = 0
    names: Collection[str] = ()
    server: Server = field(default_factory=Server)

    async def probe(self, names: Collection[str]) -> dict[str, int]:
        self.names = names
        self.rounds += 1
        for name in names:
            self.server.last_messages[name] += 1
        return {name: self.server.last_messages[name] for name in names}


@dataclass
class Bench:
    server: Server = field(default_factory=Server)
    writes: Writes = field(default_factory=Writes)
    clock: SetClock = field(default_factory=SetClock)

    def __post_init__(self) -> None:
        self.writes.server = self.server
        self.keep = KeepStreams(self.server, self.writes, self.clock)

    async def keep_for(self, seconds: int) -> None:
        for _ in range(seconds):
            self.clock.seconds += 1
            await self.keep.keep()


async def test_nothing_is_known_before_the_first_answer_and_after_a_silence() -> None:
    bench = Bench()
    assert bench.keep.can_be_used is bench.keep.can_be_written is None
    await bench.keep_for(1)
    assert bench.keep.can_be_used is bench.keep.can_be_written is True
    bench.server.is_away = True
    with pytest.raises(TimeoutError):
        await bench.keep_for(1)
    assert bench.keep.can_be_used is True
    bench.clock.seconds += SILENT_SECONDS
    assert bench.keep.can_be_used is bench.keep.can_be_written is None


async def test_probes_are_few_unless_something_is_refused() -> None:
    bench = Bench()
    await bench.keep_for(4 * int(PROBE_SECONDS))
    assert bench.writes.rounds == 4
    bench.writes.refused["OUTCOMES"] = "no space left on device"
    await bench.keep_for(4)
    assert bench.writes.rounds == 8


async def test_stream_that_took_a_message_meanwhile_is_not_probed() -> None:
    bench = Bench()
    await bench.keep_for(1)
    assert bench.writes.names == ["OUTCOMES", "KV_RUNS"]
    bench.server.last_messages["OUTCOMES"] += 1
    await bench.keep_for(int(PROBE_SECONDS))
    assert bench.writes.names == ["KV_RUNS"]
    await bench.keep_for(int(PROBE_SECONDS))
    assert bench.writes.names == ["OUTCOMES", "KV_RUNS"]


async def test_a_refused_write_is_the_fault_of_the_server_and_a_refused_stream_is_not() -> None:
    bench = Bench()
    await bench.keep_for(1)
    bench.server.refused["OUTCOMES"] = "insufficient storage resources available"
    assert (bench.keep.can_be_used, bench.keep.can_be_written) == (False, True)
    bench.writes.refused["KV_RUNS"] = "no space left on device"
    assert (bench.keep.can_be_used, bench.keep.can_be_written) == (False, False)
    assert bench.keep.refused() == {
        "OUTCOMES": "insufficient storage resources available",
        "KV_RUNS": "no space left on device",
    }


async def test_a_server_that_ended_jetstream_takes_no_messages() -> None:
    bench = Bench()
    await bench.keep_for(1)
    bench.server.refused[JETSTREAM] = "the server has ended it"
    assert (bench.keep.can_be_used, bench.keep.can_be_written) == (False, False)
    assert awaited_stream("any", bench.keep.refused()) == (
        "waiting for NATS, which refuses JetStream: the server has ended it"
    )


def test_a_run_waits_for_what_all_pools_need_and_for_what_its_own_has() -> None:
    for needed in ("OUTCOMES", "KV_RUNS", "WORK_a", "KV_WORKERS_a", "KV_QUARANTINE_a"):
        assert awaited_stream("a", {needed: "full"}) == f"waiting for NATS, which refuses {needed}: full"
    for other in ("WORK_b", "WORK_aa", "KV_WORKERS_b", "KV_SWITCHES_b"):
        assert awaited_stream("a", {other: "full"}) is None
