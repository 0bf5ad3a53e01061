#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What two rocev2 devices say to each other over a link, as a NIC would hear it: captured
behind the segmentation of sends, judged by scapy's ICRC and by Wireshark's dissector.

  roce_capture.py ROCE_TRAFFIC
"""
import collections
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

SKIP = 77
TAG = "sdrr%d" % os.getpid()
A, B = TAG + "a", TAG + "b"
ADDR = {4: ("10.231.11.1", "10.231.11.2"), 6: ("fd00:5d13::1", "fd00:5d13::2")}
DATA, CTRL = 0x2B, 0x64


def skip(why):
    print("skipped: " + why)
    sys.exit(SKIP)


if os.geteuid() != 0:
    skip("network namespaces need root")
for tool in ("ip", "ethtool", "tcpdump", "tshark"):
    if shutil.which(tool) is None:
        skip(tool + " is not installed")
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import judge_scapy  # noqa: E402 (skips itself where scapy is missing)
from scapy.layers.inet import IP, UDP  # noqa: E402
from scapy.utils import rdpcap  # noqa: E402


def sh(*cmd):
    subprocess.run(cmd, check=True, stdout=subprocess.DEVNULL)


def up():
    for ns in (A, B):
        sh("ip", "netns", "add", ns)
    sh("ip", "link", "add", "v0", "netns", A, "type", "veth", "peer", "name", "v0", "netns", B)
    for i, ns in enumerate((A, B)):
        # Super-packets are cut before the link, and not put together behind it.
        sh("ip", "netns", "exec", ns, "ethtool", "-K", "v0", "gso", "off", "tso", "off", "gro", "off",
           "tx-udp-segmentation", "off")
        sh("ip", "-n", ns, "addr", "add", ADDR[4][i] + "/24", "dev", "v0")
        sh("ip", "-n", ns, "addr", "add", ADDR[6][i] + "/64", "dev", "v0", "nodad")
        sh("ip", "-n", ns, "link", "set", "lo", "up")
        sh("ip", "-n", ns, "link", "set", "v0", "up")


def down():
    for ns in (A, B):
        subprocess.run(["ip", "netns", "del", ns], stderr=subprocess.DEVNULL, check=False)


def capture(traffic, version, path):
    """Runs the traffic; (data, control) packets that both ends sent together."""
    dump = subprocess.Popen(["ip", "netns", "exec", B, "tcpdump", "-i", "v0", "-B", "16384", "-U",
                             "-w", path, "udp port 4791"], stderr=subprocess.PIPE, text=True)
    try:
        dump.stderr.readline()  # it listens
        done = subprocess.run([traffic, A, ADDR[version][0], B, ADDR[version][1]], text=True,
                              capture_output=True, check=False)
        if done.returncode:
            raise AssertionError(done.stdout + done.stderr)
        sent = [tuple(map(int, line.split()[1:])) for line in done.stdout.splitlines()
                if line.startswith("sent ")]
        want = sum(map(sum, sent))
        for _ in range(100):  # what the kernel has yet to hand over
            if len(rdpcap(path)) >= want:
                break
            time.sleep(0.1)
    finally:
        dump.terminate()
        dump.communicate()
    return sum(s[0] for s in sent), sum(s[1] for s in sent)


def judge_icrc(path, version):
    """Opcodes by count, and the IPv4 identifications; every ICRC is right."""
    opcodes, ids = collections.Counter(), set()
    for number, packet in enumerate(rdpcap(path), 1):
        udp = bytes(packet[UDP].payload)
        want = (judge_scapy.icrc_v4(packet) if version == 4
                else judge_scapy.icrc_v6(bytes(packet)))
        if int.from_bytes(udp[-4:], "big") != want:
            raise AssertionError("packet %d: ICRC %s, scapy has %08x" % (number, udp[-4:].hex(), want))
        opcodes[udp[0]] += 1
        if version == 4:
            if packet[IP].flags != "DF":
                raise AssertionError("packet %d: flags %s" % (number, packet[IP].flags))
            ids.add(packet[IP].id)
    return opcodes, ids


def judge_tshark(path):
    """Packets by what Wireshark calls them."""
    out = subprocess.run(["tshark", "-n", "-r", path, "-T", "fields", "-E", "separator=;", "-e",
                          "_ws.col.Info", "-e", "infiniband.bth.opcode"], check=True, text=True,
                         capture_output=True).stdout
    kinds = collections.Counter()
    for line in out.splitlines():
        info = line.split(";")[0]
        kinds["data" if info.startswith("UC RDMA Write Only Immediate") or
              info.startswith("UC RDMA WRITE Only Immediate") else
              "ctrl" if info.startswith("UD Send Only") or info.startswith("UD SEND Only") else
              info] += 1
    return kinds


def check(traffic, version, path):
    data, ctrl = capture(traffic, version, path)
    opcodes, ids = judge_icrc(path, version)
    kinds = judge_tshark(path)
    if opcodes != {DATA: data, CTRL: ctrl} or kinds != {"data": data, "ctrl": ctrl}:
        raise AssertionError("sent %d data and %d control packets; captured %s, dissected %s"
                             % (data, ctrl, dict(opcodes), dict(kinds)))
    if version == 4 and ids != set(range(len(ids))) or version == 4 and len(ids) < 32:
        raise AssertionError("identifications %s: were sends not segmented?" % sorted(ids))
    print("IPv%d: %d data and %d control packets, every ICRC as scapy has it%s"
          % (version, data, ctrl,
             ", identifications 0 to %d" % max(ids) if version == 4 else ""))


def main():
    with tempfile.TemporaryDirectory() as directory:
        os.chmod(directory, 0o777)  # tcpdump may give up its privileges
        try:
            up()
            for version in (4, 6):
                check(sys.argv[1], version, os.path.join(directory, "v%d.pcap" % version))
        finally:
            down()
    return 0


if __name__ == "__main__":
    # Ended from outside: what was made is removed all the same.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    sys.exit(main())
