# SPDX-License-Identifier: Apache-2.0
"""What a contender is. The base knows how a stream or a file is turned into samples; subclasses say
which programs are started with which settings.

Each is measured in three ways, from end a to end b:
  goodput   something without end, or a large file: (seconds, bytes at the receiver) samples
  cold      one message in a fresh process on a fresh connection, until the sender knows
            that all of it has arrived
  warm      messages one at a time on a connection that is fast already
"""
import dataclasses
import json
import os
import shutil
import time

from .grid import MIB, MTU
from .procs import Failed, GaveUp, await_port

PORT = 4800


@dataclasses.dataclass
class Stream:
    samples: list      # (seconds since the start, bytes delivered so far), ascending
    end_s: float       # when sending stopped, or a file was confirmed
    delivered: int     # in all, also after end_s
    children: list     # whose CPU time is counted
    whole_s: float = None  # when all of a file was there: what is steady ends then


@dataclasses.dataclass
class Bench:
    """Where a record is measured."""
    link: object
    crew: object
    work: str          # an empty directory in memory
    build: str         # of the project
    plan: object
    servers: list = dataclasses.field(default_factory=list)  # of this phase, for all its connections

    @property
    def cell(self):
        return self.link.cell

    def on(self, end, name, command):
        return self.crew.start(name, self.link.command(end, command))


def json_lines(text):
    """Every line that is whole."""
    out = []
    for line in text.splitlines():
        try:
            out.append(json.loads(line))
        except ValueError:
            pass
    return out


class Contender:
    name = ""
    family = ""            # those of one family share a colour
    shipped = False        # as it comes: shown apart, its label says what it is
    ours = False
    payload, packet = 1448, MTU  # application's and IP's bytes of a full packet
    measures = ("goodput", "cold", "warm")
    packages = ""          # Debian's, for whoever misses it

    def missing(self, _build):
        """What is not there, or None."""
        return None

    def version(self, _build):
        return ""

    def settings(self, _cell):
        """What makes the difference, for the results; values that the cell decides too."""
        return {}

    def prepare(self, _bench):
        """Sets the ends up, once a record."""

    def goodput(self, _bench, _seconds):
        raise NotImplementedError

    def cold(self, _bench, _size, _limit_s):
        """Nanoseconds, or None: late."""
        raise NotImplementedError

    def warm(self, _bench, _batches):
        """{size: [ns, ...]} for [(size, count, limit_s)]; fewer than count: the next was late."""
        raise NotImplementedError


def missing_programs(names, packages):
    gone = [name for name in names if not (shutil.which(name) or
                                           shutil.which(name, path="/usr/sbin:/sbin"))]
    return f"{', '.join(gone)} not found (Debian: {packages})" if gone else None


# ---- tcp_msg and udt_msg -------------------------------------------------------------


class MsgContender(Contender):
    """Those that are driven by bench/wan/*_msg."""
    tool = ""              # under the build directory
    udp = False
    fresh_server = False   # one that could still wait for the end of a connection whose end got lost

    def missing(self, build):
        if os.access(os.path.join(build, self.tool), os.X_OK):
            return None
        return f"{self.tool} was not built (Debian: {self.packages or 'build-essential'})"

    def options(self, _bench):
        """(server's, client's) extra options."""
        return [], []

    def server(self, bench):
        options, _ = self.options(bench)
        address = bench.link.ip["b"]
        child = bench.on("b", "recv", [os.path.join(bench.build, self.tool), "recv", address, PORT,
                                       *options])
        await_port(child, PORT, self.udp)
        return [child]

    def client(self, bench, words):
        _, options = self.options(bench)
        return bench.on("a", "send", [os.path.join(bench.build, self.tool), "send",
                                      *self.target(bench), *options, *words])

    def target(self, bench):
        return [bench.link.ip["b"], PORT]

    def finish(self, bench, client, timeout_s):
        """Its lines, when it has ended well or late; 3 is its word for late."""
        if not client.wait(timeout_s):
            client.stop()
        elif client.returncode not in (0, 3):
            raise (Failed if bench.cell.is_clean else GaveUp)(client.trouble())
        return json_lines(client.text())

    def goodput(self, bench, seconds):
        drain_s = max(3.0, 20 * bench.cell.rtt_s)
        servers = self.server(bench)
        client = self.client(bench, ["--stream", f"{seconds:g}", "--drain", f"{drain_s:g}"])
        lines = self.finish(bench, client, seconds + drain_s + 20)
        start = next((line["start_ns"] for line in lines if "start_ns" in line), None)
        end = next((line["stream_end_ns"] for line in lines if "stream_end_ns" in line), None)
        for server in servers:
            server.stop()
        if start is None or end is None:
            raise GaveUp(f"it was still connecting or sending at the end: {client.trouble()}")
        samples = [((line["t_ns"] - start) / 1e9, line["received"])
                   for line in json_lines(servers[0].text()) if "t_ns" in line]
        samples = [(0.0, 0), *samples]
        return Stream(samples, (end - start) / 1e9, samples[-1][1], [client, *servers])

    def times(self, lines):
        return [(line["bytes"], line["ns"]) for line in lines if line.get("done")]

    def cold(self, bench, size, limit_s):
        self.ready(bench)
        client = self.client(bench, ["--message", f"{size}x1", "--timeout", f"{limit_s:g}"])
        times = self.times(self.finish(bench, client, limit_s + 1))
        return times[0][1] if times else None

    def ready(self, bench):
        """A server for the next connection of this phase."""
        if bench.servers and not self.fresh_server:
            return
        for server in bench.servers:
            server.stop()
        bench.servers = self.server(bench)

    def warm(self, bench, batches):
        """Each size on a connection of its own that has just streamed: messages that leave the link
        idle make congestion control forget."""
        out = {}
        for size, count, limit_s in batches:
            self.ready(bench)
            out[size] = self.warm_one(bench, size, count, limit_s)
            if len(out[size]) < count:
                break
        return out

    def warm_one(self, bench, size, count, limit_s):
        up_s = bench.plan.warm_up_s(bench.cell)
        drain_s = max(5.0, 40 * bench.cell.rtt_s)
        client = self.client(bench, ["--stream", f"{up_s:g}", "--drain", f"{drain_s:g}", "--message",
                                     f"{size}x{count}@{limit_s:g}"])
        lines = self.finish(bench, client, up_s + drain_s + 5 + count * limit_s)
        return [ns for _, ns in self.times(lines)]


