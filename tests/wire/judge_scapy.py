#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Judge: scapy's own ICRC and field decoding against wire/'s packets.

scapy 2.5 computes no ICRC over IPv6, so there the rules are written out again here on
zlib; the sdr mode's trailer is zlib too. Usage: judge_scapy.py WIRE_EMIT
"""
import os
import struct
import subprocess
import sys
import tempfile
import zlib

try:
    from scapy.layers.inet import IP, UDP
    from scapy.layers.inet6 import IPv6
    from scapy.contrib.roce import BTH
    from scapy.utils import rdpcap
except ImportError as err:
    print(f"skipped: scapy with contrib.roce is not installed ({err})")
    sys.exit(77)

TOKEN = 0x0123456789ABCDEF


def icrc_v6(frame):
    """The ICRC's value over an Ethernet frame with IPv6, by the rules of annex A17."""
    masked = bytearray(frame[14:-4])
    masked[0] |= 0x0F
    masked[1:4] = b"\xff\xff\xff"
    masked[7] = 0xFF
    masked[46:48] = b"\xff\xff"
    masked[52] = 0xFF
    return struct.unpack(">I", struct.pack("<I", zlib.crc32(b"\xff" * 8 + masked)))[0]


def icrc_v4(packet):
    """scapy's: cut the trailer off, let BTH's post_build make a new one."""
    udp = bytes(packet[UDP].payload)
    ip = packet[IP]
    rebuilt = (IP(src=ip.src, dst=ip.dst, id=ip.id, flags=ip.flags, ttl=ip.ttl, tos=ip.tos)
               / UDP(sport=packet[UDP].sport, dport=packet[UDP].dport)
               / BTH(udp[:12]) / udp[12:-4])
    rebuilt[BTH].icrc = None
    return struct.unpack(">I", bytes(rebuilt)[-4:])[0]


def trailer(packet, mode, version):
    """What the last four bytes ought to be."""
    if mode == "sdr":
        udp = bytes(packet[UDP].payload)
        return zlib.crc32(TOKEN.to_bytes(8, "big") + udp[:-4])
    return icrc_v4(packet) if version == 4 else icrc_v6(bytes(packet))


def check(number, packet, fields):
    mode, version, ip_id, opcode, qpn, psn = fields[0], *(int(f, 0) for f in fields[1:6])
    va, rkey, length, imm = (int(f, 0) for f in fields[6:10])
    udp = bytes(packet[UDP].payload)
    bth = BTH(udp[:12] + bytes(4))
    got = [bth.opcode, bth.dqpn, bth.psn, bth.version, bth.pkey]
    want = [opcode, qpn, psn, 0, 0xFFFF]
    if version == 4:
        got.append(packet[IP].id)
        want.append(ip_id)
    if opcode == 0x2B:
        got += [*struct.unpack(">QIII", udp[12:32]), bth.padcount, len(udp)]
        want += [va, rkey, length, imm, -length % 4, 36 + length + -length % 4]
    got.append(struct.unpack(">I", udp[-4:])[0])
    want.append(trailer(packet, mode, version))
    if got != want:
        print(f"packet {number} ({mode}, IPv{version}): got {got}, want {want}")
    return got == want


def main():
    with tempfile.TemporaryDirectory() as directory:
        pcap = os.path.join(directory, "wire.pcap")
        lines = subprocess.run([sys.argv[1], pcap], check=True, capture_output=True,
                               text=True).stdout.splitlines()
        packets = rdpcap(pcap)
    good = [check(n, p, line.split()) for n, (p, line) in enumerate(zip(packets, lines), 1)]
    print(f"{sum(good)} of {len(lines)} packets as scapy and zlib have them")
    return 0 if len(packets) == len(lines) > 0 and all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
