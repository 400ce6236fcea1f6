"""Errors of backups and of restoring them."""

from services.common.errors import DomainError, ErrorKind


class BackupRunning(DomainError, kind=ErrorKind.CONFLICT):
    """Another backup of this installation is running. Wait for its end, then try again."""


class BackupBroken(DomainError, kind=ErrorKind.UNAVAILABLE):
    """The connection to Postgres was lost, and objects may have been deleted meanwhile. Begin the backup
    again."""


class PostgresFailed(DomainError, kind=ErrorKind.UNAVAILABLE):
    """Postgres failed: {problem}. Begin again."""


class DatabasesApart(DomainError, kind=ErrorKind.CONFLICT):
    """Scheduler and results have no common point in time, since they use two databases. Back up each with the
    tools of its server, while no service runs."""


class PlaceInsideStore(DomainError, kind=ErrorKind.INVALID):
    """{place} lies inside the object store {store}, so each backup would hold those before it. Choose another
    place."""


class NoBackup(DomainError, kind=ErrorKind.NOT_FOUND):
    """{place} has no backup.json: it is no backup, or one that was cut off. Choose another backup."""


class BackupUnreadable(DomainError, kind=ErrorKind.INVALID):
    """The backup {place} is damaged: {problem}. Choose another backup."""


class BackupTooNew(DomainError, kind=ErrorKind.CONFLICT):
    """The backup is of a newer release ({release}), with migration {migration} of {schema}. Install that
    release."""


class SchemaDiffers(DomainError, kind=ErrorKind.CONFLICT):
    """The backup has other columns of {table} than release {release} makes. Install the release that made
    it."""


class NotEmpty(DomainError, kind=ErrorKind.CONFLICT):
    """The installation is not empty: {what}. Restore into a new one."""


class SchedulerRunning(DomainError, kind=ErrorKind.CONFLICT):
    """A scheduler runs on this installation. Stop its services, then restore."""
