"""`proctor run` and `proctor watch`: order, follow, sum up."""

from collections.abc import Mapping

from proctor.cli.datasets.upload import dataset_of
from proctor.cli.gateway_address import find_gateway, program_name
from proctor.cli.options import AsJson, Gateway, RunId, User
from proctor.cli.render import words as run_words
from proctor.cli.render.documents import document
from proctor.cli.render.terminal import ExitCode, Terminal, code_of_run, execute, say
from proctor.cli.results.figures import figures_so_far, print_summary
from proctor.cli.runs import follow as interrupts
from proctor.cli.runs import options as given
from proctor.cli.runs.follow import Ask, follow_run, viewer_for
from proctor.cli.runs.order import DatasetTerms, Form, OrderOptions, Selection, order_of
from proctor.client.errors import Refused
from proctor.client.proctor_client import ProctorClient
from proctor.v1 import run_pb2, scheduler_service_pb2


def run(
    *,
    model: given.Model,
    suite: given.SuiteName = "",
    dataset: given.Dataset = "",
    base_url: given.BaseUrl = "",
    task: given.Tasks = None,
    metric: given.Metrics = None,
    limit: given.Limit = None,
    num_fewshot: given.Shots = None,
    rollouts: given.Rollouts = None,
    alias: given.Aliases = None,
    window: given.Window = "",
    project: given.Project = 0,
    priority: given.Priority = "",
    scoring: given.Scoring = "auto",
    chat: given.Chat = None,
    truncate_left: given.TruncateLeft = False,
    reuse: given.Reuse = False,
    stream: given.Stream = False,
    max_cost: given.MaxCost = None,
    temperature: given.Temperature = None,
    max_tokens: given.MaxTokens = None,
    seed: given.Seed = None,
    param: given.Params = None,
    detach: given.Detach = False,
    gateway: Gateway = None,
    user: User = "",
    as_json: AsJson = False,
) -> None:
    """Examine a model by a suite or a data set: live progress, then the figures. Ctrl-C asks what to do."""
    selection = Selection(suite, task or (), limit, num_fewshot, rollouts, dataset)
    form = Form(scoring, chat, truncate_left, reuse, stream)
    params = {"temperature": temperature, "max_tokens": max_tokens, "seed": seed}
    terms = DatasetTerms(metric or (), alias or (), window)
    options = OrderOptions(
        selection, model, form, params, param or (), project, priority, max_cost, base_url, terms
    )
    terminal = Terminal(as_json)

    async def work() -> ExitCode:
        order = order_of(options)
        async with ProctorClient(find_gateway(gateway), user=user) as client:
            return await _settle_and_follow(client, order, terminal, is_detached=detach)

    execute(terminal, work)


def watch(run_id: RunId, gateway: Gateway = None, as_json: AsJson = False) -> None:
    """Follow a run to its end, then show its figures."""
    terminal = Terminal(as_json)

    async def work() -> ExitCode:
        async with ProctorClient(find_gateway(gateway)) as client:
            # A gateway that was never there is told soon; only one that goes away is looked for.
            await client.get_run(run_id)
            return await follow_and_report(client, run_id, terminal, interrupts.detach)

    execute(terminal, work)


async def _settle_and_follow(
    client: ProctorClient, order: run_pb2.RunOrder, terminal: Terminal, *, is_detached: bool
) -> ExitCode:
    """A file in the place of a data set is uploaded first."""
    if order.dataset_id:
        dataset_id = await dataset_of(client, order.dataset_id, terminal)
        if dataset_id is None:
            return ExitCode.REFUSED
        order.dataset_id = dataset_id
    try:
        return await submit_and_follow(client, order, terminal, is_detached=is_detached)
    except Refused as error:
        if error.reason == "MODEL_MISMATCH" and "line_model" in error.facts:
            hint = f"{error.message} On the command line: --alias {error.facts['line_model']}."
            raise Refused(hint, error.reason, error.facts) from error
        raise


async def submit_and_follow(
    client: ProctorClient,
    order: run_pb2.RunOrder,
    terminal: Terminal,
    *,
    is_detached: bool = False,
    unasked: Ask = interrupts.detach,
) -> ExitCode:
    """`unasked` answers a Ctrl-C where nobody can be asked."""
    submitted = await client.submit_run(order)
    run_id = submitted.run.run_id
    if is_detached:
        return _tell_detached(submitted.run, terminal, ExitCode.OK)
    say(terminal.progress, f"Run {run_id} was accepted{_expected(submitted)}.")
    return await follow_and_report(client, run_id, terminal, unasked)


def _expected(submitted: scheduler_service_pb2.SubmitRunResponse) -> str:
    expected = []
    if submitted.HasField("estimated_seconds"):
        expected.append(f"to take {run_words.duration(submitted.estimated_seconds)}")
    if submitted.HasField("estimated_cost"):
        expected.append(f"to cost {run_words.money(submitted.estimated_cost, submitted.run.price.currency)}")
    return f", expected {' and '.join(expected)}" if expected else ""


async def follow_and_report(client: ProctorClient, run_id: str, terminal: Terminal, unasked: Ask) -> ExitCode:
    ended = await follow_run(client, run_id, viewer_for(terminal, unasked))
    if ended is None:
        return _tell_detached(await client.get_run(run_id), terminal, ExitCode.INTERRUPTED)
    summary = await figures_so_far(client, run_id)
    if terminal.is_json:
        terminal.emit({"run": document(ended), "summary": document(summary)})
    else:
        print_summary(terminal.out, ended, summary)
    _tell_where_next(ended, terminal)
    return code_of_run(ended)


def _tell_detached(run: run_pb2.Run, terminal: Terminal, code: ExitCode) -> ExitCode:
    if terminal.is_json:
        terminal.emit({"run": document(run), "summary": None})
        return code
    say(terminal.out, f"The run {run.run_id} goes on.")
    _print_next(terminal, {f"watch {run.run_id}": "follow it", f"cancel {run.run_id}": "stop it"})
    return code


def _tell_where_next(run: run_pb2.Run, terminal: Terminal) -> None:
    if terminal.is_json:
        return
    retry = {f"retry {run.run_id}": "ask again for what is missing or failed"}
    is_completed = run.state == run_pb2.RUN_STATE_COMPLETED
    further = {}
    if is_completed or run.progress.completed:
        further[f"results {run.run_id} --outcomes"] = "what the model said"
    if run.order.dataset_id and further:
        further[f"export {run.run_id} --format jsonl -o answers.jsonl"] = "as a file"
    further["runs"] = "all runs"
    _print_next(terminal, further if is_completed else retry | further)


def _print_next(terminal: Terminal, commands: Mapping[str, str]) -> None:
    """Each command on a line of its own that is never folded, so that it can be copied."""
    lines = {f"  {program_name()} {command}": purpose for command, purpose in commands.items()}
    width = terminal.out.width
    widest = max(map(len, lines))
    # Aligned where there is room for it.
    widest = widest if widest + 2 + max(map(len, lines.values())) <= width else 0
    for line, purpose in lines.items():
        between = "  " if len(line) + 2 + len(purpose) <= width else "\n      "
        terminal.out.print(f"{line:{widest}}{between}{purpose}", style="dim", soft_wrap=True)
