"""Errors of leases."""


class LeaseLost(Exception):
    """Another replica took the lease: the work is to end here."""
