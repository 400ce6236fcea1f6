"""The parts of a rollout of a coding task: the task with its files and its verifier, and the agent."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from proctor.values.contract_enum import ContractEnum
from proctor.values.usage import ModelPrice, TokenUsage

_MIB = 1024**2
# Limits of an order. Each of its models makes a run of its own.
MAX_MODELS = 20
# The size of an archive that fits into a call without a stream.
MAX_ARCHIVE_BYTES = 2 * _MIB
# Each step sends the whole history again: cost grows with the square of the steps.
MAX_STEPS = 1000
# Of tests that ran: more are counted only.
MAX_RAN_NAMES = 1000
MAX_TOKENS = 100_000_000
MAX_COMMAND_SECONDS = 3600.0
MAX_PARALLEL = 10_000
MAX_VERSION_CHARACTERS = 100
# The folders of a set of tasks together; and a path in one: a quarter of PATH_MAX, since the sandbox puts
# folders of its own before it.
MAX_SET_FILES, MAX_SET_BYTES = 50_000, 512 * _MIB
MAX_PATH_BYTES = 1024
# Where the tests of a task are unpacked, unless it names another folder.
DEFAULT_TESTS_FOLDER = "/tests"
# Names of the artifacts of a rollout, the limits of their parts, and the form of the id of an execution.
TRAJECTORY, FILES, DIFF, LOG = "trajectory.json", "files.tar.gz", "diff.patch", "verifier.log"
PART_BYTES = 1024 * 1024
MAX_PARTS = 16
_EXECUTION = re.compile(r"[0-9a-f]{32}")


def is_execution(text: str) -> bool:
    return _EXECUTION.fullmatch(text) is not None


class VerifierKind(ContractEnum):
    """How the files that an agent left are judged."""

    REWARD_FILE = "reward_file", 1
    RUBRICS = "rubrics", 2
    PYTEST_SUMMARY = "pytest_summary", 3


class BundleKind(ContractEnum):
    """The files in a bundle: the agent's, those that judge, the solution, those of other folders, those
    that its image is built from, and those of the stages before the last one of its Dockerfile.
    """

    WORKSPACE = "workspace", 1
    TESTS = "tests", 2
    SOLUTION = "solution", 3
    OTHERS = "others", 4
    CONTEXT = "context", 5
    STAGES = "stages", 6


class AgentKind(ContractEnum):
    """Kind of the agent: the task's own solution, none, a model that writes commands, or a program.

    MINI speaks to its model as mini-swe-agent does, TERMINUS as Terminus 2 does.
    """

    ORACLE = "oracle", 1
    NONE = "none", 2
    SHELL = "shell", 3
    COMMAND = "command", 4
    MINI = "mini", 5
    TERMINUS = "terminus", 6

    @property
    def asks_no_model(self) -> bool:
        """Whether its answers are no model's, so that they count in no figure of one."""
        return bool(self.answers_instead)

    @property
    def answers_instead(self) -> str:
        """What stands where a model would, if none is asked; "" otherwise."""
        match self:
            case AgentKind.ORACLE:
                return "the tasks' own solutions"
            case AgentKind.NONE:
                return "no work on the tasks"
            case _:
                return ""


class VerificationPlace(ContractEnum):
    """The sandbox of the tests: a fresh one with the agent's working folder, or the agent's own."""

    FRESH = "fresh", 1
    SAME = "same", 2


@dataclass(frozen=True, slots=True)
class Rubric:
    """A part of a score. `scripts` are paths below the task's `cwd`; each is a file of pytest."""

    rubric_id: str
    criterion: str
    weight: float
    scripts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RanTests:
    """Tests that ran, skipped ones left out: how many, and their names as far as they are known.

    A name that several tests have, as those of one function with other parameters, is there several times.
    `failed` are those of which a failure was printed. `reward_uses`: how often files of the reward were
    opened, closed or made meanwhile; 0 where that is not known. `other_results`: how many results runners
    other than pytest printed.
    """

    count: int = 0
    names: tuple[str, ...] = ()
    failed: int = 0
    reward_uses: int = 0
    other_results: int = 0


@dataclass(frozen=True, slots=True)
class RolloutVerdict:
    """The verifier on the files that an agent left: `score` from 0 to 1, `detail` in one line.

    `suspicions` is how many reasons there are to look at the rollout before its score is believed.
    """

    score: float
    detail: str = ""
    suspicions: int = 0

    @property
    def is_passed(self) -> bool:
        return self.score >= 1.0


