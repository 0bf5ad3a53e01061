#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A program at one end of a link, for link.py: echo requests, datagrams, streams. Prints JSON.

  peer.py ping HOST COUNT SIZE [S]  echoes, one after the other, never fragmented; one that is
                                    not answered within S seconds (20) is lost
  peer.py udp-sink PORT             which datagrams came (all that are there when stdin ends)
  peer.py udp-send HOST PORT N SIZE [FIRST_SOURCE_PORT]
  peer.py udp-echo PORT             answers
  peer.py udp-ask HOST PORT N       one socket asks N times: how many answers, and from where asked
  peer.py tcp-sink PORT             SHA-256 of one connection's bytes
  peer.py tcp-send HOST PORT BYTES  the same of what was sent
"""
import hashlib
import json
import os
import random
import select
import socket
import struct
import sys
import time

IP_MTU_DISCOVER, IP_PMTUDISC_DO, IPV6_MTU_DISCOVER = 10, 2, 23


def family(host):
    return socket.AF_INET6 if ":" in host else socket.AF_INET


def ready():
    print("ready", flush=True)


def checksum(data):
    total = sum(struct.unpack("!%dH" % (len(data) // 2), data))
    total = (total & 0xffff) + (total >> 16)
    return ~(total + (total >> 16)) & 0xffff


def echo_request(v6, ident, seq, size):
    body = struct.pack("!BBHHH", 128 if v6 else 8, 0, 0, ident, seq) + bytes(size)
    body += b"\0" * (len(body) % 2)
    if v6:
        return body  # the kernel fills the checksum in
    return body[:2] + struct.pack("!H", checksum(body)) + body[4:]


def answered(sock, v6, ident, seq, wait_s):
    """Whether the reply comes; other ICMP is skipped."""
    until = time.monotonic() + wait_s
    while (left := until - time.monotonic()) > 0:
        if not select.select([sock], [], [], left)[0]:
            return False
        data = sock.recv(65535)
        icmp = data if v6 else data[(data[0] & 15) * 4:]
        if icmp[0] == (129 if v6 else 0) and struct.unpack("!HH", icmp[4:8]) == (ident, seq):
            return True
    return False


def ping(host, count, size, wait_s=20):
    """What became of each: a time in ns, "lost", or the name of an error."""
    v6 = ":" in host
    sock = socket.socket(family(host), socket.SOCK_RAW,
                         socket.IPPROTO_ICMPV6 if v6 else socket.IPPROTO_ICMP)
    if v6:
        sock.setsockopt(socket.IPPROTO_IPV6, IPV6_MTU_DISCOVER, IP_PMTUDISC_DO)
    else:
        sock.setsockopt(socket.IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DO)
    fates, ident = [], os.getpid() & 0xffff
    for seq in range(count):
        start = time.monotonic_ns()
        try:
            sock.sendto(echo_request(v6, ident, seq, size), (host, 0))
            came = answered(sock, v6, ident, seq, wait_s)
            fates.append(time.monotonic_ns() - start if came else "lost")
        except OSError as error:
            fates.append(os.strerror(error.errno))
    return fates


def udp_sink(port):
    sock = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    sock.setsockopt(socket.SOL_SOCKET, 33, 64 << 20)  # SO_RCVBUFFORCE
    sock.bind(("::", port))
    ready()
    came, sources = [], set()
    sock.setblocking(False)
    while True:
        readable = select.select([sock, sys.stdin], [], [])[0]
        while data_addr := received(sock):
            came.append(struct.unpack("!I", data_addr[0][:4])[0])
            sources.add(data_addr[1][1])
        if sys.stdin in readable:  # seen before the socket was emptied
            return {"came": came, "sources": sorted(sources)}


def received(sock):
    try:
        return sock.recvfrom(65535)
    except BlockingIOError:
        return None


def udp_send(host, port, count, size, first_source=0):
    """With a first source port, each datagram has its own: another flow each."""
    sock = socket.socket(family(host), socket.SOCK_DGRAM)
    for i in range(count):
        if first_source:
            sock = socket.socket(family(host), socket.SOCK_DGRAM)
            sock.bind(("", first_source + i))
        sock.sendto(struct.pack("!I", i) + bytes(size - 4), (host, port))
        if i % 50 == 49:
            time.sleep(0.001)
    return count


def udp_echo(port):
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.bind(("", port))
    ready()
    sock.settimeout(30)
    while True:
        try:
            data, addr = sock.recvfrom(2048)
        except TimeoutError:
            return None
        sock.sendto(struct.pack("!H", addr[1]) + data, addr)


def udp_ask(host, port, count):
    """The ports that the other end saw us behind."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.settimeout(20)
    seen = []
    for _ in range(count):
        sock.sendto(b"?", (host, port))
        try:
            seen.append(struct.unpack("!H", sock.recv(2048)[:2])[0])
        except TimeoutError:
            seen.append(None)
    return {"own": sock.getsockname()[1], "seen": seen}


def tcp_sink(port):
    listener = socket.create_server(("::", port), family=socket.AF_INET6, dualstack_ipv6=True)
    ready()
    listener.settimeout(60)
    conn = listener.accept()[0]
    conn.settimeout(60)
    digest, total = hashlib.sha256(), 0
    while data := conn.recv(1 << 16):
        digest.update(data)
        total += len(data)
    return {"bytes": total, "sha256": digest.hexdigest()}


def tcp_send(host, port, count):
    data = random.Random(count).randbytes(count)
    with socket.create_connection((host, port), timeout=60) as conn:
        conn.sendall(data)
    return {"bytes": count, "sha256": hashlib.sha256(data).hexdigest()}


VERBS = {"ping": ping, "udp-sink": udp_sink, "udp-send": udp_send, "udp-echo": udp_echo,
         "udp-ask": udp_ask, "tcp-sink": tcp_sink, "tcp-send": tcp_send}


def main():
    words = [int(w) if w.isdigit() else float(w) if w.replace(".", "", 1).isdigit() else w
             for w in sys.argv[2:]]
    print(json.dumps(VERBS[sys.argv[1]](*words)))


if __name__ == "__main__":
    main()
