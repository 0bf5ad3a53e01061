#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`sdr wan` from outside: links come up, carry what they should, lose what they should, change,
and go without a trace, however they end. Times are bounded from below only.

  link.py SDR_BINARY [traffic | life | CASE ...]
"""
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

SKIP = 77
TAG = "t%d" % os.getpid()
HERE = os.path.dirname(os.path.abspath(__file__))
SDR = ""
LINK = TAG + "-l"
SOON = 0.5  # seconds for an answer that must not come


# ---- helpers ------------------------------------------------------------------------

def sdr(*args, code=0, timeout=60, **more):
    """Runs a subcommand of `sdr wan`, checks its exit code; (stdout, stderr)."""
    done = subprocess.run([SDR, "wan", *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, timeout=timeout, check=False, stdin=subprocess.DEVNULL, **more)
    assert done.returncode == code, "sdr wan %s: exit code %d, not %d:\n%s%s" % (
        " ".join(args), done.returncode, code, done.stdout, done.stderr)
    assert "AddressSanitizer" not in done.stderr, done.stderr
    return done.stdout, done.stderr


def fails(*args, code=1, says, **more):
    err = sdr(*args, code=code, **more)[1]
    assert says in err, "sdr wan %s: says not '%s':\n%s" % (" ".join(args), says, err)


def up(*options, name=LINK):
    return json.loads(sdr("up", name, "--json", *options)[0])


def stat(name=LINK):
    return json.loads(sdr("stat", name, "--json")[0])


def flow(stats, start="a", path=0):
    """One direction of one path."""
    return [d for d in stats["directions"] if d["from"] == start and d["path"] == path][0]


def peer_words(name, end, args):
    return [SDR, "wan", "exec", name, end, "--", sys.executable, os.path.join(HERE, "peer.py"),
            *[str(a) for a in args]]


def peer(end, *args, name=LINK):
    done = subprocess.run(peer_words(name, end, args), stdout=subprocess.PIPE, text=True, timeout=120,
                          check=True)
    return json.loads(done.stdout)


class Server:
    """A peer that waits for the other end."""

    def __init__(self, end, *args, name=LINK):
        self.proc = subprocess.Popen(peer_words(name, end, args), stdin=subprocess.PIPE,
                                     stdout=subprocess.PIPE, text=True)
        assert self.proc.stdout.readline() == "ready\n"

    def result(self):
        """What it saw of all that was sent, once none of that is under way any more."""
        wait_for_empty_line()
        out = self.proc.communicate(timeout=120)[0]  # closes its input: nothing more will come
        return json.loads(out)


def wait_for_empty_line():
    """Twice the same: what was not yet read from a device at the first look is seen at the next."""
    seen = []

    def empty():
        directions = stat()["directions"]
        seen.append([d["offered_pkts"] for d in directions])
        return seen[-2:] == seen[-1:] * 2 and all(
            d["in_flight_pkts"] == d["queued_bytes"] == 0 for d in directions)
    wait_for("an empty line", empty)


def addresses(link):
    return [link["ends"]["b"]["ipv4"], link["ends"]["b"]["ipv6"]]


def no_trace(name=LINK):
    for path in ("/run/netns/%s-a" % name, "/run/netns/%s-b" % name, "/run/sdr-wan/%s" % name):
        assert not os.path.exists(path), "%s was left over" % path


def wait_for(what, test, seconds=60):
    until = time.monotonic() + seconds
    while not test():
        assert time.monotonic() < until, "%s: not in %d s" % (what, seconds)
        time.sleep(0.05)


def state_of(pid):
    """The letter of /proc: T is stopped."""
    with open("/proc/%d/stat" % pid, encoding="ascii", errors="replace") as file:
        return file.read().rsplit(")", 1)[1].split()[0]


def alive(pid):
    try:
        os.kill(pid, 0)
        return True
    except ProcessLookupError:
        return False


# ---- what crosses --------------------------------------------------------------------

def case_crosses():
    """ICMP, UDP, TCP over both versions of IP; never earlier than the delay."""
    link = up("--rtt", "20ms")
    assert flow(stat())["offered_pkts"] == 0, "a new link carries packets by itself"
    for host in addresses(link):
        times = peer("a", "ping", host, 5, 64)
        assert all(isinstance(t, int) and t >= 20_000_000 for t in times), times
        sink = Server("b", "udp-sink", 5000)
        peer("a", "udp-send", host, 5000, 100, 1200)
        assert sorted(sink.result()["came"]) == list(range(100))
        sink = Server("b", "tcp-sink", 5001)
        sent = peer("a", "tcp-send", host, 5001, 3_000_000)
        assert sent == sink.result()
    # TCP's last acknowledgements may still be under way when both ends have gone.
    wait_for_empty_line()
    s = stat()
    for start in "ab":
        d = flow(s, start)
        assert d["offered_pkts"] == d["delivered_pkts"] > 0, d
        assert d["lost_pkts"] == d["in_flight_pkts"] == d["queued_bytes"] == 0, d
        assert d["values"]["delay_ns"] == 10_000_000
    assert s["emulator"]["valid"] and s["emulator"]["late_ns"]["frames"] > 0, s["emulator"]
    assert "offered" in sdr("stat", LINK)[0]


def case_no_offload():
    """Packets one by one, in a device of another MTU."""
    link = up("--no-offload", "--mtu", "9000", "--rtt", "2ms")
    assert link["offloads"] == "none" and link["mtu_bytes"] == 9000
    sink = Server("b", "tcp-sink", 5001)
    sent = peer("a", "tcp-send", addresses(link)[0], 5001, 3_000_000)
    assert sent == sink.result()
    s = stat()["emulator"]
    assert s["frames"] == s["pieces"] >= 2 * 3_000_000 // 9000 // 2, s
    assert peer("a", "ping", addresses(link)[0], 1, 8900)[0] != "lost"


def case_garbled():
    """Bytes through TCP arrive equal, whatever happens to packets."""
    link = up("--rtt", "4ms", "--rate", "200Mbit", "--queue", "1MB", "--loss", "5%", "--duplicate",
              "5%,1ms", "--reorder", "5%,2ms", "--corrupt", "1%", "--jitter", "1ms",
              "--jitter-reorders")
    for host in addresses(link):
        sink = Server("b", "tcp-sink", 5001)
        sent = peer("a", "tcp-send", host, 5001, 2_000_000)
        assert sent == sink.result()
    d = flow(stat())
    for what in ("lost_pkts", "duplicated_pkts", "reordered_pkts", "corrupted_pkts"):
        assert d[what] > 0, (what, d)


def case_drop_list():
    link = up("--ab", "--drop", "0,5,7-9")
    sink = Server("b", "udp-sink", 5000)
    peer("a", "udp-send", addresses(link)[0], 5000, 20, 100)
    assert sorted(sink.result()["came"]) == [i for i in range(20) if i not in (0, 5, 7, 8, 9)]
    d = flow(stat())
    assert d["lost_by_reason"]["list"] == d["lost_pkts"] == 5, d
    assert d["offered_pkts"] == 20 and d["delivered_pkts"] == 15, d


def case_loss_ratio():
    link = up("--ab", "--loss", "10%", "--seed", "7")
    sink = Server("b", "udp-sink", 5000)
    peer("a", "udp-send", addresses(link)[0], 5000, 5000, 100)
    came = len(sink.result()["came"])
    d = flow(stat())
    assert d["offered_pkts"] == 5000 and d["delivered_pkts"] == came, (d, came)
    assert 400 < d["lost_by_reason"]["random"] == d["lost_pkts"] < 600, d  # 4.7 sigma


def case_host_loss():
    """What this machine loses beside the link is told apart."""
    link = up("--rtt", "2ms")
    pid = stat()["emulator"]["pid"]
    os.kill(pid, signal.SIGSTOP)
    wait_for("the emulator stands still", lambda: state_of(pid) == "T")
    peer("a", "udp-send", addresses(link)[0], 5000, 11000, 64)  # the device's queue holds 10000
    os.kill(pid, signal.SIGCONT)
    health = stat()["emulator"]
    assert not health["valid"] and health["device_dropped_pkts"] == {"a": 1000, "b": 0}, health
    assert "NOT BY THE LINK: 1000 frames" in sdr("stat", LINK)[0]
    assert flow(stat())["lost_pkts"] == 0


def case_queue_and_rate():
    """A burst above the queue is cut; the rest takes the time that the rate says."""
    link = up("--rate", "10Mbit", "--queue", "64KB")
    sink = Server("b", "udp-sink", 5000)
    start = time.monotonic()
    peer("a", "udp-send", addresses(link)[0], 5000, 200, 1028)  # 1056 bytes of IP each
    came = sink.result()["came"]
    took = time.monotonic() - start
    d = flow(stat())
    assert 60 <= len(came) < 200 and d["lost_by_reason"]["queue"] == 200 - len(came), d
    assert took >= len(came) * 1056 * 8 / 10e6, took


# ---- changes -------------------------------------------------------------------------

def case_set():
    link = up("--loss", "100%", "--rtt", "2ms")
    host = addresses(link)[0]
    assert peer("a", "ping", host, 1, 64, SOON) == ["lost"]
    sdr("set", LINK, "--loss", "0", "--ba", "--delay", "30ms")
    assert all(t >= 31_000_000 for t in peer("a", "ping", host, 3, 64))
    s = stat()
    assert flow(s, "a")["values"]["delay_ns"] == 1_000_000, "what was not named has changed"
    assert flow(s, "b")["values"]["delay_ns"] == 30_000_000
    sdr("set", LINK, "--cut")
    assert peer("a", "ping", host, 1, 64, SOON) == ["lost"]
    sdr("set", LINK, "--uncut", "--ab", "--drop", "0")
    assert [t == "lost" for t in peer("a", "ping", host, 3, 64, 2)] == [True, False, False]
    assert flow(stat())["lost_by_reason"]["cut"] == 1
    # A list goes on where something else is changed.
    sdr("set", LINK, "--ab", "--drop", "2,4")
    assert "lost" not in peer("a", "ping", host, 2, 64)
    sdr("set", LINK, "--jitter", "0")
    assert [t == "lost" for t in peer("a", "ping", host, 3, 64, 2)] == [True, False, True]
    sdr("set", LINK, "--blackout", "0-600s")
    assert peer("a", "ping", host, 1, 64, SOON) == ["lost"]
    # A mistake changes nothing.
    fails("set", LINK, "--jitter", "5ms", "--path", "3", "--loss", "1%", code=2, says="give --paths 4")
    fails("set", LINK, "--jitter", "x", code=2, says="--jitter x: not a time")
    assert flow(stat())["values"]["jitter_ns"] == 0


def case_paths():
    """One of two paths is cut: its flows are gone, the others pass."""
    link = up("--paths", "2")
    host = addresses(link)[0]

    def flows():
        sink = Server("b", "udp-sink", 5000)
        peer("a", "udp-send", host, 5000, 100, 64, 20000)
        return sink.result()["sources"]
    assert len(flows()) == 100
    sdr("set", LINK, "--path", "1", "--cut")
    some = flows()
    s = stat()
    assert 20 < len(some) < 80, some
    assert flow(s, path=1)["lost_by_reason"]["cut"] == 100 - len(some) > 0
    assert flow(s, path=0)["lost_pkts"] == 0
    assert flows() == some, "flows have changed their path"
    sdr("set", LINK, "--uncut", "--paths", "1")
    assert len(flows()) == 100


def case_nat():
    link = up("--nat")
    Server("b", "udp-echo", 5000)
    asked = peer("a", "udp-ask", addresses(link)[0], 5000, 3)
    assert None not in asked["seen"] and len(set(asked["seen"])) == 1, asked
    assert asked["seen"][0] != asked["own"], "the NAT left the port alone"
    sdr("set", LINK, "--nat-rebind", "now")
    assert stat()["nat"]["rebinds"] == 1
    again = peer("a", "udp-ask", addresses(link)[0], 5000, 1)
    assert None not in again["seen"], again


def case_path_mtu():
    """Told by ICMP, or a black hole."""
    link = up("--path-mtu", "1300", "--rtt", "2ms")
    for host in addresses(link):
        fates = peer("a", "ping", host, 3, 1400, 1)
        assert fates[-1] == "Message too long", fates
        assert isinstance(peer("a", "ping", host, 1, 1000)[0], int)
        sink = Server("b", "tcp-sink", 5001)
        assert peer("a", "tcp-send", host, 5001, 500_000) == sink.result()
    s = stat()
    assert flow(s)["lost_by_reason"]["mtu"] > 0 and s["emulator"]["too_big_told"] > 0
    sdr("down", LINK)
    link = up("--path-mtu", "1300", "--blackhole")
    for host in addresses(link):
        assert peer("a", "ping", host, 2, 1400, SOON) == ["lost", "lost"]
        assert isinstance(peer("a", "ping", host, 1, 1000)[0], int)
    assert stat()["emulator"]["too_big_told"] == 0


def case_two_links():
    """Two at once do not meet: other addresses, other values, one goes and the other stays."""
    other = TAG + "-o"
    one, two = up("--rtt", "2ms"), up("--rtt", "40ms", "--loss", "0", name=other)
    assert one["ends"]["a"]["ipv4"] != two["ends"]["a"]["ipv4"]
    assert one["ends"]["a"]["ipv6"] != two["ends"]["a"]["ipv6"]
    listed = {entry["name"]: entry["state"] for entry in json.loads(sdr("stat", "--json")[0])}
    assert listed[LINK] == listed[other] == "up", listed
    assert LINK in sdr("stat")[0]
    assert isinstance(peer("a", "ping", addresses(one)[0], 1, 64)[0], int)
    sdr("down", LINK)
    no_trace()
    assert peer("a", "ping", addresses(two)[0], 1, 64, name=other)[0] >= 40_000_000
    sdr("down", other)
    no_trace(other)


# ---- coming and going ----------------------------------------------------------------

def case_up_and_down():
    out = sdr("up", LINK, "--rate", "1Gbit", "--km", "4000")[0]
    assert "1.00 Gbit/s, delay 20.0 ms, queue 40.0 ms" in out and "10." in out, out
    fails("up", LINK, says="is up already")
    assert stat()["ends"]["a"]["namespace"] == LINK + "-a"
    sdr("exec", LINK, "b", "--", "true")
    sdr("exec", LINK, "b", "--", "sh", "-c", "exit 9", code=9)
    sdr("exec", LINK, "b", "/nonexistent/command", code=127)
    sdr("exec", LINK, "b", "--", "/", code=126)
    assert sdr("exec", LINK, "a", "--", "ls", "/sys/class/net")[0].split() == ["lo", "wan0"]
    assert sdr("exec", LINK, "a", "--", "echo", "--help", "--json")[0] == "--help --json\n"
    sdr("down", LINK)
    no_trace()
    for verb in (("down", LINK), ("stat", LINK), ("set", LINK, "--cut")):
        fails(*verb, says="there is no link '%s'" % LINK)
    fails("exec", LINK, "a", "--", "true", code=126, says="there is no link")


def case_up_interrupted():
    """An `up` that was interrupted has made nothing; one that was done before has made it all."""
    interrupted = 0
    for sig in (signal.SIGINT, signal.SIGTERM) * 10:
        proc = subprocess.Popen([SDR, "wan", "up", LINK], stdout=subprocess.DEVNULL,
                                stderr=subprocess.PIPE, text=True)
        while not os.path.exists("/run/netns/%s-a" % LINK) and proc.poll() is None:
            pass
        proc.send_signal(sig)
        err = proc.communicate(timeout=30)[1]
        if proc.returncode == 0:
            sdr("down", LINK)
            continue
        assert proc.returncode == 1 and "interrupted: link '%s' was not made" % LINK in err, err
        no_trace()
        interrupted += 1
        if interrupted == 4:
            return
    assert interrupted, "each of 20 links was up before the signal came"


def case_down_ends_processes():
    """What was left running in an end goes with the link, also what ignores SIGTERM."""
    up()
    procs = [subprocess.Popen([SDR, "wan", "exec", LINK, "b", "--", "sleep", "1000"]),
             subprocess.Popen([SDR, "wan", "exec", LINK, "a", "--", "sh", "-c",
                               "trap '' TERM; echo ready; while :; do sleep 0.1; done"],
                              stdout=subprocess.PIPE)]
    procs[1].stdout.readline()
    wait_for("sleep starts", lambda: open("/proc/%d/comm" % procs[0].pid).read() == "sleep\n")
    assert "still ran" in sdr("down", LINK)[0]
    assert procs[0].wait(60) == -signal.SIGTERM and procs[1].wait(60) == -signal.SIGKILL
    no_trace()


def case_killed_emulator():
    """SIGKILL leaves remains, which are known as such and go with the next command."""
    up("--rtt", "2ms")
    pid = stat()["emulator"]["pid"]
    os.kill(pid, signal.SIGKILL)
    wait_for("the emulator's end", lambda: not alive(pid))
    fails("stat", LINK, says="was killed")
    fails("exec", LINK, "a", "--", "true", code=126, says="was killed")
    assert "was killed" in sdr("stat")[0]
    link = up("--rtt", "2ms")
    assert isinstance(peer("a", "ping", addresses(link)[0], 1, 64)[0], int)
    pid = stat()["emulator"]["pid"]
    os.kill(pid, signal.SIGKILL)
    wait_for("the emulator's end", lambda: not alive(pid))
    sdr("down", LINK)
    no_trace()


def case_ended_emulator():
    """SIGTERM removes everything."""
    up()
    os.kill(stat()["emulator"]["pid"], signal.SIGTERM)
    wait_for("removal", lambda: not os.path.exists("/run/sdr-wan/" + LINK))
    no_trace()


def case_stopped_emulator():
    """One that does not answer is named; commands do not hang."""
    up()
    pid = stat()["emulator"]["pid"]
    os.kill(pid, signal.SIGSTOP)
    fails("stat", LINK, says="(process %d) does not answer" % pid)
    os.kill(pid, signal.SIGCONT)
    sdr("down", LINK)
    no_trace()


def case_rollback():
    """A namespace of somebody else is in the way: nothing of ours stays, theirs does."""
    subprocess.run(["ip", "netns", "add", LINK + "-b"], check=True)
    try:
        fails("up", LINK, says="that is not of sdr wan")
        assert os.path.exists("/run/netns/%s-b" % LINK)
        assert not os.path.exists("/run/netns/%s-a" % LINK)
        assert not os.path.exists("/run/sdr-wan/" + LINK)
        fails("down", LINK, says="there is no link")
        assert os.path.exists("/run/netns/%s-b" % LINK)
    finally:
        subprocess.run(["ip", "netns", "del", LINK + "-b"], check=True)
    # The same where it is mounted only in another mount namespace: here it is an empty file.
    path = "/run/netns/%s-b" % LINK
    open(path, "x").close()
    try:
        fails("up", LINK, says="that is not of sdr wan")
        assert os.path.exists(path), "somebody else's namespace has lost its name"
    finally:
        os.unlink(path)


def case_closed_streams():
    """Started without standard streams: none of the emulator's descriptors takes their place."""
    subprocess.run(["sh", "-c", "exec \"$0\" wan up %s <&- >&- 2>&-" % LINK, SDR], check=True)
    link = stat()
    assert isinstance(peer("a", "ping", addresses(link)[0], 1, 64)[0], int)
    fds = "/proc/%d/fd/" % link["emulator"]["pid"]
    assert [os.readlink(fds + n) for n in "012"] == ["/dev/null"] * 3


