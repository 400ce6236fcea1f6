"""Joins the parts of notices."""

from collections.abc import Coroutine, Mapping
from dataclasses import dataclass

from proctor.values.names.notices import NoticeChannel
from services.common.errors import InvalidSetting
from services.common.grpc.server import Registration
from services.common.process import usable_caller_key
from services.scheduler.leadership.leader_election import FencingToken
from services.scheduler.notices.change_targets import ChangeTargets
from services.scheduler.notices.dispatch_notices import DispatchNotices
from services.scheduler.notices.grpc_api import SERVICE_NAME, GrpcNoticeApi
from services.scheduler.notices.http_addresses import networks_of
from services.scheduler.notices.http_sender import HttpPost, SlackSender, WebhookSender, WebhookSigner
from services.scheduler.notices.ports import NoticeSender
from services.scheduler.notices.postgres import PostgresNoticeTargets, PostgresOutbox
from services.scheduler.notices.smtp_sender import MailServer, SmtpSender
from services.scheduler.postgres import Connections
from services.scheduler.settings import SchedulerSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class NoticeParts:
    apis: Mapping[str, Registration]
    dispatch: DispatchNotices

    def leader_loops(self, token: FencingToken) -> Mapping[str, Coroutine[None, None, None]]:
        return {"send notices": self.dispatch.lead(token), "delete old notices": self.dispatch.sweep(token)}


def make_notices(settings: SchedulerSettings, connections: Connections) -> NoticeParts:
    session, clock = connections.postgres, connections.clock
    signer = WebhookSigner(caller_key=usable_caller_key(settings.caller_key))
    targets = PostgresNoticeTargets(session=session)
    mail = settings.mail_host
    domains = [each.strip().lower() for each in settings.mail_domains.split(",") if each.strip()]
    change = ChangeTargets(targets=targets, clock=clock, mail_domains=domains if mail else ())
    api = GrpcNoticeApi(change=change, targets=targets, secret_of=signer.secret)
    dispatch = DispatchNotices(
        outbox=PostgresOutbox(session=session),
        senders=_senders(settings, signer),
        clock=clock,
        public_url=settings.public_url.rstrip("/"),
    )
    return NoticeParts(apis={SERVICE_NAME: api.register}, dispatch=dispatch)


def _senders(settings: SchedulerSettings, signer: WebhookSigner) -> Mapping[NoticeChannel, NoticeSender]:
    """Raises `InvalidSetting`."""
    try:
        post = HttpPost(allowed=networks_of(settings.notice_networks))
    except ValueError as error:
        setting = "PROCTOR_SCHEDULER_NOTICE_NETWORKS"
        raise InvalidSetting(setting=setting, problem=str(error)) from error
    senders: dict[NoticeChannel, NoticeSender] = {
        NoticeChannel.WEBHOOK: WebhookSender(post=post, signer=signer),
        NoticeChannel.SLACK: SlackSender(post=post),
    }
    if settings.mail_host:
        server = MailServer(
            host=settings.mail_host,
            port=settings.mail_port,
            sender=settings.mail_sender,
            security=settings.mail_security,
            user=settings.mail_user,
            password=settings.mail_password.get_secret_value(),
        )
        senders[NoticeChannel.EMAIL] = SmtpSender(server=server)
    return senders
