"""Attempts at files, processes and memory of others."""

from tests.integration.worker.sandboxes.attempts.attempt import Attempt

ATTEMPTS = (
    Attempt(
        "reads a file of the host", "attempt(secret_file, lambda: open(secret_file).read())", outside=True
    ),
    Attempt("reads the shadow file", 'attempt("shadow", lambda: open("/etc/shadow").read())'),
    Attempt(
        "reads another sandbox's file", 'attempt("other", lambda: open("/work/of-another").read() or None)'
    ),
    Attempt(
        "finds the worker's environment in any process",
        """
        for entry in os.listdir("/proc"):
            if entry.isdigit():
                attempt(entry, lambda: (secret_value in open(f"/proc/{entry}/environ").read()) or None)
        """,
        outside=True,
    ),
    Attempt(
        "sees processes of the host",
        """
        names = []
        for one in filter(str.isdigit, os.listdir("/proc")):
            try:
                names.append(open(f"/proc/{one}/cmdline").read())
            except OSError:
                pass  # It has ended since it was listed.
        if host_command in names:
            escaped(names)
        """,
        outside=True,
    ),
    Attempt(
        "writes where it must not",
        """
        for folder in ("/", "/usr", "/usr/bin", "/etc", "/dev", "/run", "/lib", "/proc/sys/kernel", "/bin"):
            attempt(folder, lambda: open(f"{folder}/planted", "w"))
        for file in ("/etc/passwd", "/usr/bin/env", "/bin/sh", "/etc/hosts"):
            attempt(file, lambda: open(file, "r+"))
        """,
    ),
    Attempt(
        "writes to sysctl",
        """
        for file in ("core_pattern", "hostname", "panic", "modprobe", "ns_last_pid"):
            attempt(file, lambda: open(f"/proc/sys/kernel/{file}", "w"))
        attempt("drop_caches", lambda: open("/proc/sys/vm/drop_caches", "w"))
        attempt("sysrq", lambda: open("/proc/sysrq-trigger", "w"))
        """,
    ),
    Attempt(
        "makes and opens devices",
        """
        import stat
        for number in ((1, 1), (254, 0), (8, 0)):
            attempt("mknod", lambda: os.mknod("/work/device", 0o600 | stat.S_IFBLK, os.makedev(*number)) or 1)
        for file in ("/dev/mem", "/dev/kmsg", "/dev/vda", "/dev/sda", "/dev/kvm", "/dev/fuse", "/dev/vsock"):
            attempt(file, lambda: open(file, "rb"))
        """,
    ),
    Attempt(
        "reads what the kernel says of itself",
        """
        attempt("kcore", lambda: open("/proc/kcore", "rb").read(1))
        attempt("kmsg", lambda: open("/proc/kmsg", "rb"))
        attempt("cmdline", lambda: open("/proc/cmdline").read() or None)
        buffer = ctypes.create_string_buffer(100)
        works("syslog", call(103, 116, 3, buffer, 100))
        """,
        by_filter=True,
    ),
    Attempt(
        "becomes root by a set-user-id program",
        """
        import shutil
        shutil.copy("/usr/bin/id", "/work/id")
        os.chmod("/work/id", 0o6755)
        for program in ("/work/id", "/usr/bin/su", "/usr/bin/sudo", "/usr/bin/mount", "/usr/bin/newgrp"):
            attempt(program, lambda: subprocess.run([program, "-u"], capture_output=True, timeout=2,
                stdin=subprocess.DEVNULL).stdout.strip() == b"0" or None)
        attempt("setuid", lambda: os.setuid(0) or 1)
        attempt("chown", lambda: os.chown("/work/id", 0, 0) or 1)
        """,
    ),
    Attempt(
        "finds open files that it was not given",
        """
        # The highest is that of the listing itself.
        for file in sorted(map(int, os.listdir("/proc/self/fd")))[3:-1]:
            escaped(file)
        def opened(process):
            files = os.listdir(f"/proc/{process}/fd")
            return set(os.readlink(f"/proc/{process}/fd/{file}") for file in files) - {"/dev/null"} or None
        for process in ("1", "2"):
            attempt(process, lambda: opened(process))
        """,
    ),
    Attempt(
        "changes its input behind the worker's back",
        """
        import stat
        # A pipe holds nothing that the worker reads again.
        if not stat.S_ISFIFO(os.fstat(0).st_mode):
            attempt("write", lambda: os.write(os.open("/proc/self/fd/0", os.O_RDWR), b"x"))
            attempt("truncate", lambda: os.truncate("/proc/self/fd/0", 0) or 1)
        """,
    ),
    Attempt(
        "sees a process as it enters, with what it holds",
        """
        end = time.monotonic() + 0.5
        known = {entry for entry in os.listdir("/proc") if entry.isdigit()}
        while time.monotonic() < end:
            for entry in set(os.listdir("/proc")) - known:
                if entry.isdigit():
                    attempt(entry, lambda: secret_value in open(f"/proc/{entry}/environ").read() or None)
                    attempt(entry, lambda: [one for one in os.listdir(f"/proc/{entry}/fd")
                        if "memfd:launcher" in os.readlink(f"/proc/{entry}/fd/{one}")] or None)
        """,
    ),
    Attempt(
        "follows links out",
        """
        for target in (secret_file, "/proc/1/root" + secret_file, "/proc/self/root" + secret_file):
            attempt("link", lambda: os.remove("/work/link"))
            os.symlink(target, "/work/link")
            attempt(target, lambda: open("/work/link").read())
        """,
    ),
)
