# SPDX-License-Identifier: Apache-2.0
"""Runs groups by `sdr sim`: the library's own code over a simulated link. What has been run is kept as it came, for
one build of the program, so that a second start goes on where the first ended."""
import csv
import hashlib
import io
import os
import subprocess
import sys

from .grid import COALESCE, PACKET


class EngineFailed(Exception):
    """sdr sim did not answer as it should."""


def words_of(group, losses, bursts, args):
    return ["--rtt", f"{group.rtt_ns}ns", "--bw", f"{group.bw_bps}bit", "--size", f"{group.size}",
            "--loss", ",".join(f"{loss:g}" for loss in losses), "--burst", ",".join(f"{b:g}" for b in bursts),
            "--packet", str(PACKET), "--coalesce", f"{group.rtt_ns // COALESCE}ns",
            "--scheme", ",".join(group.schemes), "--runs", str(group.runs), *args]


def parts_of(group, args):
    """Words of one or two calls: without losses there is only one burst length."""
    lossy = [loss for loss in group.losses if loss]
    parts = [words_of(group, lossy, group.bursts, args)] if lossy else []
    return parts + ([words_of(group, [0.0], [1.0], args)] if 0.0 in group.losses else [])


class Engine:
    def __init__(self, program, out, seed=1, jobs=None, engine="auto"):
        self.program, self.out, self.jobs = program, out, jobs
        self.args = ["--seed", str(seed), *(["--engine", engine] if engine != "auto" else [])]
        stat = os.stat(program)
        self.build = f"{stat.st_size} {stat.st_mtime_ns}"

    def ask(self, group, jobs=None, keep=True):
        """Rows of the CSV of sdr sim, one a cell."""
        return [row for words in parts_of(group, self.args)
                for row in csv.DictReader(io.StringIO(self._kept(words, jobs) if keep else self._csv(words, jobs)))]

    def shard(self, group, part, of, directory):
        """One part of the group, as files for merge()."""
        for words in parts_of(group, self.args):
            path = os.path.join(directory, f"{self.name(words)}.{part}-{of}.json")
            if not os.path.exists(path):
                write(path, self._call(["sim", *words, "--shard", f"{part}/{of}", "--quiet", *self._jobs(None)]))

    def merge(self, group, directory):
        """Rows of a group of which all parts are there."""
        rows = []
        for words in parts_of(group, self.args):
            name = self.name(words)
            files = sorted(os.path.join(directory, file) for file in os.listdir(directory)
                           if file.startswith(name + ".") and file.endswith(".json"))
            if not files:
                raise EngineFailed(f"{directory} has no shard of {group.text}: run all of them with the same options")
            rows += csv.DictReader(io.StringIO(self._call(["sim", "merge", "--csv", *files])))
        return rows

    def name(self, words):
        return hashlib.sha256(" ".join(words).encode()).hexdigest()[:16]

    def _jobs(self, jobs):
        jobs = jobs or self.jobs
        return ["--jobs", str(jobs)] if jobs else []

    def _csv(self, words, jobs):
        return self._call(["sim", *words, "--csv", *([] if jobs is None and sys.stderr.isatty() else ["--quiet"]),
                           *self._jobs(jobs)])

    def _kept(self, words, jobs):
        path = os.path.join(self.out, f"{self.name(words + [self.build])}.csv")
        if not os.path.exists(path):
            write(path, self._csv(words, jobs))
        with open(path, encoding="utf-8") as file:
            return file.read()

    def _call(self, words):
        done = subprocess.run([self.program, *words], stdout=subprocess.PIPE, text=True, check=False,
                              stderr=subprocess.PIPE if "--quiet" in words else None)
        if done.returncode not in (0, 1) or not done.stdout.startswith(("scheme,", "{")):
            raise EngineFailed(f"sdr {' '.join(words)}: {(done.stderr or '').strip() or done.returncode}")
        return done.stdout  # 1: runs that did not end, which the rows tell


def write(path, text):
    """All of it or nothing."""
    with open(path + ".new", "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(path + ".new", path)
