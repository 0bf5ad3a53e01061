#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Judges a capture of RoCEv2 traffic between two groups of addresses: every packet's ICRC
by the rules of annex A17 written out on zlib, a share of the IPv4 ones by scapy's own (it has
none over IPv6), and all of them dissected by tshark. Ends in an AssertionError that names what is wrong.

  roce_judge.py CAPTURE ADDRESS,... ADDRESS,...
"""
import collections
import ipaddress
import os
import struct
import subprocess
import sys
import zlib

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "wire"))

OPCODES = {"43": "UC RDMA WRITE Only Immediate", "100": "UD SEND Only"}
SCAPY_EACH = 100  # packets of each IPv4 source: it is slow


def records(path):
    """(Ethernet frame) of a classic pcap."""
    with open(path, "rb") as f:
        head = f.read(24)
        order = {b"\xd4\xc3\xb2\xa1": "<", b"\xa1\xb2\xc3\xd4": ">"}.get(head[:4])
        assert order, "%s is no capture" % path
        assert struct.unpack(order + "I", head[20:])[0] == 1, "no Ethernet capture"
        while True:
            one = f.read(16)
            if len(one) < 16:
                return
            _, _, kept, length = struct.unpack(order + "IIII", one)
            frame = f.read(kept)
            if len(frame) < kept:
                return
            assert kept == length, "a packet was cut short by the capture"
            yield frame


def masked(frame):
    """What the ICRC covers of an IPv4 or IPv6 packet in UDP, fields that change set to ones;
    and its source, UDP payload and the value on the wire."""
    if frame[12:14] == b"\x08\x00":
        ip = frame[14:14 + struct.unpack(">H", frame[16:18])[0]]
        assert ip[0] == 0x45 and not struct.unpack(">H", ip[6:8])[0] & 0x3FFF, "fragment or options"
        cover, at = bytearray(ip[:-4]), 20
        cover[1] = cover[8] = 0xFF  # TOS, TTL
        cover[10:12] = b"\xff\xff"  # header checksum
        source = ipaddress.ip_address(ip[12:16])
    else:
        ip = frame[14:54 + struct.unpack(">H", frame[18:20])[0]]
        assert ip[6] == 17, "an extension header"
        cover, at = bytearray(ip[:-4]), 40
        cover[0] |= 0x0F  # traffic class, flow label
        cover[1:4] = b"\xff\xff\xff"
        cover[7] = 0xFF  # hop limit
        source = ipaddress.ip_address(ip[8:24])
    assert struct.unpack(">H", ip[at + 4:at + 6])[0] == len(ip) - at, \
        "a datagram of more than one packet: the capture saw it before it was cut"
    cover[at + 6:at + 8] = b"\xff\xff"  # UDP checksum
    cover[at + 12] = 0xFF  # FECN, BECN, reserved
    return source, cover, ip[-4:]


def by_scapy(frames):
    import judge_scapy
    from scapy.layers.l2 import Ether
    from scapy.layers.inet import UDP

    for frame in frames:
        packet = Ether(frame)
        assert struct.unpack(">I", bytes(packet[UDP].payload)[-4:])[0] == judge_scapy.icrc_v4(packet), \
            "scapy has another ICRC: %s" % packet.summary()


def by_tshark(path):
    """Packets by (source, opcode); none may be malformed or of another kind."""
    done = subprocess.run(["tshark", "-n", "-r", path, "-d", "udp.port==4791,infiniband", "-T", "fields",
                           "-E", "separator=,", "-e", "ip.src", "-e", "ipv6.src",
                           "-e", "infiniband.bth.opcode", "-e", "_ws.malformed"],
                          capture_output=True, text=True, check=True, timeout=120)
    found = collections.Counter()
    for line in done.stdout.splitlines():
        v4, v6, opcode, bad = line.split(",")
        assert not bad, "tshark: a malformed packet from %s" % (v4 or v6)
        assert opcode in OPCODES, "tshark: opcode '%s' from %s" % (opcode, v4 or v6)
        found[(v4 or v6, OPCODES[opcode])] += 1
    return found


def judge(path, *groups):
    wrong, right, sample = collections.Counter(), collections.Counter(), collections.defaultdict(list)
    for frame in records(path):
        source, cover, trailer = masked(frame)
        good = zlib.crc32(b"\xff" * 8 + bytes(cover)) == struct.unpack("<I", trailer)[0]
        (right if good else wrong)[str(source)] += 1
        if source.version == 4 and len(sample[source]) < SCAPY_EACH:
            sample[source].append(frame)
    assert not wrong, "wrong ICRC from %s" % dict(wrong)
    for group in groups:
        for version in (4, 6):
            addresses = [a for a in group if ipaddress.ip_address(a).version == version]
            assert not addresses or sum(right[a] for a in addresses) > SCAPY_EACH, \
                "hardly a packet from %s" % " or ".join(addresses)
    for frames in sample.values():
        by_scapy(frames)
    kinds = by_tshark(path)
    for group in groups:
        for kind in OPCODES.values():
            assert any(kinds[(a, kind)] for a in group), "no %s from %s" % (kind, ", ".join(group))
    assert sum(kinds.values()) == sum(right.values()), "tshark saw another number of packets"
    print("capture: %d packets, all with the right ICRC (%d of them by scapy too), all dissected by "
          "tshark" % (sum(right.values()), sum(map(len, sample.values()))))
    for (source, kind), n in sorted(kinds.items()):
        print("  %-12s %7d %s" % (source, n, kind))


if __name__ == "__main__":
    judge(sys.argv[1], *(g.split(",") for g in sys.argv[2:]))