def case_no_tun():
    done = subprocess.run(["unshare", "-m", "sh", "-c", "mount -t tmpfs none /dev/net && "
                           "exec \"$0\" wan up %s" % LINK, SDR], stderr=subprocess.PIPE, text=True,
                          check=False)
    assert done.returncode == 1 and "mknod /dev/net/tun c 10 200" in done.stderr, done.stderr
    assert "--device /dev/net/tun" in done.stderr, done.stderr
    no_trace()


def case_not_root():
    """Without rights there is a word on which are missing."""
    def nobody():
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)
    try:
        fails("up", LINK, says="needs root (CAP_NET_ADMIN", preexec_fn=nobody)
    except PermissionError:
        print("    (the binary is out of nobody's reach)")
        return
    no_trace()
    up()
    fails("stat", LINK, says="belongs to root", preexec_fn=nobody)
    fails("exec", LINK, "a", "--", "true", code=126, says="belongs to root", preexec_fn=nobody)


def case_exec_environment():
    up()
    ends = stat()["ends"]
    out = sdr("exec", LINK, "b", "--", "sh", "-c",
              "echo $SDR_WAN $SDR_WAN_A $SDR_WAN_B $SDR_WAN_A6 $SDR_WAN_B6")[0].split()
    assert out == [LINK, ends["a"]["ipv4"], ends["b"]["ipv4"], ends["a"]["ipv6"], ends["b"]["ipv6"]], out


