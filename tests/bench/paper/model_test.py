# SPDX-License-Identifier: Apache-2.0
"""paper_model against figures.csv and oracle.csv, which were computed without this project's code; and
what it says to questions that it cannot answer."""
import csv
import math
import subprocess
import unittest

from paths import PAPER_MODEL, PLAN
from paperbench import cells, model

LOSSES_9 = [10.0**-i for i in range(8, 0, -1)]
LOSSES_13 = [10.0**-i for i in range(6, 1, -1)]
LOSSES_15 = [1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 5e-2]


def digit(text):
    """Of the last place that is printed."""
    number, _, exponent = text.partition("e")
    return 10.0 ** (int(exponent or 0) - len(number.partition(".")[2]))


class Line:
    """One of figures.csv: its first columns, and its values as they are printed."""

    def __init__(self, text):
        words = text.split(",")
        self.table, self.size, self.values = words[0], int(words[1]), words[5:]
        self.rate, self.rtt, self.fourth = float(words[2]) * 1e9, float(words[3]) * 1e-3, float(words[4])

    def cell(self, scheme, loss=None, **more):
        return cells.Cell(scheme, self.size, self.rtt, self.fourth if loss is None else loss, self.rate, **more)


class Values(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.model = model.Model(PAPER_MODEL, samples=1500)
        cls.enterClassContext(cls.model)
        cls.lines = {}
        with open(f"{PLAN}/figures.csv", encoding="utf-8") as file:
            for text in file:
                if not text.startswith("#"):
                    line = Line(text.strip())
                    cls.lines.setdefault(line.table, []).append(line)

    def slow(self, line, scheme, tail=False, **more):
        answer = self.model.ask(line.cell(scheme, **more))
        return (answer.p999_s if tail else answer.mean_s) / answer.lossless_s

    def compare(self, table, values_of, count):
        self.assertEqual(len(self.lines[table]), count)
        for line in self.lines[table]:
            values = values_of(line)
            self.assertEqual(len(values), len(line.values), vars(line))
            for value, text in zip(values, line.values):
                self.assertAlmostEqual(value, float(text), delta=0.502 * digit(text), msg=str(vars(line)))

    def test_3_and_12(self):
        def three(line):
            return [self.slow(line, scheme) for scheme in ("sr", "sr-nack", "ec")]
        self.compare("3a", three, 13)
        self.compare("3b", three, 8)
        self.compare("3c", lambda line: [self.slow(line, "sr"), self.slow(line, "ec")], 9)
        self.compare("12", three, 72)

    def test_9(self):
        def over(line, name):
            pairs = [[getattr(self.model.ask(line.cell(scheme, loss)), name) for scheme in ("sr", "ec")]
                     for loss in LOSSES_9]
            return [sr / ec for sr, ec in pairs]
        self.compare("9-mean", lambda line: over(line, "mean_s"), 9)
        self.compare("9-p999", lambda line: over(line, "p999_s"), 9)

    def test_10(self):
        def ms(line):
            answers = [self.model.ask(line.cell(scheme)) for scheme in ("sr", "sr-nack", "ec")]
            return [value * 1e3 for answer in answers for value in (answer.mean_s, answer.p999_s)]

        def slow(line):
            out = [self.slow(line, scheme, tail) for scheme in ("sr", "sr-nack", "ec", "ec-xor")
                   for tail in (False, True)]
            return out + [self.model.ask(line.cell(scheme)).p_fallback for scheme in ("ec", "ec-xor")]
        self.compare("10a", ms, 9)
        self.compare("10b", slow, 11)
        self.compare("10d", lambda line: [self.slow(line, "ec", m=m) for m in (2, 4, 8, 16, 32)], 9)

    def test_13_both_sides_are_simulated(self):
        for line in self.lines["13"]:
            for i, loss in enumerate(LOSSES_13):
                pair = [self.model.ask(line.cell(scheme, loss, nodes=int(line.fourth), kind="allreduce"))
                        for scheme in ("sr", "ec")]
                self.assertEqual([answer.source for answer in pair], [cells.SIMULATED] * 2)
                tail, mean = float(line.values[2 * i]), float(line.values[2 * i + 1])
                self.assertAlmostEqual(pair[0].mean_s / pair[1].mean_s, mean, delta=0.03 * mean + 0.005)
                # a p99.9 may fall onto the next RTO
                self.assertAlmostEqual(pair[0].p999_s / pair[1].p999_s, tail,
                                       delta=3 * line.rtt / pair[1].p999_s + 0.03 * tail)

    def test_15(self):
        def losses(line):
            return [self.model.ask(cells.Cell(kind="chunk", loss=loss, bytes=line.size, chunk_bytes=line.size)).unit_loss
                    for loss in LOSSES_15]
        self.compare("15", losses, 7)

    def test_oracle(self):
        """Closed forms of the paper's reading, to 1e-3."""
        with open(f"{PLAN}/oracle.csv", encoding="utf-8") as file:
            rows = [row for row in csv.DictReader(line for line in file if not line.startswith("#"))
                    if row["model"] == "paper" and row["mean_analytic_s"]]
        self.assertEqual(len(rows), 133)
        for row in rows:
            answer = self.model.ask(oracle_cell(row), **oracle_words(row))
            self.assertAlmostEqual(answer.mean_s / float(row["mean_analytic_s"]), 1, delta=1e-3, msg=str(row))
            for name, value in (("p50_analytic_s", answer.p50_s), ("p999_analytic_s", answer.p999_s)):
                if row[name]:
                    self.assertAlmostEqual(value / float(row[name]), 1, delta=1e-3, msg=str(row))

    def test_quantiles_rise_and_meet_the_p999(self):
        cell = cells.Cell("sr", loss=1e-3)
        values = [self.model.ask(cell, quantile=q).quantile_s for q in (0.5, 0.99, 0.999, 0.99999)]
        self.assertEqual(values, sorted(values))
        self.assertAlmostEqual(values[2], self.model.ask(cell).p999_s, places=12)

    def test_appendix_a_as_printed(self):
        """Values of the paper's formula without its ceiling, in ms."""
        for size, loss, want in ((128 << 10, 1e-5, 51.440), (2 << 20, 1e-5, 69.427), (128 << 20, 1e-5, 97.881),
                                 (128 << 20, 1e-2, 205.091)):
            answer = self.model.ask(cells.Cell(kind="printed", bytes=size, loss=loss))
            self.assertAlmostEqual(answer.mean_s * 1e3, want, delta=2e-3)


def oracle_cell(row):
    scheme = "ec-xor" if "XOR" in row["scheme"] else "ec" if "EC" in row["scheme"] else "sr"
    return cells.Cell(scheme, int(row["msg_bytes"]), float(row["rtt_ms"]) * 1e-3, float(row["p_packet"]),
                      float(row["bw_gbps"]) * 1e9, int(row["mtu"]), int(row["chunk_bytes"]),
                      int(row["k"] or 32), int(row["m"] or 8))


def oracle_words(row):
    return {name: row[column] for name, column in (("rto", "rto_rtt"), ("beta", "beta")) if row[column]}


class Refusals(unittest.TestCase):
    def ask(self, *questions):
        return subprocess.run([PAPER_MODEL], input="".join(q + "\n" for q in questions), text=True,
                              capture_output=True, timeout=60, check=False)

    def test_what_is_wrong_is_named(self):
        for question, words in (("guess", ("guess", "write")), ("write loss=2", ("loss=2", "0.999999")),
                                ("write losss=0.1", ("losss=0.1",)), ("write scheme=tcp", ("tcp", "sr-nack")),
                                ("write bytes=12x", ("bytes=12x",)), ("write chunk=12288", ("12288", "power of two")),
                                ("write loss=0.99", ("0.95",)), ("write chunk=1024", ("1024", "4096")),
                                ("printed loss=0", ("printed",))):
            done = self.ask("write", question)
            self.assertEqual(done.returncode, 2, question)
            self.assertEqual(len(done.stdout.splitlines()), 2, question)  # the columns, and the first answer
            for word in (*words, "line 2"):
                self.assertIn(word, done.stderr)

    def test_the_driver_tells(self):
        with model.Model(PAPER_MODEL) as asked:
            self.assertTrue(math.isfinite(asked.ask(cells.Cell()).mean_s))
            with self.assertRaises(model.ModelFailed):
                asked.ask(cells.Cell(k=300, scheme="ec"))


if __name__ == "__main__":
    unittest.main()
