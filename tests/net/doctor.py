#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`sdr doctor HOST` between two namespaces: what is wrong with the path is planted, and the
finding that should name it is looked for, with the command that mends it.

  doctor.py SDR_BINARY [CASE ...]
"""
import json
import os
import signal
import subprocess
import sys
import tempfile

from cases import run, sh

TAG = "sdrd%d" % os.getpid()
A, M, B = TAG + "a", TAG + "m", TAG + "b"  # a router between two hosts
IP_A, IP_B = "10.231.17.1", "10.231.18.2"
SDR = ""


def link(ns, dev, peer_ns, peer_dev):
    sh("ip", "link", "add", dev, "netns", ns, "type", "veth", "peer", "name", peer_dev, "netns", peer_ns)


def up():
    for ns in (A, M, B):
        sh("ip", "netns", "add", ns)
        sh("ip", "-n", ns, "link", "set", "lo", "up")
    link(A, "v0", M, "ma")
    link(M, "mb", B, "v0")
    for ns, dev, addr in ((A, "v0", IP_A), (M, "ma", "10.231.17.254"), (M, "mb", "10.231.18.254"),
                          (B, "v0", IP_B)):
        # One packet at a time: a router cuts no super-packet to the next link's MTU.
        subprocess.run(["ip", "netns", "exec", ns, "ethtool", "-K", dev, "gso", "off", "tso", "off",
                        "gro", "off", "tx-udp-segmentation", "off"],
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        sh("ip", "-n", ns, "addr", "add", addr + "/24", "dev", dev)
        sh("ip", "-n", ns, "link", "set", "dev", dev, "up")
    sh("ip", "-n", A, "route", "add", "default", "via", "10.231.17.254")
    sh("ip", "-n", B, "route", "add", "default", "via", "10.231.18.254")
    sh("ip", "netns", "exec", M, "sysctl", "-qw", "net.ipv4.ip_forward=1")


def down():
    for ns in (A, M, B):
        subprocess.run(["ip", "netns", "del", ns], stderr=subprocess.DEVNULL, check=False)


def rules(ns, text):
    """The namespace's one nft table; an empty text removes it."""
    script = "table inet t\ndelete table inet t\n"
    if text:
        script += "table inet t {\n%s\n}\n" % text
    subprocess.run(["ip", "netns", "exec", ns, "nft", "-f", "-"], input=script, text=True, check=True)


def middle_mtu(mtu):
    """What the router forwards to B; neither end's device knows of it."""
    sh("ip", "-n", M, "route", "replace", IP_B + "/32", "dev", "mb", "mtu", "lock", str(mtu))


class Server:
    """A listener of the `sdr` command in B."""

    def __init__(self, *args):
        self.proc = subprocess.Popen(["ip", "netns", "exec", B, SDR, *args], stdout=subprocess.DEVNULL,
                                     stderr=subprocess.PIPE, text=True)
        line = self.proc.stderr.readline()
        assert "listening" in line, line

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.proc.kill()
        self.proc.communicate()


def doctor(*args, timeout=100):
    """The exit code, and findings by id."""
    done = subprocess.run(["ip", "netns", "exec", A, SDR, "doctor", "--json", *args],
                          capture_output=True, text=True, timeout=timeout, check=False)
    assert done.stdout, "no output:\n" + done.stderr
    value = json.loads(done.stdout)
    bad = value["count"]["attention"] + value["count"]["fault"]
    assert done.returncode == (1 if bad else 0), "exit code %d with %d bad" % (done.returncode, bad)
    return value, {f["id"]: f for f in value["findings"]}


def expect(findings, ident, level, *words):
    assert ident in findings, "no finding %s" % ident
    f = findings[ident]
    assert f["level"] == level, "%s is %s, not %s: %s (%s)" % (
        ident, f["level"], level, f["what"], f["evidence"])
    text = " ".join([f["what"], f["evidence"] or "", f["why"] or ""] + f["fix"])
    for word in words:
        assert word in text, "no '%s' in %s: %s" % (word, ident, text)
    if level in ("attention", "fault"):
        assert f["fix"] and f["why"] and f["evidence"], "%s: no remedy" % ident


