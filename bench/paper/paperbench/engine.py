# SPDX-License-Identifier: Apache-2.0
"""Asks the engine: the library's own code over a simulated link, by `sdr sim`. Each cell once, whatever
figures it stands in. Which cells, and in how many runs, is decided here and said to the user."""
import dataclasses
import json
import os
import subprocess

from .cells import ENGINE, GIB, MIB, PACKET, TAIL_RUNS, Answer, size_text

LIKELY_HITS = 0.5  # where fewer losses are expected in all runs, they would show a clean link, and
CLEAN_RUNS = 100  # so many are enough
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
        runs = TAIL_RUNS if cell.bytes in self.tails else \
            min(max(self.packets // cell.packets, self.least_runs), self.most_runs)
        hits = runs * cell.packets * cell.loss
        return runs if hits >= LIKELY_HITS else min(runs, CLEAN_RUNS)

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


class Kept:
    """Answers of sdr sim, a line each, so that a second start goes on where the first ended. They hold for
    one build of the program: others are forgotten."""

    def __init__(self, path, program):
        self.path, self.texts = path, {}
        stat = os.stat(program)
        self.build = f"{stat.st_size} {stat.st_mtime_ns}"
        if not os.path.exists(path):
            return
        with open(path, encoding="utf-8") as file:
            for line in file:
                try:
                    record = json.loads(line)
                    if record["build"] == self.build:
                        self.texts[record["question"]] = record["answer"]
                except (ValueError, KeyError, TypeError):
                    continue  # the last one of a run that was killed

    def add(self, question, answer):
        self.texts[question] = answer
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(json.dumps({"build": self.build, "question": question, "answer": answer}) + "\n")


class Engine:
    def __init__(self, program, plan, seed=1, jobs=None, say=lambda text: None, kept=None):
        self.program, self.plan, self.seed, self.jobs, self.say = program, plan, seed, jobs, say
        self.kept = kept
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
        words = words_of(group, self.plan.runs_of(group[0]), self.seed)
        text = self.kept.texts.get(" ".join(words)) if self.kept else None
        if text is None:
            text = self._call([self.program, *words, *(["--jobs", str(self.jobs)] if self.jobs else [])])
        answers = [answer_of(record, cell) for record, cell in zip(match(text, group), group)]
        if self.kept and " ".join(words) not in self.kept.texts:
            self.kept.add(" ".join(words), text)
        return answers

    def _call(self, command):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise EngineFailed(f"{' '.join(command)}: {done.stderr.strip() or done.returncode}")
        return done.stdout


def text_of(group):
    cell = group[0]
    return (f"{'/'.join(c.scheme for c in group)} {cell.bytes / MIB:g} MiB, {cell.bw_bps / 1e9:g} Gbit/s, "
            f"{cell.rtt_s * 1e3:g} ms, loss {cell.loss:g}")


def words_of(group, runs, seed):
    cell = group[0]
    return ["sim", "--rtt", f"{cell.rtt_s * 1e9:.0f}ns", "--bw", f"{cell.bw_bps:.0f}bit", "--loss", f"{cell.loss:g}",
            "--size", f"{cell.bytes}B", "--packet", f"{cell.packet_bytes}B",
            "--scheme", ",".join(NAMES[c.scheme] for c in group), "--runs", str(runs), "--seed", str(seed),
            "--engine", "real", "--json"]


def match(text, group):
    """The records of sdr sim's JSON, one for each cell, in their order."""
    try:
        records = {record["scheme"]: record for record in json.loads(text)}
        return [records[NAMES[cell.scheme]] for cell in group]
    except (ValueError, KeyError, TypeError) as error:
        raise EngineFailed(f"sdr sim --json said what this program does not understand: {error!r}") from error


def unseen(record, cell):
    """Bounds where all runs took the same: nothing was lost in them. With 95 % what happens less than three
    times in so many runs may not happen at all; it would cost a wait, and most waits are the timer's."""
    wait = {"sr": 3, "sr-nack": 1}[cell.scheme] * cell.rtt_s
    return {"mean_hi_s": record["mean_s"] + 3 / record["runs"] * wait}


def answer_of(record, cell):
    if record["engine"] != "engine" or record["bytes"] != cell.bytes:
        raise EngineFailed(f"sdr sim answered another question: {record['engine']}, {record['bytes']} bytes")
    if record.get("unfinished"):
        raise EngineFailed(f"{record['unfinished']} of {record['runs']} runs of {text_of([cell])} did not end")
    if record["mean_lo_s"] == record["mean_hi_s"]:
        record = record | unseen(record, cell)
    if record["mean_lo_s"] is not None:  # of very few runs; no message is faster than lossless
        record = record | {"mean_lo_s": max(record["mean_lo_s"], min(record["lossless_s"], record["mean_s"]))}
    times = {name: record.get(name) for name in ("mean_lo_s", "mean_hi_s", "p50_s", "p99_s", "p999_s",
                                                 "p999_lo_s", "p999_hi_s")}
    return Answer(ENGINE, record["mean_s"], record["lossless_s"], record["runs"], **times)
