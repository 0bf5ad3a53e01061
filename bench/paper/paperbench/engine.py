# SPDX-License-Identifier: Apache-2.0
"""Asks the engine: the library's own code over a simulated link, by `sdr sim`. Each cell once, whatever
figures it stands in. Which cells, and in how many runs, is decided here and said to the user."""
import dataclasses
import json
import subprocess

from .cells import ENGINE, GIB, MIB, PACKET, TAIL_RUNS, Answer, size_text

# the engine's name of a scheme of the paper's: its SR-RTO waits three round trips
NAMES = {"sr": "sr:rto=3", "sr-nack": "sr-nack"}


class EngineFailed(Exception):
    """sdr sim did not answer as it should."""


@dataclasses.dataclass(frozen=True)
class Plan:
    """How much of the engine's time is spent."""
    packets: int = 1_200_000  # a cell's, in all its runs
    most_runs: int = 300
    least_runs: int = 2
    most_bytes: int = 8 * GIB
    tails: tuple = (2 * MIB,)  # sizes with as many runs as a p99.9 needs
    runs: int | None = None  # exactly so many, whatever they cost
    thin: bool = True  # of the large grids only a part

    def runs_of(self, cell):
        if self.runs:
            return self.runs
        if cell.bytes in self.tails:
            return TAIL_RUNS
        return min(max(self.packets // cell.packets, self.least_runs), self.most_runs)

    def with_runs(self, runs):
        return dataclasses.replace(self, runs=runs)


QUICK = Plan(packets=100_000, most_runs=100, most_bytes=32 * MIB, tails=())
FULL = Plan(packets=80_000_000, most_runs=TAIL_RUNS, least_runs=20, tails=(), thin=False)


def why_not(cell, plan):
    """None, or why the engine is not asked."""
    if cell.kind != "write":
        return "the engine has no such thing yet"
    if cell.scheme not in NAMES:
        return "the engine has no codes yet"
    if cell.chunk_bytes != PACKET:
        return "the engine resends packets"
    if cell.bytes > plan.most_bytes:
        return f"more than {size_text(plan.most_bytes)}"
    return None


def left_out(figures, engine):
    """Lines: how many cells of each figure the engine was not asked for, and why."""
    counts = {}
    for figure in figures:
        for cell in dict.fromkeys(figure.all_cells()):
            if engine.get(cell) is None:
                why = why_not(cell, engine.plan) or "one of a grid of which a part is run"
                counts[figure.name, why] = counts.get((figure.name, why), 0) + 1
    return [f"figure {name}: {count} cells: {why}" for (name, why), count in counts.items()]


class Engine:
    def __init__(self, program, plan, seed=1, jobs=None, say=lambda text: None):
        self.program, self.plan, self.seed, self.jobs, self.say = program, plan, seed, jobs, say
        self.answers = {}

    def get(self, cell):
        return self.answers.get(cell)

    def run(self, cells):
        """Asks for those cells that it can; cells of one link and size in one call."""
        groups = {}
        for cell in dict.fromkeys(cells):
            if why_not(cell, self.plan) is None and cell not in self.answers:
                key = (cell.rtt_s, cell.bw_bps, cell.bytes, cell.loss)
                groups.setdefault(key, []).append(cell)
        for i, group in enumerate(groups.values()):
            self.say(f"engine: {i + 1} of {len(groups)}: {text_of(group)}, {self.plan.runs_of(group[0])} runs")
            for cell, answer in zip(group, self._ask(group)):
                self.answers[cell] = answer

    def _ask(self, group):
        command = command_of(self.program, group, self.plan.runs_of(group[0]), self.seed, self.jobs)
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise EngineFailed(f"{' '.join(command)}: {done.stderr.strip() or done.returncode}")
        return [answer_of(record, cell) for record, cell in zip(match(done.stdout, group), group)]


def text_of(group):
    cell = group[0]
    return (f"{'/'.join(c.scheme for c in group)} {cell.bytes / MIB:g} MiB, {cell.bw_bps / 1e9:g} Gbit/s, "
            f"{cell.rtt_s * 1e3:g} ms, loss {cell.loss:g}")


def command_of(program, group, runs, seed, jobs):
    cell = group[0]
    words = ["--rtt", f"{cell.rtt_s * 1e9:.0f}ns", "--bw", f"{cell.bw_bps:.0f}bit", "--loss", f"{cell.loss:g}",
             "--size", f"{cell.bytes}B", "--packet", f"{cell.packet_bytes}B",
             "--scheme", ",".join(NAMES[c.scheme] for c in group), "--runs", str(runs), "--seed", str(seed),
             "--engine", "real", "--json"]
    return [program, "sim", *words, *(["--jobs", str(jobs)] if jobs else [])]


def match(text, group):
    """The records of sdr sim's JSON, one for each cell, in their order."""
    try:
        records = {record["scheme"]: record for record in json.loads(text)}
        return [records[NAMES[cell.scheme]] for cell in group]
    except (ValueError, KeyError, TypeError) as error:
        raise EngineFailed(f"sdr sim --json said what this program does not understand: {error!r}") from error


def answer_of(record, cell):
    if record["engine"] != "engine" or record["bytes"] != cell.bytes:
        raise EngineFailed(f"sdr sim answered another question: {record['engine']}, {record['bytes']} bytes")
    if record.get("unfinished"):
        raise EngineFailed(f"{record['unfinished']} of {record['runs']} runs of {text_of([cell])} did not end")
    times = {name: record.get(name) for name in ("mean_lo_s", "mean_hi_s", "p50_s", "p99_s", "p999_s",
                                                 "p999_lo_s", "p999_hi_s")}
    return Answer(ENGINE, record["mean_s"], record["lossless_s"], record["runs"], **times)
