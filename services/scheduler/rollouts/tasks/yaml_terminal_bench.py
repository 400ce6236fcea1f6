"""Task folders of Terminal-Bench 1: task.yaml, Dockerfile, run-tests.sh, tests/ and solution.sh."""

from collections.abc import Sequence

import yaml

from proctor.values.rollout import DEFAULT_TESTS_FOLDER, RolloutLimits, RolloutTask, VerifierKind
from services.scheduler.rollouts.tasks.dockerfiles.placed_files import (
    PlacedFiles,
    is_closed,
    place,
    workdir_facts,
)
from services.scheduler.rollouts.tasks.dockerfiles.read_dockerfile import DockerfileFacts, read_dockerfile
from services.scheduler.rollouts.tasks.errors import InvalidTask, UnsupportedTask
from services.scheduler.rollouts.tasks.fields import Fields
from services.scheduler.rollouts.tasks.named_folders import named_folders
from services.scheduler.rollouts.tasks.task_folder import FolderFile, TaskFolder, bundle_of

CONFIG = "task.yaml"
_COMPOSE = "docker-compose.yaml"
_RUN = f"{DEFAULT_TESTS_FOLDER}/run-tests.sh"
_PYTEST = "pytest"
# Parsers that read one word between two lines of the output, by the name in these lines.
_MARKED = {"swebench": "SWEBench", "sweperf": "SWE-Perf"}
# The reward is 1 where the word is PASSED, and 0 where it is another: more words are, as of a solution that
# prints such lines itself. Without both lines there is no reward: the tests did not come to their end.
_REWARD_OF_MARKS = """log=$(mktemp)
bash "$1" 2>&1 | tee "$log"
rm -f /logs/verifier/reward.txt /logs/verifier/reward.json
if grep -q "$2 results starts here" "$log" && grep -q "$2 results ends here" "$log"; then
  words=$(sed -n "/$2 results starts here/,/$2 results ends here/p" "$log" | sed '1d;$d' | tr -d ' \t\r\n')
  if [ "$words" = PASSED ]; then echo 1; else echo 0; fi > /logs/verifier/reward.txt
fi
"""
_IN_SHELL = (
    "run_tests_in_same_shell has no effect: its tests see what the agent's processes are only with "
    'verification = "same", and never the variables of its shell'
)
_KEYS = (
    *("instruction", "author_name", "author_email", "difficulty", "category", "tags", "parser_name"),
    *("max_agent_timeout_sec", "max_test_timeout_sec", "run_tests_in_same_shell", "disable_asciinema"),
    *("estimated_duration_sec", "expert_time_estimate_min", "junior_time_estimate_min"),
)


def read_terminal_bench(folder: TaskFolder, ordered_image: str = "") -> RolloutTask:
    """`ordered_image` is that of both sandboxes. Raises TaskError."""
    config = Fields(folder.name, CONFIG, _yaml(folder, CONFIG))
    config.note_others(*_KEYS)
    parser = config.text("parser_name", _PYTEST)
    if parser != _PYTEST and parser not in _MARKED:
        names = ", ".join([_PYTEST, *_MARKED])
        what, advice = f"{CONFIG}, parser_name {parser!r}", f"There are: {names}."
        raise UnsupportedTask(task=folder.name, what=what, advice=advice)
    notes = [_IN_SHELL] if config.flag("run_tests_in_same_shell", default=False) else []
    _refuse_services(folder)
    tests = {**folder.below("tests"), "run-tests.sh": FolderFile(folder.text("run-tests.sh").encode())}
    instruction = config.text("instruction")
    placed = _placed(folder, [*named_folders(instruction, tests)], is_read=not ordered_image)
    return RolloutTask(
        task_id=folder.name,
        instruction=instruction,
        verifier=VerifierKind.PYTEST_SUMMARY if parser == _PYTEST else VerifierKind.REWARD_FILE,
        workdir=placed.workdir,
        cwd=placed.cwd,
        tests_folder=DEFAULT_TESTS_FOLDER,
        test_command=_test_command(parser),
        environment={"TEST_DIR": DEFAULT_TESTS_FOLDER, **placed.environment},
        limits=RolloutLimits(
            agent_seconds=config.number("max_agent_timeout_sec", 360.0, minimum=1),
            verifier_seconds=config.number("max_test_timeout_sec", 60.0, minimum=1),
        ),
        workspace=bundle_of(placed.workspace),
        tests=bundle_of({**placed.tests, **tests}),
        solution=bundle_of(_solution(folder)),
        image=ordered_image,
        notes=(*placed.notes, *config.notes, *notes),
        others=bundle_of(placed.others),
        folders=placed.folders,
        setup=placed.setup,
        packages=placed.packages,
        context=bundle_of(folder.files) if placed.build.images else b"",
        build=placed.build,
        stages=placed.stages,
        stage_files=bundle_of(placed.stage_files),
    )


def _placed(folder: TaskFolder, named: Sequence[str], *, is_read: bool) -> PlacedFiles:
    image = DockerfileFacts()
    if "Dockerfile" in folder.files:
        image = (
            read_dockerfile(folder.name, folder.text("Dockerfile"), folder.files)
            if is_read
            else workdir_facts(folder, "Dockerfile")
        )
    if is_closed(image.workdir):
        problem = f"the working folder {image.workdir} is one of the system's."
        raise InvalidTask(folder.name, "Dockerfile", problem, "WORKDIR")
    return place(image, image.workdir, named)


def _test_command(parser: str) -> tuple[str, ...]:
    if parser == _PYTEST:
        return ("bash", _RUN)
    return ("bash", "-c", _REWARD_OF_MARKS, "bash", _RUN, _MARKED[parser])


def _yaml(folder: TaskFolder, file: str) -> dict[str, object]:
    try:
        values = yaml.load(folder.text(file), Loader=_WithoutAliases)  # noqa: S506  # a safe loader
    except (yaml.YAMLError, RecursionError) as error:
        raise InvalidTask(folder.name, file, "it is not YAML.") from error
    if not isinstance(values, dict):
        raise InvalidTask(folder.name, file, "it must be a YAML mapping.")
    return values


class _WithoutAliases(yaml.SafeLoader):
    """An alias may stand for a thousand others, each of which does so too."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.events.AliasEvent):
            raise yaml.YAMLError("aliases are not read")
        return super().compose_node(parent, index)


def _refuse_services(folder: TaskFolder) -> None:
    """One container is a sandbox; a second one would be what the first reaches over a network."""
    if _COMPOSE not in folder.files:
        return
    services = Fields(folder.name, _COMPOSE, _yaml(folder, _COMPOSE)).inner("services").values
    if len(services) > 1:
        what = f"{_COMPOSE} with the services {', '.join(map(str, services))}"
        raise UnsupportedTask(task=folder.name, what=what, advice="Only one service is.")


def _solution(folder: TaskFolder) -> dict[str, FolderFile]:
    if "solution.yaml" in folder.files:
        raise UnsupportedTask(task=folder.name, what="solution.yaml", advice="Write it as solution.sh.")
    return {"solve.sh": folder.files["solution.sh"]} if "solution.sh" in folder.files else {}