# ---- run -----------------------------------------------------------------------------

def case_run():
    script = ("test $(ls /sys/class/net | wc -l) = 2 && "
              "\"$0\" wan exec \"$SDR_WAN\" b -- true && "
              "\"$0\" wan exec \"$SDR_WAN\" b -- sleep 1000 & "
              "echo $SDR_WAN $SDR_WAN_A $SDR_WAN_B $SDR_WAN_A6 $SDR_WAN_B6; sleep 0.3; exit 5")
    out = sdr("run", "--rtt", "2ms", "--", "sh", "-c", script, SDR, code=5)[0].split()
    assert len(out) == 5 and out[1].startswith("10.") and out[4].startswith("fd"), out
    no_trace(out[0])
    sdr("run", "--name", LINK, "--", "/nonexistent/command", code=127)
    sdr("run", "--name", LINK, "--", "sh", "-c", "kill -9 $$", code=128 + 9)
    fails("run", "--rtt", "1ms", code=2, says="needs a command behind '--'")
    fails("run", "true", code=2, says="write the command behind '--'")
    no_trace()


def running(command, *more):
    """A `run` whose command has said that it is ready."""
    proc = subprocess.Popen([SDR, "wan", "run", "--name", LINK, "--", "sh", "-c", command],
                            stdout=subprocess.PIPE, text=True, **dict(more))
    assert proc.stdout.readline() == "ready\n"
    return proc


