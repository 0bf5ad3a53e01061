# SPDX-License-Identifier: Apache-2.0
"""Child processes. Each is started in a process group of its own, its output goes to a file, its
CPU time (with that of the children it waited for) is known when it has ended, and whatever
happens it ends: a Crew ends what it started, by process group, and nothing else."""
import os
import signal
import subprocess
import time

POLL_S = 0.002


class Failed(Exception):
    """A contender or the link did not do what it should; the text is for the results."""


class GaveUp(Failed):
    """A contender gave up by itself on a link that loses packets: that is a result (late), no fault."""


class Child:
    def __init__(self, name, command, log):
        self.name, self.log_path = name, log
        self.returncode = None
        self.cpu_s = 0.0
        self.started_ns = time.monotonic_ns()
        self.ended_ns = None
        with open(log, "wb") as out, open(log + ".err", "wb") as err:
            self._popen = subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL,
                                           stdout=out, stderr=err, start_new_session=True)
        self.pid = self._popen.pid

    def poll(self):
        """The exit code (negative: a signal), or None while it runs."""
        if self.returncode is None:
            pid, status, usage = os.wait4(self.pid, os.WNOHANG)
            if pid:
                self.ended_ns = time.monotonic_ns()
                self.returncode = os.waitstatus_to_exitcode(status)
                self._popen.returncode = self.returncode  # subprocess need not wait any more
                self.cpu_s = usage.ru_utime + usage.ru_stime
        return self.returncode

    def wait(self, timeout_s, watch=None):
        """True when it has ended; calls watch() while it waits."""
        deadline = time.monotonic() + timeout_s
        while self.poll() is None:
            if time.monotonic() >= deadline:
                return False
            if watch:
                watch()
            time.sleep(POLL_S)
        return True

    def _signal(self, sig):
        try:
            os.killpg(self.pid, sig)
        except ProcessLookupError:
            pass

    def stop(self, sig=signal.SIGTERM, grace_s=3.0):
        """Ends it and what it started; a leader that is gone may have left its group."""
        if self.poll() is None:
            self._signal(sig)
            if not self.wait(grace_s):
                self._signal(signal.SIGKILL)
                self.wait(5.0)
        self._signal(signal.SIGKILL)

    def text(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as file:
            return file.read()

    def trouble(self):
        """Its last words, for a message."""
        with open(self.log_path + ".err", encoding="utf-8", errors="replace") as file:
            said = (file.read() or self.text()).strip().splitlines()
        return f"{self.name} (exit {self.returncode}): " + " | ".join(said[-3:])[-300:]


class Crew:
    """The children of one record."""

    def __init__(self, directory):
        self.directory = directory
        self.children = []

    def start(self, name, command):
        log = os.path.join(self.directory, f"{len(self.children):03d}-{name}.log")
        child = Child(name, command, log)
        self.children.append(child)
        return child

    def dismiss(self):
        for child in reversed(self.children):
            child.stop(grace_s=1.0)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.dismiss()


def is_listening(pid, port, udp):
    """Whether a socket listens on that port in the network namespace of pid."""
    state = "07" if udp else "0A"
    for name in ("udp", "udp6") if udp else ("tcp", "tcp6"):
        try:
            with open(f"/proc/{pid}/net/{name}", encoding="ascii") as file:
                for line in file.readlines()[1:]:
                    words = line.split()
                    if words[3] == state and int(words[1].rsplit(":", 1)[1], 16) == port:
                        return True
        except OSError:
            pass
    return False


def await_port(child, port, udp=False, timeout_s=5.0):
    deadline = time.monotonic() + timeout_s
    while not is_listening(child.pid, port, udp):
        if child.poll() is not None:
            raise Failed(f"it ended at once: {child.trouble()}")
        if time.monotonic() >= deadline:
            raise Failed(f"{child.name} did not listen on port {port} within {timeout_s:g} s")
        time.sleep(POLL_S)


def run(command, timeout_s=20):
    """Output of a short command that must succeed."""
    try:
        done = subprocess.run([str(w) for w in command], capture_output=True, text=True,
                              timeout=timeout_s, stdin=subprocess.DEVNULL, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Failed(f"{command[0]}: {error}") from error
    if done.returncode:
        raise Failed(f"{' '.join(map(str, command))}: {(done.stderr or done.stdout).strip()[-300:]}")
    return done.stdout
