"""What services read from NATS: each subject, the kind of its messages, and the most bytes of one.

NATS limits the payload of a server and the messages of a stream, but not those of a subject. A test compares
the list with the permissions of NATS and with the streams that the scheduler makes.
"""

from dataclasses import dataclass
from typing import Generic, TypeVar

from google.protobuf.message import Message

from proctor.v1 import work_messages_pb2
from proctor.values import messaging
from proctor.values.rollout import PART_BYTES

M_co = TypeVar("M_co", bound=Message, covariant=True)

_KIB = 1024
# What proves that a rollout was dispatched, and the numbers beside it.
_PROOF_BYTES = 64 * _KIB


@dataclass(frozen=True, slots=True)
class SubjectMessages(Generic[M_co]):
    """Messages of a subject, or the answers to its requests. A `*` stands for a pool, a run or a key."""

    subject: str
    kind: type[M_co]
    max_bytes: int = messaging.MAX_NATS_MESSAGE_BYTES


WORK = SubjectMessages(messaging.work_of_pool("*"), work_messages_pb2.WorkShard)
OUTCOMES = SubjectMessages(messaging.OUTCOMES_OF_ALL_RUNS, work_messages_pb2.OutcomeBatch)
PROGRESS = SubjectMessages(messaging.PROGRESS_OF_ALL_RUNS, work_messages_pb2.ProgressReport)
# Counts the retries of up to 64 runs.
RATES = SubjectMessages(messaging.ALL_RATES, work_messages_pb2.RateReport, 64 * _KIB)
# A digest and a number.
BUNDLES = SubjectMessages(messaging.ALL_BUNDLES, work_messages_pb2.ReadBundleRequest, _KIB)
ARTIFACTS = SubjectMessages(
    messaging.ALL_ARTIFACTS, work_messages_pb2.PutArtifactRequest, PART_BYTES + _PROOF_BYTES
)
BUDGETS = SubjectMessages(messaging.ALL_BUDGETS, work_messages_pb2.ReportBudgetUseRequest, _PROOF_BYTES)
# The answers: nothing is read of the requests.
MODEL_LISTS = SubjectMessages(messaging.model_list_subject("*"), work_messages_pb2.ListPoolModelsResponse)
# A usual one has 1 KiB; one that lists thousands of models and adapters has a hundred.
HEARTBEATS = SubjectMessages(
    messaging.keys_of_bucket(messaging.heartbeat_bucket_name("*")),
    work_messages_pb2.WorkerStatus,
    messaging.MAX_HEARTBEAT_BYTES,
)
RUN_CONTROLS = SubjectMessages(messaging.keys_of_bucket("RUNS"), work_messages_pb2.RunControl)
QUOTAS = SubjectMessages(messaging.keys_of_bucket("QUOTAS"), work_messages_pb2.RateQuota)

READ_MESSAGES: tuple[SubjectMessages[Message], ...] = (
    WORK,
    OUTCOMES,
    PROGRESS,
    RATES,
    BUNDLES,
    ARTIFACTS,
    BUDGETS,
    MODEL_LISTS,
    HEARTBEATS,
    RUN_CONTROLS,
    QUOTAS,
)
# An empty message, the id of a worker, and a decimal number.
READ_TEXTS = (
    messaging.STATES_OF_ALL_RUNS,
    messaging.keys_of_bucket(messaging.switch_bucket_name("*")),
    messaging.keys_of_bucket(messaging.quarantine_bucket_name("*")),
)
