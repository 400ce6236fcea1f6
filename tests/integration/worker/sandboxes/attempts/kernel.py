"""Attempts at namespaces, capabilities and rare parts of the kernel."""

from tests.integration.worker.sandboxes.attempts.attempt import Attempt

ATTEMPTS = (
    Attempt(
        "mounts",
        """
        works("tmpfs", libc.mount(b"none", b"/work", b"tmpfs", 0, None))
        works("bind", libc.mount(b"/usr", b"/work", None, 4096, None))
        works("remount", libc.mount(None, b"/", None, 32 | 4096, None))
        works("proc", libc.mount(b"proc", b"/proc", b"proc", 0, None))
        works("umount", libc.umount2(b"/proc/sys", 2))
        """,
    ),
    Attempt(
        "mounts by the new calls",
        """
        works("fsopen", call(430, 430, b"tmpfs", 0))
        works("open_tree", call(428, 428, -100, b"/", 1))
        works("fspick", call(433, 433, -100, b"/proc", 0))
        """,
    ),
    Attempt(
        "changes its root",
        """
        works("chroot", libc.chroot(b"/work"))
        works("pivot_root", call(155, 41, b"/work", b"/work"))
        """,
    ),
    Attempt(
        "makes namespaces",
        """
        for flag in (0x10000000, 0x00020000, 0x20000000, 0x40000000, 0x08000000, 0x02000000, 0x10020000):
            works(hex(flag), libc.unshare(flag))
        command = ["unshare", "-Ur", "id"]
        attempt("unshare", lambda: subprocess.run(command, capture_output=True).returncode == 0 or None)
        """,
        by_filter=True,
    ),
    Attempt(
        "makes namespaces by clone",
        """
        child = call(56, 220, 0x10000000 | signal.SIGCHLD, 0, 0, 0, 0)
        if child == 0:
            os._exit(0)
        works("clone", child)
        class Arguments(ctypes.Structure):
            _fields_ = [(str(one), ctypes.c_uint64) for one in range(8)]
        arguments = Arguments(0x10000000, 0, 0, 0, signal.SIGCHLD, 0, 0, 0)
        child = call(435, 435, ctypes.byref(arguments), ctypes.sizeof(arguments))
        if child == 0:
            os._exit(0)
        works("clone3", child)
        """,
        by_filter=True,
    ),
    Attempt(
        "joins namespaces",
        """
        for kind in ("mnt", "pid", "net", "user"):
            attempt(kind, lambda: call(308, 268, os.open(f"/proc/1/ns/{kind}", os.O_RDONLY), 0) >= 0 or None)
        """,
    ),
    Attempt(
        "traces processes and reads their memory",
        """
        for process in (1, os.getppid()):
            works("attach", libc.ptrace(16, process, None, None))
            works("seize", libc.ptrace(0x4206, process, None, None))
            local = ctypes.create_string_buffer(8)
            class Vector(ctypes.Structure):
                _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]
            vector = Vector(ctypes.addressof(local), 8)
            works("vm", call(310, 270, process, ctypes.byref(vector), 1, ctypes.byref(vector), 1, 0))
        works("kcmp", call(312, 272, os.getpid(), 1, 0, 0, 0))
        """,
        by_filter=True,
    ),
    Attempt(
        "uses the keyring",
        """
        works("add_key", call(248, 217, b"user", b"planted", b"x", 1, -3))
        works("keyctl", call(250, 219, 0, -3, 1))
        """,
        outside=True,
        by_filter=True,
    ),
    Attempt(
        "loads programs into the kernel",
        """
        works("bpf", call(321, 280, 0, ctypes.create_string_buffer(72), 72))
        event = ctypes.create_string_buffer(struct.pack("II", 1, 112) + b"\\0" * 104)
        works("perf", call(298, 241, event, 0, -1, -1, 0))
        works("module", call(175, 105, ctypes.create_string_buffer(8), 8, b""))
        works("kexec", call(246, 104, 0, 0, None, 0))
        """,
    ),
    Attempt(
        "uses rare asynchronous calls",
        """
        works("io_uring", call(425, 425, 4, ctypes.create_string_buffer(120)))
        works("userfaultfd", call(323, 282, 0))
        works("fanotify", call(300, 262, 0, 0))
        works("memfd_secret", call(447, 447, 0))
        """,
        outside=True,
        by_filter=True,
    ),
    Attempt(
        "opens files by handle",
        """
        handle = ctypes.create_string_buffer(struct.pack("Ii", 8, 1) + struct.pack("II", 2, 0))
        works("open_by_handle_at", call(304, 265, 3, handle, 0))
        class Handle(ctypes.Structure):
            _fields_ = [("size", ctypes.c_uint), ("kind", ctypes.c_int), ("content", ctypes.c_char * 128)]
        made, mount = Handle(128, 0), ctypes.c_int()
        works("name_to_handle_at", call(303, 264, -100, b"/usr", ctypes.byref(made), ctypes.byref(mount), 0))
        """,
    ),
    Attempt(
        "sets the clock",
        """
        now = struct.pack("qq", 1_000_000_000, 0)
        works("clock_settime", call(227, 112, 0, now))
        works("settimeofday", call(164, 170, now, None))
        works("adjtimex", call(159, 171, ctypes.create_string_buffer(struct.pack("I", 1) + b"\\0" * 300)))
        """,
    ),
    Attempt(
        "restarts the machine",
        """
        works("reboot", call(169, 142, 0xfee1dead, 672274793, 0, None))
        works("swapon", call(167, 224, b"/work", 0))
        works("acct", call(163, 89, b"/work/accounts"))
        """,
    ),
    Attempt(
        "names the host",
        """
        attempt("sethostname", lambda: socket.sethostname("planted") or 1)
        works("setdomainname", call(171, 162, b"planted", 7))
        """,
    ),
    Attempt(
        "raises its limits",
        """
        most = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
        for kind in (resource.RLIMIT_NPROC, resource.RLIMIT_NOFILE, resource.RLIMIT_CORE):
            attempt(kind, lambda: resource.setrlimit(kind, most) or 1)
        attempt("nice", lambda: os.setpriority(os.PRIO_PROCESS, 0, -5) or 1)
        attempt("realtime", lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10)) or 1)
        attempt("oom", lambda: open("/proc/self/oom_score_adj", "w").write("-1000") and os.fsync(1))
        """,
    ),
    Attempt(
        "changes control groups",
        """
        known = ("cgroup.procs", "memory.limit_in_bytes", "memory.max", "pids.max", "release_agent")
        for folder, _, files in os.walk("/sys/fs/cgroup"):
            for file in files:
                if file in known:
                    attempt(f"{folder}/{file}", lambda: open(f"{folder}/{file}", "w"))
        """,
    ),
    Attempt(
        "drives the terminal",
        """
        import fcntl
        for number in range(3):
            attempt("TIOCSTI", lambda: fcntl.ioctl(number, 0x5412, b"x") is not None or None)
        attempt("tty", lambda: os.open("/dev/tty", os.O_RDWR))
        main, other = os.openpty()
        attempt("own terminal", lambda: fcntl.ioctl(other, 0x5412, b"x") is not None or None)
        attempt("linux", lambda: fcntl.ioctl(other, 0x541C, b"\\x03") is not None or None)
        """,
    ),
    Attempt(
        "calls by another table of system calls",
        """
        number = 0x40000000 + 41
        if platform.machine() == "x86_64":
            works("x32", libc.syscall(ctypes.c_long(number), 40, 1, 0))
        """,
    ),
)
