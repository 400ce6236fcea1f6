"""What services read from NATS has a kind and a limit: permissions and streams name no further subject."""

from nats.js.api import StreamConfig

from proctor.stack.servers.nats_permissions import permissions_of
from proctor.values import messaging
from proctor.wire.subjects import READ_MESSAGES, READ_TEXTS
from services.common.nats.stream_maker import StreamLimits, stream_configs

POOL = "pool"


def subjects() -> set[str]:
    return {each.replace("*", POOL, 1) for each in (*(one.subject for one in READ_MESSAGES), *READ_TEXTS)}


def subjects_of(config: StreamConfig) -> set[str]:
    return {each for each in config.subjects or () if each != messaging.probe_subject(str(config.name))}


def test_each_subject_that_is_received_is_listed() -> None:
    received = {each for user in permissions_of([POOL]).values() for each in user.subscribe}
    stored = {each for config in stream_configs([POOL], StreamLimits()) for each in subjects_of(config)}
    assert len(received) > 5
    assert len(stored) > 5
    # Requests for models are empty; their answers are listed under the same subject.
    assert {each.replace("*", POOL, 1) for each in received | stored} == subjects()


def test_no_message_may_be_larger_than_the_wire_takes() -> None:
    assert all(0 < each.max_bytes <= messaging.MAX_NATS_MESSAGE_BYTES for each in READ_MESSAGES)
