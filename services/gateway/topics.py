"""Connects the topics of the gateway: who may call, what is forwarded, and what is served over HTTP."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

import grpc

from services.common.api_keys import Pepper
from services.common.clock import SystemClock
from services.common.process import usable_caller_key
from services.gateway.auth.admission import Admission, CallSlots, RequestLimit
from services.gateway.auth.audit_trail import AuditTrail
from services.gateway.auth.follow_keys import FollowKeys
from services.gateway.auth.identity import Identity
from services.gateway.auth.key_ring import KeyRing
from services.gateway.auth.oidc.provider import Client, Provider
from services.gateway.auth.oidc.sign_in import OidcSignIn
from services.gateway.auth.request_counts import WrongKeys
from services.gateway.auth.sessions import Sessions
from services.gateway.auth.settings_keys import SettingsKeys
from services.gateway.auth.trusted_proxies import TrustedProxies
from services.gateway.backends.calls import RESULTS, SCHEDULER, Results, Scheduler
from services.gateway.backends.health import BackendHealth
from services.gateway.grpc_proxy.forwarded_services import ForwardedService, public_services
from services.gateway.http.paths import (
    DATASETS_PAGE,
    FILES,
    IMPORTS,
    ORDER_PAGE,
    PUBLIC_FORMS,
    ROLLOUT_TASKS,
    ROLLOUTS,
    SUITE_PAGES,
    SUITES,
    UPLOAD_PREVIEWS,
    UPLOADS,
)
from services.gateway.pages.asset_files import Assets
from services.gateway.pages.html import Html
from services.gateway.pages.live.views import LiveViews
from services.gateway.pages.runs.live import LiveRuns
from services.gateway.server.app import HttpParts, PageParts
from services.gateway.server.middleware import BodyLimit
from services.gateway.server.trusted_sources import TrustedNames
from services.gateway.settings import GatewaySettings

# A key or the name of a theme, and an address.
_PUBLIC_FORM_BYTES = 16 * 1024
# All that is entered comes back in several links of the page.
_ORDER_FORM_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Connections:
    """Channels to the backends."""

    scheduler: grpc.aio.Channel
    results: grpc.aio.Channel


@dataclass(frozen=True, slots=True, kw_only=True)
class Topics:
    """`forwarded` are the services of the public gRPC API, `http` the parts of the HTTP application."""

    forwarded: Sequence[ForwardedService]
    http: HttpParts
    health: BackendHealth

    def stops(self) -> Sequence[Callable[[], Awaitable[None]]]:
        """Stops the tasks that follow runs for open pages."""
        return (self.http.pages.live_runs.stop, self.http.pages.live_views.stop)


def _provider(settings: GatewaySettings) -> OidcSignIn | None:
    if not settings.oidc_issuer:
        return None
    # It loads cryptography, which most gateways need not.
    from services.gateway.auth.oidc.tokens import ClaimRules, Tokens  # noqa: PLC0415  # only for a provider

    clock, pepper = SystemClock(), Pepper(caller_key=usable_caller_key(settings.caller_key), purpose=b"oidc")
    client = Client(
        client_id=settings.oidc_client_id,
        secret=settings.oidc_client_secret.get_secret_value(),
        redirect_url=settings.oidc_redirect_url,
        scopes=settings.oidc_scopes,
    )
    rules = ClaimRules(
        issuer=settings.oidc_issuer,
        audiences=(settings.oidc_client_id, *settings.oidc_audiences),
        user_claim=settings.oidc_user_claim,
        groups_claim=settings.oidc_groups_claim,
        roles=settings.oidc_roles,
        default_role=settings.oidc_default_role,
    )
    provider = Provider(issuer=settings.oidc_issuer, client=client, clock=clock)
    tokens = Tokens(rules=rules, clock=clock)
    return OidcSignIn(provider=provider, tokens=tokens, pepper=pepper, clock=clock)


def make_topics(settings: GatewaySettings, connections: Connections) -> Topics:
    timeout_seconds = settings.call_timeout_seconds
    scheduler = Scheduler(channel=connections.scheduler, timeout_seconds=timeout_seconds)
    results = Results(channel=connections.results, timeout_seconds=timeout_seconds)
    health = BackendHealth(
        channels={SCHEDULER: connections.scheduler, RESULTS: connections.results}, keeps_streams=SCHEDULER
    )
    ring = KeyRing(clock=SystemClock(), pepper=Pepper(caller_key=usable_caller_key(settings.caller_key)))
    admission = Admission(
        identity=_identity(settings, ring),
        keys=FollowKeys(ring=ring, scheduler=scheduler),
        limit=RequestLimit(scheduler=scheduler, clock=SystemClock()),
        slots=_call_slots(settings),
        wrong_keys=WrongKeys(clock=SystemClock()),
        trail=AuditTrail(scheduler=scheduler, clock=SystemClock()),
        proxies=TrustedProxies(networks=settings.trusted_proxies),
        provider=_provider(settings),
    )
    http = HttpParts(
        scheduler=scheduler,
        results=results,
        health=health,
        admission=admission,
        body_limit=_body_limit(settings),
        sockets=replace(admission, slots=_socket_slots(settings)),
        # Those without a key take no slots of users.
        public_forms=replace(admission, slots=_call_slots(settings)),
        pages=_page_parts(scheduler, results),
        trusted=TrustedNames(hosts=settings.allowed_hosts, origins=settings.allowed_origins),
        clock=SystemClock(),
    )
    forwarded = public_services(connections.scheduler, connections.results, admission)
    return Topics(forwarded=forwarded, http=http, health=health)


def _identity(settings: GatewaySettings, ring: KeyRing) -> Identity:
    """Codes of sessions and of keys in the settings are of a kind of their own."""
    pepper = Pepper(caller_key=usable_caller_key(settings.caller_key), purpose=b"sessions")
    of_settings = SettingsKeys(api_keys=settings.api_keys, operators=settings.operators, pepper=pepper)
    has_provider = bool(settings.oidc_issuer)
    by_provider = timedelta(minutes=settings.oidc_session_minutes) if has_provider else None
    sessions = Sessions(
        keys=of_settings, ring=ring, pepper=pepper, clock=SystemClock(), by_provider=by_provider
    )
    return Identity(settings=of_settings, ring=ring, sessions=sessions, has_provider=has_provider)


def _page_parts(scheduler: Scheduler, results: Results) -> PageParts:
    assets = Assets.load()
    html = Html(assets=assets)
    render = html.renderer("runs/live_part")
    live_runs = LiveRuns(scheduler=scheduler, results=results, clock=SystemClock(), render=render)
    live_views = LiveViews(clock=SystemClock())
    return PageParts(assets=assets, html=html, live_runs=live_runs, live_views=live_views)


def _call_slots(settings: GatewaySettings) -> CallSlots:
    return CallSlots(
        max_calls=settings.max_calls,
        max_calls_per_user=settings.max_calls_per_user,
        max_bytes=settings.max_bytes,
        max_bytes_per_user=settings.max_bytes_per_user,
    )


def _socket_slots(settings: GatewaySettings) -> CallSlots:
    """Sockets have no bodies."""
    most, most_per_user = settings.max_live_pages, settings.max_live_pages_per_user
    return CallSlots(max_calls=most, max_calls_per_user=most_per_user, max_bytes=0, max_bytes_per_user=0)


def _body_limit(settings: GatewaySettings) -> BodyLimit:
    by_path = {
        SUITES: settings.max_suite_body_bytes,
        ROLLOUTS: settings.max_suite_body_bytes,
        ROLLOUT_TASKS: settings.max_tasks_body_bytes,
        **dict.fromkeys(SUITE_PAGES, settings.max_suite_body_bytes),
        UPLOADS: settings.max_dataset_body_bytes,
        # Only the beginning is read.
        UPLOAD_PREVIEWS: settings.max_dataset_body_bytes,
        DATASETS_PAGE: settings.max_dataset_body_bytes,
        FILES: settings.max_batch_file_body_bytes,
        IMPORTS: settings.max_dataset_body_bytes,
        **dict.fromkeys(PUBLIC_FORMS, _PUBLIC_FORM_BYTES),
        ORDER_PAGE: _ORDER_FORM_BYTES,
    }
    return BodyLimit(
        max_bytes=settings.max_body_bytes,
        by_path=by_path,
        streamed=(UPLOADS, UPLOAD_PREVIEWS, DATASETS_PAGE, FILES, ROLLOUT_TASKS, IMPORTS),
    )