def suspicions_sentence(
    unsuspected: float | None, reward_unsuspected: float | None, answered: int, *, is_whole: bool
) -> str:
    """Says how many of the answers are suspicious and what the others score; empty where none is.

    `unsuspected` is the share of the others, a mean over tasks: where some of their rollouts failed (not
    `is_whole`), the count may be one beside the real one.
    """
    if unsuspected is None or unsuspected >= 1.0:
        return ""
    about = "" if is_whole else "about "
    without = "none" if reward_unsuspected is None else f"{reward_unsuspected:.3f}"
    count = round(answered * (1.0 - unsuspected))
    return f"{about}{count} of {answered} suspicious: score without them {without}"


@dataclass(frozen=True, slots=True)
class RolloutLimits:
    """Limits of a sandbox, and the seconds that agent and verifier have."""

    cpus: float = 1.0
    memory_bytes: int = 1024 * _MIB
    disk_bytes: int = 256 * _MIB
    agent_seconds: float = 1800.0
    verifier_seconds: float = 600.0


@dataclass(frozen=True, slots=True)
class Bundle:
    """Files of a task in the object store, by the SHA-256 of their bytes in hexadecimal digits."""

    kind: BundleKind
    digest: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class TaskArtifact:
    """A file or folder that an agent leaves, by its absolute path, without what `exclude` names."""

    source: str
    exclude: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RolloutStep:
    """One of several instructions, which an agent works on in turn, in one sandbox.

    Its tests judge what is there after it. Where a reward is below that of `min_rewards`, or is not there,
    the steps after it are left out. `artifacts` are judged besides those of the task.
    """

    name: str
    instruction: str
    agent_seconds: float
    verifier_seconds: float
    verifier_environment: Mapping[str, str] = field(default_factory=dict)
    min_rewards: Mapping[str, float] = field(default_factory=dict)
    artifacts: tuple[TaskArtifact, ...] = ()
    has_own_files: bool = False


@dataclass(frozen=True, slots=True)
class SetupStep:
    """A command that is executed on the files of a task before its agent begins."""

    command: tuple[str, ...]
    cwd: str
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CopiedPath:
    """A file or folder, or a pattern of them, that is copied from a stage. A `target` that ends with a slash
    is a folder for files; both are absolute paths.
    """

    source: str
    target: str


@dataclass(frozen=True, slots=True)
class BuiltStage:
    """A stage of a Dockerfile whose commands make files that the last stage copies.

    It is built in a sandbox of its own, with `folders` that are writable.
    """

    name: str
    workdir: str
    folders: tuple[str, ...] = ()
    setup: tuple[SetupStep, ...] = ()
    copies: tuple[CopiedPath, ...] = ()


