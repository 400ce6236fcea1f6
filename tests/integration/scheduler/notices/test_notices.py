"""Notices on a real Postgres, to real receivers: what is told to whom, and sent until it is taken."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import datetime, timedelta
from uuid import uuid4

import asyncpg
import pytest
import pytest_asyncio

from proctor.values.names.notices import NoticeChannel, NoticeEvent, NoticeScope
from proctor.values.run import RunState
from services.common.errors import InvalidParameter, OperatorsOnly
from services.common.postgres import PostgresSession
from services.scheduler.leadership.leader_election import FencingToken, LeadershipLost
from services.scheduler.notices.dispatch_notices import KEPT, LEASE
from services.scheduler.notices.errors import NoticeTargetNotFound
from services.scheduler.notices.http_sender import HttpPost, WebhookSender
from services.scheduler.notices.notice import MAX_ATTEMPTS, Notice, NoticeTarget
from services.scheduler.notices.postgres import PostgresOutbox
from services.scheduler.notices.smtp_sender import MailServer, SmtpSender
from services.scheduler.postgres import QUERIES
from services.scheduler.runs.lifecycle.run import RunError, RunFinish
from services.scheduler.runs.lifecycle.run_events import budget_nearly_spent, run_ended, stuck
from tests.fakes.callers import by
from tests.fakes.notices.receivers import HttpReceiver, http_receiver, is_signed, mail_receiver
from tests.fakes.notices.site import ANN, BOB, OLGA, SIGNER, NoticeSite, notice_site
from tests.fakes.scheduler.database import scheduler_database
from tests.fakes.scheduler.stores import add, admit, new_run

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def pool() -> AsyncIterator[asyncpg.Pool]:
    async with scheduler_database() as pool:
        yield pool


@pytest_asyncio.fixture(loop_scope="module")
async def receiver() -> AsyncIterator[HttpReceiver]:
    async with http_receiver() as opened:
        yield opened


@pytest_asyncio.fixture(loop_scope="module")
async def site(pool: asyncpg.Pool) -> NoticeSite:
    return await notice_site(pool)


async def test_end_of_a_run_is_posted_signed_and_stored_as_delivered(
    site: NoticeSite, receiver: HttpReceiver
) -> None:
    target = await site.target(receiver.url)
    run = await site.ended_run()
    await site.send()
    await site.send()
    [body], [headers] = receiver.bodies, receiver.headers
    told = json.loads(body)
    assert (told["type"], told["data"]["run_id"], told["data"]["state"]) == (
        "run_ended",
        run.run_id,
        "completed",
    )
    assert told["data"]["page"] == f"https://pages.example.org/runs/{run.run_id}"
    assert told["id"] == headers["webhook-id"]
    assert is_signed(SIGNER.secret(target.target_id), headers, body)
    assert not is_signed(SIGNER.secret(target.target_id), headers, body + b" ")
    assert not is_signed(SIGNER.secret(str(uuid4())), headers, body)
    [notice] = await site.ledger()
    assert (notice.notice_id, notice.attempts, notice.next_try_at) == (told["id"], 1, None)
    assert notice.delivered_at


async def test_failed_run_is_told_once_to_who_wants_ends_and_failures(
    site: NoticeSite, receiver: HttpReceiver
) -> None:
    await site.target(receiver.url)
    await site.ended_run(error=RunError("PROVIDER_REFUSED", "The provider refuses all requests."))
    await site.send()
    [body] = receiver.bodies
    told = json.loads(body)
    assert told["type"] == "run_failed"
    assert told["data"]["text"].endswith("has failed: The provider refuses all requests.")
    assert told["data"]["reason"] == "PROVIDER_REFUSED"


async def test_cancelled_run_is_told_and_a_second_call_adds_nothing(
    site: NoticeSite, receiver: HttpReceiver
) -> None:
    await site.target(receiver.url)
    run = await add(site.stores, new_run(user="ann"))
    for _ in range(2):
        await site.stores.runs.cancel(run.run_id, by(site.clock.now()))
    [notice] = await site.ledger()
    assert notice.facts["state"] == "cancelled"


async def test_what_is_not_committed_is_not_told(site: NoticeSite, receiver: HttpReceiver) -> None:
    await site.target(receiver.url)
    run = await add(site.stores, new_run(user="ann"))
    old = await site.stores.begin_term()
    await admit(site.stores, old, 100)
    await site.stores.begin_term()
    with pytest.raises(LeadershipLost):
        await site.stores.led.finish(old, run, RunFinish(RunState.FAILED, site.clock.now()))
    assert await site.ledger() == []


async def test_only_those_who_want_it_are_told(site: NoticeSite, receiver: HttpReceiver) -> None:
    await site.target(receiver.url, events=(NoticeEvent.RUN_FAILED,))
    await site.target(receiver.url, caller=BOB)
    await site.target(receiver.url, caller=BOB, scope=NoticeScope.PROJECT, project_id=7)
    await site.target(receiver.url, caller=OLGA, scope=NoticeScope.ALL)
    # In project 7, of ann.
    await site.ended_run()
    assert [len(await site.ledger(each)) for each in (ANN, BOB, OLGA)] == [0, 1, 1]
    await site.ended_run(project_id=8)
    assert [len(await site.ledger(each)) for each in (ANN, BOB, OLGA)] == [0, 1, 2]


async def test_receiver_that_is_away_is_tried_again_with_the_same_id(
    site: NoticeSite, receiver: HttpReceiver
) -> None:
    await site.target(receiver.url)
    await site.ended_run()
    receiver.answers = [500, 503]
    await site.send()
    [notice] = await site.ledger()
    assert (notice.attempts, notice.problem, notice.delivered_at) == (1, "It answered 500.", None)
    for _ in range(2):
        site.clock.seconds += 120
        await site.send()
    [notice] = await site.ledger()
    assert (notice.attempts, notice.problem) == (3, "")
    assert notice.delivered_at
    assert len({headers["webhook-id"] for headers in receiver.headers}) == 1
    assert len(receiver.bodies) == 3


async def test_receiver_that_never_answers_well_is_given_up(site: NoticeSite, receiver: HttpReceiver) -> None:
    await site.target(receiver.url)
    await site.ended_run()
    receiver.answers = [500] * 100
    started = site.clock.now()
    while (await site.ledger())[0].next_try_at:
        site.clock.seconds += 600
        await site.send()
    [notice] = await site.ledger()
    assert (notice.attempts, notice.delivered_at) == (MAX_ATTEMPTS, None)
    assert timedelta(hours=10) < site.clock.now() - started < timedelta(hours=20)
    token = await site.stores.begin_term()
    await site.outbox.delete_old(token, site.clock.now() - KEPT)
    assert len(await site.ledger()) == 1
    site.clock.seconds += KEPT.total_seconds() + 86400
    await site.outbox.delete_old(token, site.clock.now() - KEPT)
    assert await site.ledger() == []


async def test_receiver_that_is_gone_is_given_up_at_once(site: NoticeSite, receiver: HttpReceiver) -> None:
    await site.target(receiver.url)
    await site.ended_run()
    receiver.answers = [410]
    await site.send()
    [notice] = await site.ledger()
    assert (notice.attempts, notice.next_try_at, notice.problem) == (1, None, "It answered 410.")


async def test_redirect_is_not_followed(site: NoticeSite, receiver: HttpReceiver) -> None:
    await site.target(receiver.url)
    await site.ended_run()
    receiver.answers = [302]
    await site.send()
    assert receiver.paths == ["/hook"]
    assert (await site.ledger())[0].problem == "It answered 302. Redirects are not followed."


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]", "169.254.169.254", "[::ffff:127.0.0.1]"])
async def test_private_address_is_not_asked(site: NoticeSite, receiver: HttpReceiver, host: str) -> None:
    port = receiver.url.rpartition(":")[2]
    await site.target(f"http://{host}:{port}")
    await site.ended_run()
    post = HttpPost(())
    site.dispatch = replace(site.dispatch, senders={NoticeChannel.WEBHOOK: WebhookSender(post, SIGNER)})
    await site.send()
    assert receiver.bodies == []
    assert (await site.ledger())[0].problem.endswith("the operator has to allow it.")


async def test_slack_gets_a_text_without_markup(site: NoticeSite, receiver: HttpReceiver) -> None:
    await site.target(receiver.url, channel=NoticeChannel.SLACK)
    await site.ended_run(error=RunError("X", "<!channel> & more"))
    await site.send()
    [body] = receiver.bodies
    text = json.loads(body)["text"]
    assert "&lt;!channel&gt; &amp; more" in text
    assert "https://pages.example.org/runs/" in text


async def test_mail_is_sent_once_it_is_taken(site: NoticeSite) -> None:
    async with mail_receiver() as mail:
        server = MailServer("127.0.0.1", mail.port, "proctor@example.org", security="none")
        site.dispatch = replace(site.dispatch, senders={NoticeChannel.EMAIL: SmtpSender(server)})
        await site.target("ann@example.org", channel=NoticeChannel.EMAIL)
        await site.ended_run()
        mail.box.refusals.append("451 try later")
        await site.send()
        assert "try later" in (await site.ledger())[0].problem
        site.clock.seconds += 60
        await site.send()
        [(to, message)] = mail.box.mails
    [notice] = await site.ledger()
    assert to == ["ann@example.org"]
    assert message["Message-ID"] == f"<{notice.notice_id}@example.org>"
    assert message["Subject"].startswith("Proctor: The run of openai/fake on toy is completed")
    assert notice.delivered_at


@pytest.mark.parametrize("broken", ["one\r\ntwo", "one\u2028two", "one\x85two"])
async def test_text_of_several_lines_is_mailed_and_holds_up_no_other(
    site: NoticeSite, receiver: HttpReceiver, broken: str
) -> None:
    async with mail_receiver() as mail:
        server = MailServer("127.0.0.1", mail.port, "proctor@example.org", security="none")
        senders = {**site.dispatch.senders, NoticeChannel.EMAIL: SmtpSender(server)}
        site.dispatch = replace(site.dispatch, senders=senders)
        await site.target("ann@example.org", channel=NoticeChannel.EMAIL)
        await site.target(receiver.url)
        await site.ended_run(error=RunError("PROVIDER_REFUSED", broken))
        await site.send()
        [(_, message)] = mail.box.mails
    assert message["Subject"].endswith("has failed: one two")
    assert all(notice.delivered_at for notice in await site.ledger())


async def test_fault_in_one_attempt_is_not_that_of_the_others(
    site: NoticeSite, receiver: HttpReceiver
) -> None:
    class Faulty:
        async def send(self, target: NoticeTarget, notice: Notice, now: datetime) -> None:  # noqa: ARG002  # the port's
            raise RuntimeError("nobody expects this")

    senders = {**site.dispatch.senders, NoticeChannel.SLACK: Faulty()}
    site.dispatch = replace(site.dispatch, senders=senders)
    await site.target(receiver.url, channel=NoticeChannel.SLACK)
    webhook = await site.target(receiver.url)
    await site.ended_run()
    for _ in range(30):
        await site.send()
        site.clock.seconds += 3700
    assert len(receiver.bodies) == 1
    assert {notice.attempts for notice in await site.ledger() if notice.target_id == webhook.target_id} == {1}
    [faulty] = [notice for notice in await site.ledger() if notice.target_id != webhook.target_id]
    assert (faulty.attempts, faulty.next_try_at) == (MAX_ATTEMPTS, None)
    assert "the log of the scheduler" in faulty.problem


async def test_notice_that_ends_its_sender_is_given_up(site: NoticeSite, receiver: HttpReceiver) -> None:
    await site.target(receiver.url)
    await site.ended_run()
    token = await site.stores.begin_term()
    for _ in range(MAX_ATTEMPTS + 2):
        now = site.clock.now()
        await site.outbox.claim(token, now, now + LEASE)
        site.clock.seconds += LEASE.total_seconds() + 1
    [notice] = await site.ledger()
    assert (notice.attempts, notice.next_try_at) == (MAX_ATTEMPTS, None)


async def test_user_whose_targets_are_away_holds_up_no_other(
    site: NoticeSite, receiver: HttpReceiver
) -> None:
    for _ in range(10):
        await site.target("http://127.0.0.1:1/", caller=OLGA, scope=NoticeScope.ALL)
    for _ in range(10):
        await site.ended_run()
    await site.target(receiver.url, caller=ANN)
    for _ in range(20):
        await site.ended_run()
    assert await site.dispatch.send_due(await site.stores.begin_term())
    assert len(receiver.bodies) == 20


async def test_leader_that_ends_in_an_attempt_leaves_it_to_the_next(
    site: NoticeSite, receiver: HttpReceiver
) -> None:
    """At least once: the receiver has had it, and gets it again with the same id."""
    await site.target(receiver.url)
    await site.ended_run()
    old = await site.stores.begin_term()

    class Killed(PostgresOutbox):
        async def settle(self, token: FencingToken, notice: Notice) -> None:  # noqa: ARG002  # the port's
            raise asyncio.CancelledError

    session = PostgresSession(site.pool, QUERIES)
    with pytest.raises(asyncio.CancelledError):
        await replace(site.dispatch, outbox=Killed(session)).send_due(old)
    assert len(receiver.bodies) == 1
    await site.send()
    assert len(receiver.bodies) == 1
    site.clock.seconds += LEASE.total_seconds() + 1
    await site.send()
    assert len(receiver.bodies) == 2
    assert len({headers["webhook-id"] for headers in receiver.headers}) == 1
    assert (await site.ledger())[0].delivered_at


async def test_old_leader_sends_nothing(site: NoticeSite, receiver: HttpReceiver) -> None:
    await site.target(receiver.url)
    await site.ended_run()
    old = await site.stores.begin_term()
    await site.stores.begin_term()
    with pytest.raises(LeadershipLost):
        await site.dispatch.send_due(old)
    assert receiver.bodies == []


async def test_target_that_is_away_holds_up_no_other(site: NoticeSite, receiver: HttpReceiver) -> None:
    await site.target("http://127.0.0.1:1/", caller=ANN)
    await site.target(receiver.url, caller=ANN)
    for _ in range(60):
        await site.ended_run()
    token = await site.stores.begin_term()
    assert await site.dispatch.send_due(token)
    # Half of the first fifty are of each.
    assert len(receiver.bodies) == 25


async def test_budget_and_progress_are_told_once(site: NoticeSite, receiver: HttpReceiver) -> None:
    await site.target(
        receiver.url, events=(NoticeEvent.BUDGET_NEARLY_SPENT, NoticeEvent.QUEUE_STUCK, NoticeEvent.RUN_ENDED)
    )
    run = new_run(user="ann", max_cost=10.0)
    token = await site.stores.begin_term()
    for _ in range(2):
        await site.events.record(token, budget_nearly_spent(run, 8.2, site.clock.now()))
        await site.events.record(token, stuck(run, 5, site.clock.now()))
    await site.events.record(token, stuck(run, 6, site.clock.now()))
    assert len(await site.ledger()) == 3
    await site.events.record(token, run_ended(run, RunState.COMPLETED, site.clock.now()))
    again = replace(run, epoch=2)
    await site.events.record(token, run_ended(again, RunState.COMPLETED, site.clock.now()))
    assert len(await site.ledger()) == 5


async def test_test_goes_to_one_target(site: NoticeSite, receiver: HttpReceiver) -> None:
    target = await site.target(receiver.url, events=(NoticeEvent.RUN_FAILED,))
    await site.target(receiver.url)
    notice = await site.change.test(target.target_id, ANN)
    await site.send()
    assert [json.loads(body)["id"] for body in receiver.bodies] == [notice.notice_id]
    with pytest.raises(NoticeTargetNotFound):
        await site.change.test(target.target_id, BOB)
    with pytest.raises(NoticeTargetNotFound):
        await site.change.delete(target.target_id, OLGA)
    await site.change.delete(target.target_id, ANN)
    assert await site.ledger() == []


@pytest.mark.parametrize(
    ("channel", "address"),
    [
        (NoticeChannel.WEBHOOK, "ftp://example.org"),
        (NoticeChannel.WEBHOOK, "https://"),
        (NoticeChannel.WEBHOOK, "https://ann:pw@example.org"),
        (NoticeChannel.WEBHOOK, "https://example.org:99999"),
        (NoticeChannel.SLACK, "example.org"),
        (NoticeChannel.EMAIL, "ann"),
        (NoticeChannel.EMAIL, "ann@elsewhere.org"),
        (NoticeChannel.EMAIL, "ann@example.org\nBcc: all@example.org"),
        (NoticeChannel.EMAIL, "ann@example.org, bob@example.org"),
        (NoticeChannel.EMAIL, "=?utf-8?q?ann=40elsewhere.org=2C?=@example.org"),
        (NoticeChannel.EMAIL, "ann=?utf-8?b?Cg==?=@example.org"),
    ],
)
async def test_address_that_is_none_is_refused(
    site: NoticeSite, channel: NoticeChannel, address: str
) -> None:
    with pytest.raises(InvalidParameter, match=r"^address"):
        await site.target(address, channel=channel)


async def test_all_runs_are_for_operators_and_mail_for_installations_with_a_server(site: NoticeSite) -> None:
    with pytest.raises(OperatorsOnly):
        await site.target("https://example.org", scope=NoticeScope.ALL)
    site.change = replace(site.change, mail_domains=())
    with pytest.raises(InvalidParameter, match="channel is email"):
        await site.target("ann@example.org", channel=NoticeChannel.EMAIL)
    with pytest.raises(InvalidParameter, match="events must be some of"):
        await site.target("https://example.org", events=(NoticeEvent.TEST,))


async def test_address_is_shown_without_its_secret(site: NoticeSite) -> None:
    target = await site.target("https://hooks.slack.com/services/T0/B0/secret", channel=NoticeChannel.SLACK)
    assert target.shown_address == "https://hooks.slack.com/…"
    assert "secret" not in repr(target)