def case_clean():
    with Server("perf"):
        value, f = doctor(IP_B)
    for ident in ("tcp", "udp-path", "middle-packet", "full-packet", "nat", "bitmaps", "gso-path",
                  "bitmaps-here"):
        expect(f, ident, "ok")
    expect(f, "decode", "skipped", "no erasure codes")
    assert value["path"]["device"] == "v0" and value["path"]["local"] == IP_A
    assert value["path"]["stream_bytes"] == 16 << 20, value["path"]
    assert f["loss"]["level"] in ("ok", "note"), f["loss"]
    assert "dev-v0-mtu" in f


def case_only_recv_there():
    with tempfile.TemporaryDirectory(prefix=TAG) as into:
        with Server("recv", "--dir", into):
            _, f = doctor(IP_B)
    expect(f, "udp-path", "ok", "20 of 20")
    expect(f, "full-packet", "skipped", "sdr perf")
    expect(f, "line-rate", "skipped")


def case_nobody_listens():
    _, f = doctor(IP_B)
    expect(f, "tcp", "fault", "refuses", "sdr perf --port 4792")
    assert "udp-path" not in f


def case_host_is_silent():
    rules(B, "chain c { type filter hook input priority 0; tcp dport 4792 drop; }")
    _, f = doctor("--connect-timeout", "1s", IP_B)
    expect(f, "tcp", "fault", "does not answer", "tcp dport 4792 accept")


def case_udp_blocked():
    rules(B, "chain c { type filter hook input priority 0; udp dport 4792 drop; }")
    with Server("perf"):
        _, f = doctor("--connect-timeout", "2s", IP_B)
    expect(f, "tcp", "ok")
    expect(f, "udp-path", "fault", "0 of ", "UDP packets came back", "udp dport 4792 accept")
    expect(f, "bitmaps", "skipped")


def case_black_hole():
    """A link of 1280 in the middle, and nobody may say so."""
    middle_mtu(1280)
    rules(M, "chain c { type filter hook output priority 0; icmp type destination-unreachable drop; }")
    # TCP of the handshake is small; the path forgets nothing of it.
    with Server("perf"):
        value, f = doctor(IP_B)
    expect(f, "udp-path", "ok")
    expect(f, "middle-packet", "ok")
    expect(f, "full-packet", "fault", "do not arrive", "MTU 1280", "sdr perf --payload 1216")
    assert value["path"]["passing_payload_bytes"] == 1216
    assert value["path"]["stream_bytes"] == 16 << 20, "no stream with what passes"


def case_smaller_mtu_told():
    """The same, but the router says so."""
    middle_mtu(1280)
    with Server("perf"):
        _, f = doctor(IP_B)
    expect(f, "full-packet", "note", "1216")


def case_loss():
    rules(M, "chain c { type filter hook forward priority 0; "
             "udp dport 4792 meta length > 1000 numgen random mod 100 < 20 drop; }")
    with Server("perf"):
        _, f = doctor(IP_B)
    assert f["loss"]["level"] in ("note", "attention"), f["loss"]
    assert float(f["loss"]["what"].split()[-2]) > 10, f["loss"]


def case_nat():
    """From a private address to a public one."""
    sh("ip", "-n", B, "addr", "add", "192.0.2.9/32", "dev", "lo")
    sh("ip", "-n", M, "route", "add", "192.0.2.9/32", "via", IP_B)
    rules(M, "chain c { type nat hook postrouting priority 100; oifname mb masquerade; }")
    with Server("perf"):
        _, f = doctor("192.0.2.9")
    expect(f, "nat", "note", IP_A + " (private)", "192.0.2.9")
    expect(f, "full-packet", "ok")


def undo():
    for ns in (A, M, B):
        rules(ns, "")
    middle_mtu(1500)
    for ns in (A, B):
        sh("ip", "-n", ns, "route", "flush", "cache")
    subprocess.run(["ip", "-n", B, "addr", "del", "192.0.2.9/32", "dev", "lo"],
                   stderr=subprocess.DEVNULL, check=False)
    subprocess.run(["ip", "-n", M, "route", "del", "192.0.2.9/32"], stderr=subprocess.DEVNULL,
                   check=False)


def main():
    global SDR
    SDR = os.path.abspath(sys.argv[1])
    run(globals(), sys.argv[2:], up, down, undo)


if __name__ == "__main__":
    # Ended from outside: what was made is removed all the same.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    main()
