"""The codecs of values whose messages are the same for every service."""

from proctor.v1 import model_pb2, outcome_pb2, rollout_pb2, run_pb2, sample_pb2, work_messages_pb2
from proctor.values.code import CodeCheck
from proctor.values.comparison import Decision
from proctor.values.generation import GenerationParams
from proctor.values.outcome import Outcome
from proctor.values.providers.models import ModelInfo
from proctor.values.providers.worker import EngineLoad
from proctor.values.rollout import BudgetUse, EarlierUse, RanTests, RolloutSpec, RolloutTask
from proctor.values.run import RunCounts
from proctor.values.sample import Prompt, Sample
from proctor.values.scoring import TaskGroup, TaskScoring
from proctor.values.usage import ModelPrice, TokenUsage
from proctor.wire.convert import Codec

OUTCOME = Codec(Outcome, outcome_pb2.Outcome)
USAGE = Codec(TokenUsage, outcome_pb2.TokenUsage)
PRICE = Codec(ModelPrice, run_pb2.ModelPrice)
DECISION = Codec(Decision, run_pb2.Decision)
PARAMS = Codec(GenerationParams, run_pb2.GenerationParams)
PROMPT = Codec(Prompt, sample_pb2.Prompt)
CODE_CHECK = Codec(CodeCheck, sample_pb2.CodeCheck)
ROLLOUT_SPEC = Codec(RolloutSpec, rollout_pb2.RolloutSpec)
BUDGET_USE = Codec(BudgetUse, work_messages_pb2.BudgetUse)
EARLIER_USE = Codec(
    EarlierUse,
    work_messages_pb2.ReportBudgetUseResponse,
    names={"used": "earlier", "executions": "earlier_executions"},
    unpaired={"problem", "is_refused"},
)
RAN_TESTS = Codec(RanTests, rollout_pb2.RanTests)
ROLLOUT_TASK = Codec(RolloutTask, rollout_pb2.RolloutTask)
SAMPLE = Codec(Sample, sample_pb2.Sample)
SCORING = Codec(TaskScoring, sample_pb2.TaskScoring)
GROUP = Codec(TaskGroup, sample_pb2.TaskGroup)
MODEL = Codec(ModelInfo, model_pb2.ModelInfo)
LOAD = Codec(EngineLoad, model_pb2.EngineLoad)
COUNTS = Codec(RunCounts, work_messages_pb2.ProgressReport, unpaired={"run_id", "shards", "answer_bytes"})
