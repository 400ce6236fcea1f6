"""The certificate of a service, its key and its authorities, in files that are renewed while it runs."""

import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, Self

from services.common.errors import InvalidSetting
from services.common.structured_logs import get_logger

# Certificates are renewed days before they end; calls are made thousands of times a second.
_POLL_SECONDS = 1.0
_VARIABLES = ("PROCTOR_TLS_CERTIFICATE_FILE", "PROCTOR_TLS_KEY_FILE", "PROCTOR_TLS_CA_FILE")

log = get_logger()


class TlsSettings(Protocol):
    """The settings of a service that calls others, or is called by them."""

    @property
    def tls_certificate_file(self) -> Path | None: ...

    @property
    def tls_key_file(self) -> Path | None: ...

    @property
    def tls_ca_file(self) -> Path | None: ...


@dataclass(frozen=True, slots=True)
class Certificates:
    """PEM of the own certificate with its chain, of its key, and of the authorities that are trusted."""

    chain: bytes
    key: bytes = field(repr=False)
    authorities: bytes


class CertificateFiles:
    """Reads the files again when one of them has changed."""

    def __init__(self, certificate: Path, key: Path, authorities: Path) -> None:
        """Raises InvalidSetting where they cannot be used."""
        self._paths = dict(zip(_VARIABLES, (certificate, key, authorities), strict=True))
        self._stamp = self._stamps()
        self._read = self._usable()
        self._looked_at = time.monotonic()

    @classmethod
    def of(cls, settings: TlsSettings) -> Self | None:
        """None where none of them is set. Raises InvalidSetting where only some are."""
        given = (settings.tls_certificate_file, settings.tls_key_file, settings.tls_ca_file)
        if not any(given):
            return None
        for variable, path in zip(_VARIABLES, given, strict=True):
            if path is None:
                others = " and ".join(name for name in _VARIABLES if name != variable)
                raise InvalidSetting(setting=variable, problem=f"it is empty; it belongs with {others}")
        certificate, key, authorities = (path for path in given if path is not None)
        return cls(certificate, key, authorities)

    def current(self) -> Certificates:
        """Content of the files, at most a second old. Unusable files leave the last content."""
        now = time.monotonic()
        if now < self._looked_at + _POLL_SECONDS:
            return self._read
        self._looked_at = now
        try:
            stamp = self._stamps()
            if stamp != self._stamp:
                read = self._usable()
                # A renewal in between would leave a key beside the certificate of another.
                if self._stamps() == stamp:
                    self._stamp, self._read = stamp, read
                    log.info("certificates renewed")
        except InvalidSetting as error:
            log.warning("certificates not renewed", message=error.message)
        return self._read

    def _stamps(self) -> Mapping[str, tuple[int, int]]:
        """Shows which files there are. Links are followed: Kubernetes renews a volume by another link."""
        stamps = {}
        for variable, path in self._paths.items():
            try:
                found = path.stat()
            except OSError as error:
                raise _unusable(variable, path, error) from error
            stamps[variable] = (found.st_ino, found.st_mtime_ns)
        return stamps

    def _usable(self) -> Certificates:
        """The content of the files, whose key is that of the certificate."""
        content = []
        for variable, path in self._paths.items():
            try:
                content.append(path.read_bytes())
            except OSError as error:
                raise _unusable(variable, path, error) from error
        certificate, key, authorities = self._paths.values()
        variable = _VARIABLES[0]
        context = ssl.create_default_context()
        try:
            context.load_cert_chain(certificate, key)
            variable = _VARIABLES[2]
            context.load_verify_locations(authorities)
        except OSError as error:  # an ssl.SSLError is one
            raise _unusable(variable, self._paths[variable], error) from error
        return Certificates(*content)


def _unusable(variable: str, path: Path, error: OSError) -> InvalidSetting:
    reason = getattr(error, "reason", None) or error.strerror or "it cannot be read"
    return InvalidSetting(setting=variable, problem=f"{path}: {reason}")