def case_run_signals():
    """The command gets the signal and is waited for; its status counts."""
    for sig, name in ((signal.SIGINT, "INT"), (signal.SIGTERM, "TERM"), (signal.SIGHUP, "HUP")):
        proc = running("trap 'sleep 0.2; exit 9' %s; echo ready; while :; do sleep 0.05; done" % name)
        proc.send_signal(sig)
        assert proc.wait(60) == 9, name
        no_trace()
    proc = running("echo ready; exec sleep 1000")
    proc.send_signal(signal.SIGTERM)
    assert proc.wait(60) == 128 + signal.SIGTERM
    no_trace()


def case_run_ctrl_c():
    """Ctrl-C on a terminal reaches the command once, and the link is removed after it."""
    import pty
    pid, fd = pty.fork()
    if pid == 0:
        script = ("n=0; trap 'n=$((n+1))' INT; echo ready; while [ $n = 0 ]; do sleep 0.1; done; "
                  "sleep 0.3; exit $((40 + n))")
        os.execv(SDR, [SDR, "wan", "run", "--name", LINK, "--", "sh", "-c", script])
    text = b""
    while b"ready" not in text:
        text += os.read(fd, 1000)
    time.sleep(0.2)
    os.write(fd, b"\x03")
    status = os.waitpid(pid, 0)[1]
    os.close(fd)
    assert os.waitstatus_to_exitcode(status) == 41, status  # once, and not twice
    no_trace()


