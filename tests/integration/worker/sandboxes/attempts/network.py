"""Attempts at networks, sockets and memory shared with others."""

from tests.integration.worker.sandboxes.attempts.attempt import Attempt

ATTEMPTS = (
    Attempt(
        "reaches the host's loopback",
        'attempt("loopback", lambda: socket.create_connection(("127.0.0.1", host_port), 1))',
        outside=True,
    ),
    Attempt(
        "reaches other machines",
        """
        for address in (("1.1.1.1", 53), ("169.254.169.254", 80), ("10.0.0.1", 80), ("172.17.0.1", 80)):
            attempt(address, lambda: socket.create_connection(address, 1))
        datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        attempt("datagram", lambda: datagrams.sendto(b"x", ("1.1.1.1", 53)))
        attempt("names", lambda: socket.getaddrinfo("example.com", 80))
        """,
    ),
    Attempt(
        "reaches an abstract socket of the host",
        """
        own = socket.socket(socket.AF_UNIX)
        attempt("abstract", lambda: own.connect("\\0" + abstract_name) or 1)
        """,
        outside=True,
    ),
    Attempt(
        "reaches a socket file of the host",
        """
        own = socket.socket(socket.AF_UNIX)
        attempt("file", lambda: own.connect(socket_file) or 1)
        """,
        outside=True,
    ),
    Attempt(
        "opens sockets beside the internet's",
        """
        for family, kind, protocol in ((40, 1, 0), (17, 3, 3), (38, 5, 0), (2, 3, 1), (16, 3, 12), (29, 3, 1),
        (15, 3, 2)): attempt(family, lambda: socket.socket(family, kind, protocol))
        """,
        outside=True,
        by_filter=True,
    ),
    Attempt(
        "changes its network",
        """
        attempt("tun", lambda: os.open("/dev/net/tun", os.O_RDWR))
        attempt("ip", lambda: subprocess.run(["ip", "link", "add", "x", "type", "dummy"], capture_output=True
            ).returncode == 0 or None)
        """,
    ),
    Attempt(
        "shares memory with another sandbox",
        """
        libc.shmget.restype = ctypes.c_int
        if libc.shmget(0x1234, 4096, 0) >= 0:
            escaped("System V")
        attempt("posix", lambda: open("/dev/shm/of-another").read())
        """,
    ),
)
