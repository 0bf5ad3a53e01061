# SPDX-License-Identifier: Apache-2.0
"""The link that everybody crosses: `sdr wan`, made anew from the same seed for each record, so that
each contender meets the same line and leaves no settings behind. Data goes from end a to
end b. A bare veth pair can stand in while this program is worked on: no rate, delay or loss."""
import json
import os

from .grid import MTU
from .procs import Failed, run


class Link:
    """Two namespaces. Subclasses make and remove them, and know the counters."""

    def __init__(self, name, cell):
        self.name, self.cell = name, cell
        self.ns = {"a": name + "-a", "b": name + "-b"}
        self.ip = {}
        self.device = None

    def command(self, end, words):
        return ["ip", "netns", "exec", self.ns[end], *words]

    def sysctl(self, end, values):
        for key, value in values.items():
            run(self.command(end, ["sysctl", "-q", "-w", f"{key}={value}"]))

    def sysctl_read(self, end, keys):
        out = run(self.command(end, ["sysctl", *keys]))
        return dict(" ".join(line.split()).split(" = ", 1) for line in out.splitlines())


class WanLink(Link):
    kind = "sdr wan"

    def __init__(self, sdr, name, cell, seed, queue, late_s):
        super().__init__(name, cell)
        self.sdr, self.seed, self.queue, self.late_s = sdr, seed, queue, late_s
        self.device = "wan0"

    def options(self):
        cell = self.cell
        out = ["--rate", f"{cell.rate_bps}bit", "--rtt", f"{round(cell.rtt_s * 1e6)}us",
               "--loss", f"{cell.loss:.10f}".rstrip("0").rstrip("."), "--queue", self.queue,
               "--mtu", str(MTU), "--seed", str(self.seed)]
        if cell.burst > 1:
            out += ["--burst", str(cell.burst)]
        return out

    def up(self):
        run([self.sdr, "wan", "up", self.name, *self.options()])
        ends = self.stat()["ends"]
        self.ip = {end: ends[end]["ipv4"] for end in "ab"}

    def down(self):
        run([self.sdr, "wan", "down", self.name])

    def stat(self):
        return json.loads(run([self.sdr, "wan", "stat", self.name, "--json"]))

    def offered_bytes(self):
        """IP bytes that end a has put on the link so far, lost ones included."""
        return sum(d["offered_bytes"] for d in self.stat()["directions"] if d["from"] == "a")

    def health(self):
        """(what is worth keeping, [reasons why what was measured is void])."""
        stat = self.stat()
        emulator, void = stat["emulator"], []
        if not emulator["valid"]:
            void.append("frames were lost beside the link: "
                        f"devices {emulator['device_dropped_pkts']}, "
                        f"writes {emulator['write_failed_frames']}, "
                        f"memory {emulator['no_memory_frames']}")
        if emulator["late_ns"]["p99"] > self.late_s * 1e9:
            void.append(f"1 % of the frames were more than {emulator['late_ns']['p99'] / 1e6:.1f} "
                        "ms late")
        return {"emulator": emulator, "directions": stat["directions"]}, void


class VethLink(Link):
    kind = "veth"

    def __init__(self, name, cell):
        super().__init__(name, cell)
        self.device = "v0"

    def up(self):
        for end, address in (("a", "10.231.9.1"), ("b", "10.231.9.2")):
            run(["ip", "netns", "add", self.ns[end]])
            run(["ip", "-n", self.ns[end], "link", "set", "lo", "up"])
            self.ip[end] = address
        run(["ip", "link", "add", "v0", "netns", self.ns["a"], "type", "veth",
             "peer", "name", "v0", "netns", self.ns["b"]])
        for end in "ab":
            run(["ip", "-n", self.ns[end], "link", "set", "v0", "mtu", str(MTU), "up"])
            run(["ip", "-n", self.ns[end], "addr", "add", self.ip[end] + "/24", "dev", "v0"])

    def down(self):
        for end in "ab":
            if os.path.exists("/run/netns/" + self.ns[end]):
                run(["ip", "netns", "del", self.ns[end]])

    def offered_bytes(self):
        shown = json.loads(run(["ip", "-n", self.ns["a"], "-s", "-j", "link", "show", "v0"]))
        return shown[0]["stats64"]["tx"]["bytes"]

    def health(self):
        return {}, []


def remove(link):
    """down(), whatever state it is in: the last word, so it only tells."""
    try:
        link.down()
    except Failed as error:
        return str(error)
    return None
