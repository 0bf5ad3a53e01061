# SPDX-License-Identifier: Apache-2.0
"""Asks paper_model, a process that answers line by line; each question once."""
import dataclasses
import math
import subprocess

from .cells import EXACT, SIMULATED, Answer

Z95 = 1.96  # standard errors of a bound of 95 %
ALLREDUCE_SAMPLES = 2000


class ModelFailed(Exception):
    """paper_model did not answer; its words are on stderr."""


class Model:
    def __init__(self, program, samples=ALLREDUCE_SAMPLES):
        self.samples = samples
        self._known = {}
        self._process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                         text=True, bufsize=1)
        self._columns = self._read()

    def close(self):
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait(timeout=10)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _read(self):
        line = self._process.stdout.readline()
        if not line:
            raise ModelFailed("paper_model gave up; it said why above")
        return line.rstrip("\n").split(",")

    def raw(self, question):
        """The columns of paper_model's answer, by name."""
        self._process.stdin.write(question + "\n")
        return dict(zip(self._columns, map(float, self._read())))

    def ask(self, cell, quantile=None, **more):
        """An Answer; `more` are words of paper_model's, such as rto=1."""
        if quantile is not None:
            more["quantile"] = quantile
        question = question_of(cell, self.samples, more)
        if question not in self._known:
            self._known[question] = answer_of(self.raw(question))
        return self._known[question]


def question_of(cell, samples, more):
    words = {"scheme": cell.scheme, "bytes": cell.bytes, "bw": f"{cell.bw_bps:.12g}",
             "rtt": f"{cell.rtt_s:.12g}", "loss": f"{cell.loss:.12g}", "packet": cell.packet_bytes,
             "chunk": cell.chunk_bytes, "k": cell.k, "m": cell.m}
    if cell.kind == "allreduce":
        words |= {"nodes": cell.nodes, "samples": samples}
    return " ".join([cell.kind, *(f"{name}={value}" for name, value in (words | more).items())])


def answer_of(raw):
    runs, z = int(raw["samples"]), Z95 * raw["stderr_s"]
    answer = Answer(SIMULATED if runs else EXACT, raw["mean_s"], raw["lossless_s"], runs, p50_s=raw["p50_s"],
                    p99_s=raw["p99_s"], p999_s=raw["p999_s"], unit_loss=raw["unit_loss"],
                    p_fallback=raw["p_fallback"])
    if runs:
        answer = dataclasses.replace(answer, mean_lo_s=answer.mean_s - z, mean_hi_s=answer.mean_s + z)
    if not math.isnan(raw["quantile_s"]):
        answer = dataclasses.replace(answer, quantile_s=raw["quantile_s"])
    return answer
