"""Limits of the processes that read what users send. They import little, so that a process starts quickly."""

import resource


def limit_resources(memory_bytes: int, cpu_seconds: int) -> None:
    """Limit this process and those that it starts; none writes a core dump. Limits are only lowered."""
    limits = {
        resource.RLIMIT_AS: memory_bytes,
        resource.RLIMIT_CPU: cpu_seconds,
        resource.RLIMIT_CORE: 0,
    }
    for name, wanted in limits.items():
        _, maximum = resource.getrlimit(name)
        limit = wanted if maximum == resource.RLIM_INFINITY else min(wanted, maximum)
        resource.setrlimit(name, (limit, limit))
