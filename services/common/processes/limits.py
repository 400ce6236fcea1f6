"""Limits that a process sets itself before it reads what users send."""

import resource


def limit_resources(
    *, address_bytes: int | None = None, data_bytes: int | None = None, cpu_seconds: int | None = None
) -> None:
    """Limit this process and those that it starts; none writes a core dump. Limits are only lowered.

    Addresses include what libraries reserve and never use; data do not.
    """
    limits = {
        resource.RLIMIT_AS: address_bytes,
        resource.RLIMIT_DATA: data_bytes,
        resource.RLIMIT_CPU: cpu_seconds,
        resource.RLIMIT_CORE: 0,
    }
    for name, wanted in limits.items():
        if wanted is None:
            continue
        _, maximum = resource.getrlimit(name)
        limit = wanted if maximum == resource.RLIM_INFINITY else min(wanted, maximum)
        resource.setrlimit(name, (limit, limit))
