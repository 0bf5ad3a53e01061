# SPDX-License-Identifier: Apache-2.0
"""Contenders that stream: sdr, TCP, UDT, and TCP through kcptun."""
import json
import os
import platform
import signal

from .contender import PORT, Contender, MsgContender, Stream, missing_programs
from .grid import MIB, MTU
from .procs import Failed, GaveUp, await_port, run

PERF_MEMORY = 256 * MIB  # of the receives that sdr perf's server posts


class Sdr(Contender):
    family = "sdr"
    ours = True
    packet = MTU
    payload = (MTU - 20 - 8 - 36) // 4 * 4  # IPv4, UDP, RoCEv2 with its trailer

    def __init__(self, scheme):
        self.scheme = scheme
        self.name = f"sdr-{scheme.split(':')[0]}"
        # What the model of `sdr sim` calls it. Its timer is a multiple of the round trip, that of "sr" is not.
        self.model = {"sr": None}.get(scheme, scheme)

    def tool(self, build):
        return os.path.join(build, "src/tool/sdr")

    def missing(self, build):
        return None if os.access(self.tool(build), os.X_OK) else "the build has no src/tool/sdr"

    def version(self, build):
        return run([self.tool(build), "--version"]).strip().splitlines()[0]

    def settings(self, cell):
        return {"scheme": self.scheme, "stream": f"1 MiB writes, {self.depth(cell, MIB)} in flight",
                "otherwise": "as it comes: rate found by itself, checksums on, one channel"}

    def depth(self, cell, size):
        """Four bandwidth-delay products in flight, so that completions never hold it up."""
        wanted = max(8, -(-4 * cell.bdp_bytes // size) + 1)
        return max(1, min(wanted, 256, PERF_MEMORY // size))

    def server(self, bench):
        child = bench.on("b", "perf-server", [self.tool(bench.build), "perf", "--quiet", "-p", PORT])
        await_port(child, PORT)
        return child

    def client(self, bench, words, timeout_s):
        """(child, phases); the client is interrupted when it takes too long, and prints what it
        has."""
        child = bench.on("a", "perf", [self.tool(bench.build), "perf", "--json", "--each",
                                       "--quiet", "--scheme", self.scheme, *words,
                                       f"{bench.link.ip['b']}:{PORT}"])
        in_time = child.wait(timeout_s)
        if not in_time:
            child.stop(signal.SIGINT, 4.0)
        try:
            phases = json.loads(child.text() or "[]")
        except ValueError as error:
            raise Failed(f"no JSON from sdr perf ({error}): {child.trouble()}") from error
        if in_time and child.returncode != 0:
            raise (Failed if bench.cell.is_clean else GaveUp)(child.trouble())
        return child, phases

    def goodput(self, bench, seconds):
        """Completions at the sender, half a round trip earlier: when they were at the receiver."""
        server = self.server(bench)
        child, phases = self.client(bench, ["--cold", "-D", f"{round(seconds * 1e3)}ms", "-s",
                                            "1MiB", "-t", self.depth(bench.cell, MIB)],
                                    seconds + max(10.0, 60 * bench.cell.rtt_s))
        server.stop()
        if not phases:
            raise GaveUp(f"nothing arrived: {child.trouble()}")
        half = bench.cell.rtt_s / 2
        done = sorted(max(0.0, t[1] / 1e9 - half) for t in phases[0]["each"])
        samples = [(0.0, 0)] + [(t, (i + 1) * MIB) for i, t in enumerate(done)]
        return Stream(samples, seconds, len(done) * MIB, [child, server])

    def cold(self, bench, size, limit_s):
        if not bench.servers:
            bench.servers = [self.server(bench)]
        _, phases = self.client(bench, ["--cold", "-n", 1, "-t", 1, "-s", size], limit_s)
        if not phases or phases[0]["messages"] != 1:
            return None
        return int(phases[0]["each"][0][1])  # since before the connection was opened

    def warm(self, bench, batches):
        server, out = self.server(bench), {}
        for size, count, limit_s in batches:
            _, phases = self.client(bench, ["-n", count, "-t", 1, "-s", size, "--settle-depth",
                                            self.depth(bench.cell, size)],
                                    15 + limit_s + count * limit_s)
            warm = [p for p in phases if p["phase"] == "warm"]
            times = [done - posted for posted, done in (warm[0]["each"] if warm else [])]
            out[size] = [ns for ns in times if ns <= limit_s * 1e9]
            if len(out[size]) < count:
                break
        server.stop()
        return out


class Tcp(MsgContender):
    family = "tcp"
    tool = "bench/wan/tcp_msg"

    def __init__(self, cc, tuned, streams=1, initcwnd=0):
        self.cc, self.tuned, self.streams, self.initcwnd = cc, tuned, streams, initcwnd
        self.family = f"tcp-{cc}"
        self.shipped = not tuned
        self.name = f"tcp-{cc}" + ("-tuned" if tuned else "-shipped") + \
            (f"-x{streams}" if streams > 1 else "") + (f"-iw{initcwnd}" if initcwnd else "")

    def missing(self, build):
        with open("/proc/sys/net/ipv4/tcp_available_congestion_control", encoding="ascii") as file:
            if self.cc not in file.read().split():
                return f"this kernel has no {self.cc} (modprobe tcp_{self.cc}?)"
        return super().missing(build)

    def version(self, _build):
        return f"Linux {platform.release()}"

    def sysctls(self, cell):
        out = {}
        if self.tuned:
            # Room for the window that BBR wants (twice the bandwidth-delay product) and for
            # what waits behind a hole, times two for the kernel's bookkeeping; autotuning on.
            most = max(16 * MIB, 8 * cell.bdp_bytes)
            out.update({"net.ipv4.tcp_rmem": f"4096 1048576 {most}",
                        "net.ipv4.tcp_wmem": f"4096 1048576 {most}",
                        "net.ipv4.tcp_slow_start_after_idle": 0,
                        "net.ipv4.tcp_no_metrics_save": 1})
        return out

    def settings(self, cell):
        return {"sysctl": self.sysctls(cell), "route": " ".join(self.route()),
                "streams": self.streams, "socket buffers": "autotuned by the kernel",
                "pacing": "TCP's own"}

    def route(self):
        """The sysctl of congestion control is not free in every namespace; a route's is."""
        more = ["initcwnd", str(self.initcwnd), "initrwnd", str(self.initcwnd)]
        return ["congctl", self.cc, *(more if self.initcwnd else [])]

    def prepare(self, bench):
        for end, peer in (("a", "b"), ("b", "a")):
            bench.link.sysctl(end, self.sysctls(bench.cell))
            run(["ip", "-n", bench.link.ns[end], "route", "replace", bench.link.ip[peer] + "/32",
                 "dev", bench.link.device, *self.route()])

    def options(self, _bench):
        return [], ["--streams", self.streams]


class Udt(MsgContender):
    name = "udt"
    family = "udt"
    tool = "bench/wan/udt_msg"
    packages = "libudt-dev, g++"
    udp = fresh_server = True
    payload = MTU - 20 - 8 - 16

    def version(self, _build):
        return "UDT 4.11 (libudt)"

    def numbers(self, cell):
        """(buffers, window in packets): the window is the path and its queue, as UDT's start goes on
        until it loses something, and what it loses by a window too large it sends again and again."""
        return max(4 * MIB, 4 * cell.bdp_bytes), max(64, int(1.9 * cell.bdp_bytes / MTU))

    def settings(self, cell):
        buf, window = self.numbers(cell)
        return {"UDT_SNDBUF": buf, "UDT_RCVBUF": buf, "UDP_SNDBUF": buf, "UDP_RCVBUF": buf,
                "UDT_FC": window, "UDT_MSS": MTU, "limits": "net.core.rmem_max, wmem_max"}

    def options(self, bench):
        buf, window = self.numbers(bench.cell)
        words = ["--rcvbuf", buf, "--sndbuf", buf, "--window", window]
        return words, words


class Kcptun(MsgContender):
    """tcp_msg over loopback to kcptun, kcptun's KCP over the link."""
    family = "kcptun"
    mode, fill = "fast", 1.5
    packages = "kcptun"
    tool = "bench/wan/tcp_msg"
    packet = MTU
    mtu = MTU - 20 - 8           # kcptun's --mtu counts UDP payload
    header = 24 + 8 + 8          # KCP, FEC, smux frame (once a segment at most)

    def __init__(self, data, parity):
        self.data, self.parity = data, parity
        self.name = "kcptun" if parity else "kcptun-nofec"
        self.payload = (self.mtu - self.header) * (data / (data + parity) if parity else 1)

    def missing(self, build):
        return missing_programs(["kcptun-client", "kcptun-server"], "kcptun") or super().missing(build)

    def version(self, _build):
        try:
            return run(["dpkg-query", "-W", "-f=kcptun ${Version}", "kcptun"])
        except Failed:
            return run(["kcptun-client", "--version"]).strip()

    def words(self, cell):
        # Its window is all that holds it back: so much that it fills the path with its parity.
        window = max(64, int(self.fill * cell.bdp_bytes / MTU * self.payload / (self.mtu - self.header)))
        buf = max(16 * MIB, 4 * cell.bdp_bytes)
        return {"mode": self.mode, "crypt": "none", "nocomp": True, "mtu": self.mtu,
                "sndwnd": window, "rcvwnd": window * 2, "datashard": self.data,
                "parityshard": self.parity, "sockbuf": buf, "smuxver": 2, "smuxbuf": buf,
                "streambuf": buf}

    def settings(self, cell):
        return {**self.words(cell), "cold": "the tunnel was up before"}

    def flags(self, cell):
        out = ["--quiet"]
        for key, value in self.words(cell).items():
            out += [f"--{key}"] if value is True else [f"--{key}", str(value)]
        return out

    def prepare(self, bench):
        for end in "ab":  # its own sockets on loopback are no bottleneck
            bench.link.sysctl(end, {"net.ipv4.tcp_rmem": f"4096 1048576 {16 * MIB}"})

    def server(self, bench):
        flags = self.flags(bench.cell)
        inner = bench.on("b", "recv", [os.path.join(bench.build, self.tool), "recv", "127.0.0.1",
                                       PORT])
        await_port(inner, PORT)
        far = bench.on("b", "kcptun-server", ["kcptun-server", "-l", f":{PORT + 1}", "-t",
                                              f"127.0.0.1:{PORT}", *flags])
        await_port(far, PORT + 1, udp=True)
        near = bench.on("a", "kcptun-client", ["kcptun-client", "-l", f"127.0.0.1:{PORT + 2}",
                                               "-r", f"{bench.link.ip['b']}:{PORT + 1}", *flags])
        await_port(near, PORT + 2)
        return [inner, far, near]

    def target(self, _bench):
        return ["127.0.0.1", PORT + 2]
