"""Tokens of the provider as callers: the signature, who it is for and until when, and the role of groups."""

import hashlib
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from joserfc import jwt
from joserfc.errors import ExpiredTokenError, InvalidKeyIdError, JoseError
from joserfc.jwk import Key, KeySet, import_key

from proctor.values.names.user import Caller, Role, is_user_name
from services.common.clock import Clock
from services.common.structured_logs import get_logger
from services.gateway.auth.oidc.provider import UnknownTokenKey
from services.gateway.http.errors import NoRoleByGroups, TokenOver, TokenUnknown

log = get_logger()

# Asymmetric ones alone: with a symmetric one, the public key would sign.
_ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
# Between the clocks of the provider and of this machine.
_LEEWAY_SECONDS = 60
# Some 2 MB. A token is sent with each request, and its signature takes some 50 µs.
_MAX_VERIFIED = 4096


@dataclass(frozen=True, slots=True)
class ClaimRules:
    """What tokens must say. `roles` maps groups to roles; who is in none of them has `default_role`.

    A token is for one of the `audiences`.
    """

    issuer: str
    audiences: tuple[str, ...]
    user_claim: str
    groups_claim: str
    roles: Mapping[str, Role]
    default_role: Role | None


class Tokens:
    """Verifies tokens with the keys that were read last."""

    def __init__(self, rules: ClaimRules, clock: Clock) -> None:
        self._rules = rules
        self._clock = clock
        self._keys: KeySet | None = None
        self._verified: OrderedDict[bytes, Caller] = OrderedDict()
        self._claims = jwt.JWTClaimsRegistry(
            now=self._now,
            leeway=_LEEWAY_SECONDS,
            iss={"essential": True, "value": rules.issuer},
            aud={"essential": True, "values": list(rules.audiences)},
            exp={"essential": True},
            sub={"essential": True},
        )

    def learn(self, keys: Mapping[str, Any]) -> None:
        """Takes the key set of the provider in place of the earlier one. Raises ValueError."""
        try:
            # A key of another use is none of tokens.
            signing = [each for each in keys["keys"] if each.get("use", "sig") == "sig"]
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"no key set: {error!r}") from error
        known = [key for each in signing if (key := _known(each))]
        if not known:
            raise ValueError("no key set: it has no key that signs by a known algorithm")
        self._keys = KeySet(known)
        # What a key signed that is none any more is refused.
        self._verified.clear()

    def caller_of(self, token: str) -> Caller:
        """Raises `UnknownTokenKey`, `TokenUnknown`, `TokenOver` or `NoRoleByGroups`."""
        digest = hashlib.sha256(token.encode(errors="replace")).digest()
        known = self._verified.get(digest)
        if known is not None:
            if self._now() >= known.ends:
                raise TokenOver
            return known
        claims = self.claims_of(token)
        ends_at = float(claims["exp"]) + _LEEWAY_SECONDS
        caller = replace(self.caller_by(claims), ends=ends_at)
        self._verified[digest] = caller
        if len(self._verified) > _MAX_VERIFIED:
            self._verified.popitem(last=False)
        return caller

    def claims_of(self, token: str) -> Mapping[str, Any]:
        """The claims of a token that is believed. Raises as `caller_of`."""
        if self._keys is None:
            raise UnknownTokenKey
        try:
            read = jwt.decode(token, self._keys, algorithms=_ALGORITHMS)
            self._claims.validate(read.claims)
        except InvalidKeyIdError as error:
            raise UnknownTokenKey from error
        except ExpiredTokenError as error:
            raise TokenOver from error
        except (JoseError, ValueError, TypeError) as error:
            raise TokenUnknown from error
        self._check_party(read.claims)
        return read.claims

    def _check_party(self, claims: Mapping[str, Any]) -> None:
        """A token that another program asked for is none of ours, though it may be for us too.

        Raises `TokenUnknown`. OpenID Connect Core 3.1.3.7: one for several audiences has to name the program.
        """
        audience, party = claims["aud"], claims.get("azp")
        is_of_several = isinstance(audience, list) and len(audience) > 1
        if party not in self._rules.audiences and (party is not None or is_of_several):
            raise TokenUnknown

    def caller_by(self, claims: Mapping[str, Any]) -> Caller:
        """Raises `TokenUnknown` for a user without a name, and `NoRoleByGroups`."""
        rules = self._rules
        name = claims.get(rules.user_claim)
        if not isinstance(name, str) or not is_user_name(name):
            raise TokenUnknown
        # An address that nobody has confirmed may be another's.
        if rules.user_claim == "email" and claims.get("email_verified") is not True:
            raise TokenUnknown
        groups = claims.get(rules.groups_claim, ())
        named = [groups] if isinstance(groups, str) else groups if isinstance(groups, list) else []
        roles = [rules.roles[each] for each in named if isinstance(each, str) and each in rules.roles]
        role = max(roles, default=rules.default_role)
        if role is None:
            raise NoRoleByGroups(user=name)
        return Caller(name, role, is_verified=True)

    def _now(self) -> int:
        return int(self._clock.now().timestamp())


def _known(key: Mapping[str, Any]) -> Key | None:
    """None for one of another kind, such as of a newer curve: tokens by the others are taken all the same."""
    try:
        return import_key(dict(key))
    except (JoseError, ValueError, KeyError, TypeError) as error:
        log.info("key of the sign-in provider not used", kid=str(key.get("kid"))[:100], error=repr(error))
        return None