def case_run_killed():
    """Not even a killed `run` leaves a link behind."""
    proc = running("echo ready; exec sleep 1000")
    proc.kill()
    proc.wait()
    wait_for("removal", lambda: not os.path.exists("/run/sdr-wan/" + LINK))
    no_trace()


def case_run_loses_emulator():
    proc = running("echo ready; exec sleep 1000", ("stderr", subprocess.PIPE))
    os.kill(stat()["emulator"]["pid"], signal.SIGKILL)
    err = proc.communicate(timeout=60)[1]
    assert proc.returncode == 1 and "the link is gone" in err, err
    no_trace()


def case_foreground():
    proc = subprocess.Popen([SDR, "wan", "up", LINK, "--foreground"], stdout=subprocess.PIPE, text=True)
    assert "is up" in proc.stdout.readline()
    proc.send_signal(signal.SIGINT)
    assert proc.wait(60) == 0
    no_trace()
    proc = subprocess.Popen([SDR, "wan", "up", LINK, "--foreground"], stdout=subprocess.PIPE, text=True)
    assert "is up" in proc.stdout.readline()
    sdr("down", LINK)
    assert proc.wait(60) == 0
    no_trace()


def case_demo_interrupted():
    """scripts/demo leaves nothing behind when Ctrl-C comes while its link is being made."""
    with tempfile.TemporaryDirectory() as folder:
        slow, made, temp = (os.path.join(folder, n) for n in ("sdr", "made", "tmp"))
        with open(slow, "w", encoding="ascii") as file:
            file.write("#!/bin/sh\n[ \"$1 $2\" = 'wan up' ] || exec '%s' \"$@\"\n'%s' \"$@\" && touch '%s'"
                       " && sleep 0.5\n" % (SDR, SDR, made))
        os.chmod(slow, 0o755)
        os.mkdir(temp)
        proc = subprocess.Popen([sys.executable, os.path.join(HERE, "../../scripts/demo"), slow],
                                env={**os.environ, "TMPDIR": temp, "SDR_DEMO_SIZE": "1MiB"},
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
        name = "demo-%d" % proc.pid
        wait_for("the demo's link", lambda: os.path.exists(made))
        os.killpg(proc.pid, signal.SIGINT)
        said = proc.communicate(timeout=60)[0]
        try:
            assert proc.returncode == 130 and os.listdir(temp) == [], (said, os.listdir(temp))
            no_trace(name)
        finally:
            if os.path.exists("/run/sdr-wan/" + name):
                sdr("down", name)


# ---- the socket, the options -----------------------------------------------------------

def case_rude_clients():
    """Nobody on the socket keeps the emulator from its work."""
    link = up("--rtt", "2ms")
    path = "/run/sdr-wan/%s/ctl" % LINK
    assert os.stat("/run/sdr-wan/" + LINK).st_mode & 0o777 == 0o700
    held = []
    for data in (b"", b"stat", b"\0" * 100, b"nonsense\0", b"x" * 40000, b"set\0--rate\0", b"set\0\0\0",
                 b"set\0" + b"--cut\0" * 3000, b"\xff" * 1000 + b"\0") + (b"",) * 20:
        s = socket.socket(socket.AF_UNIX)
        s.settimeout(30)
        held.append(s)
        try:
            s.connect(path)
            s.sendall(data)
            if data:
                s.shutdown(socket.SHUT_WR)
                s.recv(1 << 16)
        except (BrokenPipeError, ConnectionResetError, BlockingIOError):
            pass  # hung up on, or no place was free
    assert isinstance(peer("a", "ping", addresses(link)[0], 3, 64)[0], int)
    # Those who say nothing lose their place, and who asks in earnest waits for one.
    assert not flow(stat())["values"]["cut"]
    for s in held:
        s.close()


MISTAKES = """
|what to do is missing
sideways|unknown verb 'sideways': there are up, set, stat
up|needs the link's NAME
up Big|'Big' is no name for a link: choose 1 to 24
up -x|-x: unknown option
up a/b|no name for a link
up abcdefghijklmnopqrstuvwxy|no name for a link
up x y|one word too many
up x -- true|takes no command
up x --rate|--rate: needs a value
up x --rate quick|--rate quick: not a rate: write it like
up x --speed 3|--speed: unknown option
up x --mtu 100|--mtu 100: out of range: choose from 1280 to 65535
up x --mtu|--mtu: needs a value
up x --json=1|takes no value
up x --memory 1KB|--memory 1KB: choose from 5.00 MiB
up x --memory 6MiB --paths 4|--memory: too little for 4 paths: give at least 20.0 MiB
up x --seed -1|--seed -1: not a whole number
up x --path 1 --cut|give --paths 2
up x --queue 10ms|give --rate too
up x --name y|--name: is no option of this verb
set x|nothing to change was named
set x --seed 1|--seed: is no option of this verb
stat x --cut|this verb takes no values of a link
down|needs the link's NAME
down x --json|--json: is no option of this verb
exec x|write it as: sdr wan exec NAME a|b -- COMMAND
exec x c -- true|write it as
exec x a|write it as
exec x a --|write it as
run -- |a command must follow
run --name No -- true|no name for a link
"""


def case_mistakes():
    for line in MISTAKES.strip("\n").split("\n"):
        args, says = line.split("|", 1)
        fails(*args.split(), code=2, says=says)
        assert not os.path.exists("/run/netns/x-a")
    for words in (("--help",), ("help",), ("up", "--help"), ("exec", "--help"), ("exec", "x", "-h")):
        assert "--rate" in sdr(*words)[0] and "--foreground" in sdr(*words)[0], words


# ---- all -----------------------------------------------------------------------------

# The rest is "life"; garbled is in both, so that sanitizers see frames too.
TRAFFIC = ["crosses", "no_offload", "garbled", "drop_list", "loss_ratio", "host_loss",
           "queue_and_rate", "set", "paths", "nat", "path_mtu"]


def clean():
    for name in (LINK, TAG + "-o"):
        if os.path.exists("/run/sdr-wan/" + name):
            sdr("down", name)


def left_processes():
    """Emulators of ours that live though no link is there."""
    left = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            words = open("/proc/%s/cmdline" % pid, "rb").read().split(b"\0")
        except OSError:
            continue
        if words[0] == SDR.encode() and LINK.encode() in words:
            left.append(b" ".join(words).decode())
    return left


def main():
    global SDR
    SDR = os.path.abspath(sys.argv[1])
    if os.geteuid() != 0:
        print("skipped: namespaces need root")
        sys.exit(SKIP)
    if not os.path.exists("/dev/net/tun"):
        print("skipped: there is no /dev/net/tun")
        sys.exit(SKIP)
    for tool in ("ip", "unshare"):
        if not shutil.which(tool):
            print("skipped: %s is not installed" % tool)
            sys.exit(SKIP)
    if subprocess.run(["unshare", "-nm", "true"], stderr=subprocess.DEVNULL, check=False).returncode:
        print("skipped: no namespaces here")
        sys.exit(SKIP)
    cases = {n[5:]: f for n, f in globals().items() if n.startswith("case_")}
    groups = {"traffic": TRAFFIC,
              "life": ["garbled"] + [n for n in cases if n not in TRAFFIC]}
    for name in [n for word in sys.argv[2:] or groups for n in groups.get(word, [word])]:
        start = time.monotonic()
        try:
            cases[name]()
        finally:
            clean()
        no_trace()
        print("ok: %s (%.1f s)" % (name, time.monotonic() - start), flush=True)
    try:
        wait_for("the end of all emulators", lambda: not left_processes())
    except AssertionError:
        sys.exit("left running: %s" % left_processes())


if __name__ == "__main__":
    main()
