#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Files between two namespaces while the path misbehaves: loss, an outage that ends, one
that does not, UDP filtered, ends killed. Each case ends in the file, digest equal, or in
one clear message and a non-zero exit; nothing hangs.

  faults.py SDR_BINARY [CASE ...]
"""
import hashlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from cases import run, sh

TAG = "sdrt%d" % os.getpid()
A, B = TAG + "a", TAG + "b"
IP_A, IP_B = "10.231.9.1", "10.231.9.2"
IP6_B = "fd00:5d12::2"
SDR = ""


def up():
    for ns in (A, B):
        sh("ip", "netns", "add", ns)
        sh("ip", "-n", ns, "link", "set", "lo", "up")
    sh("ip", "link", "add", "v0", "netns", A, "type", "veth", "peer", "name", "v0", "netns", B)
    for ns, ip, ip6 in ((A, IP_A, "fd00:5d12::1"), (B, IP_B, IP6_B)):
        # One packet at a time, so that a loss is one packet.
        subprocess.run(["ip", "netns", "exec", ns, "ethtool", "-K", "v0", "gso", "off", "tso", "off",
                        "gro", "off", "tx-udp-segmentation", "off"],
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        sh("ip", "-n", ns, "addr", "add", ip + "/24", "dev", "v0")
        sh("ip", "-n", ns, "addr", "add", ip6 + "/64", "dev", "v0", "nodad")
        sh("ip", "-n", ns, "link", "set", "v0", "up")


def down():
    for ns in (A, B):
        subprocess.run(["ip", "netns", "del", ns], stderr=subprocess.DEVNULL, check=False)


def rule(ns, text):
    """Drops what arrives in ns and matches; an empty text drops nothing any more."""
    script = "table inet t\ndelete table inet t\n"
    if text:
        script += "table inet t {\n chain c {\n type filter hook input priority 0\n %s\n }\n}\n" % text
    subprocess.run(["ip", "netns", "exec", ns, "nft", "-f", "-"], input=script, text=True, check=True)


class Command:
    """`sdr` in a namespace, what it says in a file."""

    def __init__(self, ns, log, *args):
        self.log = log
        with open(log, "wb") as out:
            self.proc = subprocess.Popen(["ip", "netns", "exec", ns, SDR, *args], stdout=out,
                                         stderr=subprocess.STDOUT)

    def said(self):
        with open(self.log, encoding="utf-8", errors="replace") as file:
            return file.read()

    def wait_for(self, text, timeout=60):
        until = time.monotonic() + timeout
        while text not in self.said():
            assert self.proc.poll() is None, "ended before '%s':\n%s" % (text, self.said())
            assert time.monotonic() < until, "no '%s' in %d s:\n%s" % (text, timeout, self.said())
            time.sleep(0.02)

    def end(self, timeout):
        """Exit code, and all that it said."""
        try:
            self.proc.wait(timeout)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError("hung for %d s:\n%s" % (timeout, self.said())) from None
        return self.proc.returncode, self.said()

    def kill(self):
        self.proc.kill()
        self.proc.wait()


def digest(path):
    return hashlib.sha256(open(path, "rb").read()).hexdigest()


class Work:
    def __init__(self, mbytes):
        self.dir = tempfile.mkdtemp(prefix=TAG)
        self.src = os.path.join(self.dir, "file.bin")
        self.dst = os.path.join(self.dir, "in")
        os.mkdir(self.dst)
        with open(self.src, "wb") as f:
            for _ in range(mbytes):
                f.write(os.urandom(1 << 20))

    def arrived(self):
        return os.path.join(self.dst, "file.bin")

    def equal(self):
        assert digest(self.src) == digest(self.arrived()), "the file differs"

    def absent(self):
        assert not os.path.exists(self.arrived()), "a partial file looks complete"

    def gone(self):
        shutil.rmtree(self.dir)


def transfer(mbytes, fault, host=IP_B, send_args=(), recv_args=(), timeout=100):
    """A transfer during which fault(sender, receiver) happens. (work, sender's, receiver's end)"""
    work = Work(mbytes)
    recv = Command(B, os.path.join(work.dir, "recv"), "recv", "--once", "--dir", work.dst, *recv_args)
    both = [recv]
    try:
        recv.wait_for("listening")
        send = Command(A, os.path.join(work.dir, "send"), "send", *send_args, work.src, host)
        both.append(send)
        fault(send, recv)
        return work, send.end(timeout), recv.end(timeout)
    finally:
        for command in both:
            command.kill()
        rule(A, "")
        rule(B, "")


def under_way(recv):
    recv.wait_for("receiving from")
    time.sleep(0.5)  # of some seconds


def ok(done):
    rc, out = done
    assert rc == 0, "exit code %d:\n%s" % (rc, out)


def failed(done, *words):
    rc, out = done
    assert rc not in (0, None), "exit code 0, should have failed:\n%s" % out
    assert any(w in out.lower() for w in words), "no word of %s in:\n%s" % (words, out)


def case_clean_v6():
    work, s, r = transfer(32, lambda *_: None, host="[%s]" % IP6_B)
    ok(s), ok(r), work.equal(), work.gone()


def case_loss_30_percent():
    rule(A, "udp dport != 1 numgen random mod 100 < 30 drop")
    rule(B, "udp dport 4792 numgen random mod 100 < 30 drop")
    work, s, r = transfer(8, lambda *_: None)
    ok(s), ok(r), work.equal(), work.gone()


def case_dead_for_2_s():
    def fault(_, recv):
        under_way(recv)
        rule(B, "udp dport 4792 drop")
        rule(A, "meta l4proto udp drop")
        time.sleep(2)
        rule(B, "")
        rule(A, "")
    work, s, r = transfer(32, fault, send_args=("--rate", "100Mbit"))
    ok(s), ok(r), work.equal(), work.gone()


def case_dead_for_good():
    def fault(_, recv):
        under_way(recv)
        rule(B, "drop")
        rule(A, "drop")
    work, s, r = transfer(64, fault, send_args=("--rate", "50Mbit", "--dead-after", "5s"),
                          recv_args=("--dead-after", "5s"))
    failed(s, "answer", "dead", "silen")
    failed(r, "answer", "dead", "silen")
    work.absent(), work.gone()


def case_udp_filtered():
    rule(B, "udp dport 4792 drop")
    work, s, r = transfer(1, lambda send, recv: (send.proc.wait(), recv.proc.terminate()),
                          send_args=("--connect-timeout", "3s"))
    failed(s, "udp")
    work.absent(), work.gone()


def case_receiver_killed():
    work, s, _ = transfer(64, lambda send, recv: (under_way(recv), recv.kill()),
                          send_args=("--rate", "50Mbit"))
    failed(s, "peer", "receiver", "closed", "reset", "gone")
    work.absent(), work.gone()


def case_sender_killed():
    work, s, r = transfer(64, lambda send, recv: (under_way(recv), send.kill()),
                          send_args=("--rate", "50Mbit"))
    failed(r, "peer", "sender", "closed", "reset", "gone")
    work.absent(), work.gone()


def main():
    global SDR
    SDR = os.path.abspath(sys.argv[1])
    run(globals(), sys.argv[2:], up, down)


if __name__ == "__main__":
    # Ended from outside: what was made is removed all the same.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    main()