@dataclass(frozen=True, slots=True)
class ImageBuild:
    """The build of an image by the Dockerfile of a task. `images`: it begins with them or copies from them.

    `fetches`: ADD reads addresses, which the engine itself does. `notes` of the task hold without it only.
    `left_out` are commands of RUN that are not executed without it, `unplaced` paths of files that the agent
    does not have then.
    """

    images: tuple[str, ...] = ()
    fetches: bool = False
    notes: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    unplaced: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RolloutTask:
    """`workspace`, `tests` and `solution` are tar files compressed by gzip; empty means none.

    Where they are stored as `bundles`, the three are empty until a worker fills them.

    The workspace is unpacked in `workdir`, and commands run in `cwd`. Tests are unpacked in `tests_folder`,
    of a second sandbox. Both sandboxes are of `image`; empty is the worker's own. A solution is unpacked in
    /solution, where `solve.sh` is executed. `notes` say in sentences what of the task's folder has no effect
    here.

    With `has_own_files` the verifier sees the workspace as it was, and of the agent's files the `artifacts`
    only. `verifier_image` is an image of its own, which holds the tests already where there are none here.

    `others` are files by their paths from the root, in `folders` outside of the working folder, which are
    collected too. `setup` is executed in the agent's sandbox on all files, before it begins. `packages` are
    those of Python that its image has, as pip reads them. `stages` are built before all else; `stage_files`
    are theirs, by paths from the root below `NAME/`. Where an engine builds images, `context` are the files
    of the Dockerfile's folder, in the place of workspace, others, setup, packages and stages.

    With `steps`, tests are in `shared` and `steps/NAME`, files that a step adds to the workspace in
    `workdirs/NAME`, both of the bundle of tests, and solutions in `steps/NAME`. The score is the mean over
    the steps that were judged, or that of the last of them (`scores_last_step`).

    `solved_tests` ran on the task's solution, where that was executed; those of a step as `NAME: test`.
    """

    task_id: str
    instruction: str
    verifier: VerifierKind
    workdir: str = "/app"
    cwd: str = "/app"
    tests_folder: str = DEFAULT_TESTS_FOLDER
    test_command: tuple[str, ...] = ()
    rubrics: tuple[Rubric, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    verifier_environment: Mapping[str, str] = field(default_factory=dict)
    limits: RolloutLimits = field(default_factory=RolloutLimits)
    workspace: bytes = b""
    tests: bytes = b""
    solution: bytes = b""
    notes: tuple[str, ...] = ()
    bundles: tuple[Bundle, ...] = ()
    image: str = ""
    has_own_files: bool = False
    artifacts: tuple[TaskArtifact, ...] = ()
    verifier_image: str = ""
    steps: tuple[RolloutStep, ...] = ()
    scores_last_step: bool = False
    others: bytes = b""
    folders: tuple[str, ...] = ()
    setup: tuple[SetupStep, ...] = ()
    solved_tests: RanTests = field(default_factory=RanTests)
    packages: tuple[str, ...] = ()
    context: bytes = b""
    build: ImageBuild = field(default_factory=ImageBuild)
    stages: tuple[BuiltStage, ...] = ()
    stage_files: bytes = b""

    def files(self) -> Mapping[BundleKind, bytes]:
        """The files that the task holds itself, by their kind."""
        files = {
            BundleKind.WORKSPACE: self.workspace,
            BundleKind.TESTS: self.tests,
            BundleKind.SOLUTION: self.solution,
            BundleKind.OTHERS: self.others,
            BundleKind.CONTEXT: self.context,
            BundleKind.STAGES: self.stage_files,
        }
        return {kind: content for kind, content in files.items() if content}

    def with_files(
        self, files: Mapping[BundleKind, bytes], bundles: tuple[Bundle, ...] = ()
    ) -> "RolloutTask":
        """The task with these files only, or with the bundles that stand for them."""
        return replace(
            self,
            workspace=files.get(BundleKind.WORKSPACE, b""),
            tests=files.get(BundleKind.TESTS, b""),
            solution=files.get(BundleKind.SOLUTION, b""),
            others=files.get(BundleKind.OTHERS, b""),
            context=files.get(BundleKind.CONTEXT, b""),
            stage_files=files.get(BundleKind.STAGES, b""),
            bundles=bundles,
        )


@dataclass(frozen=True, slots=True)
class RolloutAgent:
    """`max_steps` are answers of the model, `max_tokens` its tokens over all steps, prompts included.

    `max_cost` is in the currency of the price file; None means no limit. The time of an agent is its task's.
    A program is one of `agents.templates`, or a `command`; both with variables of its own. `version` is the
    one of the program that must be installed; empty takes any. `verification` is where the tests judge.
    """

    kind: AgentKind = AgentKind.SHELL
    max_steps: int = 50
    max_tokens: int = 500_000
    command_seconds: float = 60.0
    max_cost: float | None = None
    template: str = ""
    command: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    version: str = ""
    verification: VerificationPlace = VerificationPlace.FRESH


@dataclass(frozen=True, slots=True)
class BudgetUse:
    """Use of budgets by executions of a rollout: answers that were begun, their tokens, seconds of agents."""

    agent_steps: int = 0
    usage: TokenUsage = field(default_factory=TokenUsage)
    seconds: float = 0.0

    def plus(self, other: "BudgetUse") -> "BudgetUse":
        return BudgetUse(
            self.agent_steps + other.agent_steps,
            self.usage.plus(other.usage),
            self.seconds + other.seconds,
        )


@dataclass(frozen=True, slots=True)
class EarlierUse:
    """Use by executions that began before and have no outcome. `price` is the model's; None if unknown.

    `used` is that of the `executions` that were lost, perhaps by the rollout itself: they share its budgets.
    Executions that their workers left for another reason used the tokens `left`, and no budget.
    """

    used: BudgetUse = field(default_factory=BudgetUse)
    executions: int = 0
    price: ModelPrice | None = None
    left: TokenUsage = field(default_factory=TokenUsage)

    @property
    def usage(self) -> TokenUsage:
        return self.used.usage.plus(self.left)


@dataclass(frozen=True, slots=True)
class RolloutSpec:
    """Message content for one rollout, sent to a worker."""

    task: RolloutTask
    agent: RolloutAgent = field(default_factory=RolloutAgent)
