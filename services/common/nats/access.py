"""How a service reaches NATS and proves who it is: servers, credentials and certificates."""

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, Self

from services.common.errors import DomainError, ErrorKind


class NatsFileUnusable(DomainError, kind=ErrorKind.CONFLICT):
    """{setting}: {path} cannot be used: {problem}. Correct the file or the setting."""


class NatsSettings(Protocol):
    """The settings of a service that uses NATS."""

    @property
    def nats_url(self) -> str: ...

    @property
    def nats_credentials_file(self) -> Path | None: ...

    @property
    def nats_ca_file(self) -> Path | None: ...

    @property
    def nats_certificate_file(self) -> Path | None: ...

    @property
    def nats_key_file(self) -> Path | None: ...


@dataclass(frozen=True, slots=True)
class NatsAccess:
    """`urls` are servers of one cluster; a user and password in them is repeated in each."""

    urls: tuple[str, ...]
    credentials_file: Path | None = None
    ca_file: Path | None = None
    certificate_file: Path | None = None
    key_file: Path | None = None

    @classmethod
    def of(cls, settings: NatsSettings) -> Self:
        urls = tuple(url.strip() for url in settings.nats_url.split(",") if url.strip())
        return cls(
            urls,
            credentials_file=settings.nats_credentials_file,
            ca_file=settings.nats_ca_file,
            certificate_file=settings.nats_certificate_file,
            key_file=settings.nats_key_file,
        )

    @classmethod
    def of_url(cls, url: str) -> Self:
        return cls((url,))

    @property
    def addresses(self) -> str:
        """Addresses without users and passwords."""
        return ", ".join(url.rsplit("@", 1)[-1] for url in self.urls)

    def options(self) -> dict[str, Any]:
        """Options of `nats.connect`. Raises NatsFileUnusable."""
        options: dict[str, Any] = {}
        if self.credentials_file is not None:
            with _usable("PROCTOR_NATS_CREDENTIALS_FILE", self.credentials_file):
                self.credentials_file.read_bytes()
            options["user_credentials"] = str(self.credentials_file)
        if self.key_file is not None and self.certificate_file is None:
            problem = "PROCTOR_NATS_CERTIFICATE_FILE is empty"
            raise NatsFileUnusable(setting="PROCTOR_NATS_KEY_FILE", path=str(self.key_file), problem=problem)
        if self.has_tls_files:
            options["tls"] = self.tls()
        return options

    @property
    def has_tls_files(self) -> bool:
        return self.ca_file is not None or self.certificate_file is not None

    @property
    def needs_tls(self) -> bool:
        """A URL with `tls://` alone is verified by the authorities of the system."""
        return self.has_tls_files or any(url.startswith("tls://") for url in self.urls)

    def tls(self) -> ssl.SSLContext:
        """A context of the files as they are now. Raises NatsFileUnusable."""
        context = ssl.create_default_context()
        if self.ca_file is not None:
            with _usable("PROCTOR_NATS_CA_FILE", self.ca_file):
                context.load_verify_locations(self.ca_file)
        if self.certificate_file is not None:
            with _usable("PROCTOR_NATS_CERTIFICATE_FILE", self.certificate_file):
                context.load_cert_chain(self.certificate_file, self.key_file)
        return context


@contextmanager
def _usable(setting: str, path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:  # an ssl.SSLError is one
        problem = error.strerror or "it cannot be read"
        raise NatsFileUnusable(setting=setting, path=str(path), problem=problem) from error