# ---- files ---------------------------------------------------------------------------


def arrived(directory):
    """Bytes written below a directory: what is allocated, as some write out of order."""
    total = 0
    for root, _, names in os.walk(directory):
        for name in names:
            try:
                stat = os.stat(os.path.join(root, name))
            except FileNotFoundError:
                continue
            total += min(stat.st_size, stat.st_blocks * 512)
    return total


def make_file(path, size):
    """Incompressible: no tunnel and no tool can shorten it."""
    block = os.urandom(MIB)
    with open(path, "wb") as file:
        for at in range(0, size, MIB):
            file.write(block[:min(MIB, size - at)])


class FileContender(Contender):
    """A program that sends a file; its receiver serves several, one after the other."""
    measures = ("goodput", "cold")
    confirms = True        # it ends when the receiver has said that all is there

    def serve(self, bench, directory):
        """Starts the receiver; the file goes into directory. Returns children."""
        raise NotImplementedError

    def command(self, bench, source):
        """Sends the file."""
        raise NotImplementedError

    def transfer(self, bench, size, limit_s, every_s):
        """(client, servers, samples, whole): whole is the time when all of it was there."""
        source, target = os.path.join(bench.work, "data"), os.path.join(bench.work, "target")
        make_file(source, size)
        shutil.rmtree(target, ignore_errors=True)
        os.mkdir(target)
        servers = self.serve(bench, target)
        samples, state = [(0.0, 0)], {"next": 0.0, "whole": None}
        client = bench.on("a", self.name, self.command(bench, source))
        start = time.monotonic()

        def watch():
            now = time.monotonic() - start
            if now < state["next"] or state["whole"]:
                return
            have = max(arrived(target), samples[-1][1])  # some remove what was cut off
            samples.append((now, have))
            state["next"] = now + every_s
            if have >= size:
                state["whole"] = now

        in_time = client.wait(limit_s, watch)
        end_s = time.monotonic() - start
        if not in_time:
            client.stop()
        elif client.returncode != 0:
            raise (Failed if bench.cell.is_clean else GaveUp)(client.trouble())
        elif not self.confirms:
            while not state["whole"] and time.monotonic() - start < limit_s:
                state["next"] = 0.0
                watch()
                time.sleep(every_s / 4)
            in_time = state["whole"] is not None
        samples.append((time.monotonic() - start, max(arrived(target), samples[-1][1])))
        if in_time and self.confirms and samples[-1][1] < size:
            raise Failed(f"it ended well with {samples[-1][1]} of {size} bytes: {client.trouble()}")
        for server in servers:
            server.stop()
        os.unlink(source)
        shutil.rmtree(target)
        if in_time and not self.confirms:
            end_s = max(end_s, state["whole"] + bench.cell.rtt_s / 2)
        return client, servers, samples, end_s if in_time else None

    def goodput(self, bench, seconds):
        """A file that takes the link about that long; what is not there by twice the time is
        cut off."""
        size = max(MIB, int(bench.cell.rate_bps / 8 * seconds * 0.9))
        client, servers, samples, end_s = self.transfer(bench, size, 1.5 * seconds, 0.05)
        whole_s = next((t for t, have in samples if have >= size), None)
        return Stream(samples, end_s or samples[-1][0], samples[-1][1], [client, *servers], whole_s)

    def cold(self, bench, size, limit_s):
        client, _, _, end_s = self.transfer(bench, size, limit_s, 0.005)
        if end_s is None:
            return None
        if self.confirms:
            return client.ended_ns - client.started_ns
        return int(end_s * 1e9)
