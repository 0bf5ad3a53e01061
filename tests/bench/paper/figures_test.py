# SPDX-License-Identifier: Apache-2.0
"""bench/paper/figures: what it takes, what it writes, and what it does with an engine's answers. Where an
engine stands in, it is a script that says what `sdr sim --json` would say."""
import csv
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import xml.dom.minidom

from paths import BUILD, FIGURES, PAPER_MODEL
from paperbench import cells, engine, figures, headlines, model, rows

# An engine that needs 1 % longer than lossless times two, and a record of its arguments.
STAND_IN = '''#!{python}
import json, sys
args = dict(zip(sys.argv[2::2], sys.argv[3::2]))
open({log!r}, "a").write(" ".join(sys.argv[1:]) + "\\n")
size, runs = int(args["--size"][:-1]), int(args["--runs"])
lossless = size * 8 / float(args["--bw"][:-3]) + float(args["--rtt"][:-2]) * 1e-9
mean = 2.02 * lossless
tail = 3 * lossless if runs >= 2000 else None
out = [{{"scheme": s, "bytes": size, "engine": "engine", "runs": runs, "unfinished": {unfinished},
        "lossless_s": lossless, "mean_s": mean, "mean_lo_s": 0.9 * mean, "mean_hi_s": 1.1 * mean,
        "p50_s": mean, "p99_s": tail, "p999_s": tail, "p999_lo_s": tail, "p999_hi_s": tail}}
       for s in args["--scheme"].split(",")]
print(json.dumps(out))
'''


def run(*words, timeout=150):
    return subprocess.run([sys.executable, "-B", FIGURES, *words], text=True, capture_output=True, timeout=timeout,
                          check=False)


class Directory(unittest.TestCase):
    def setUp(self):
        self.dir = self.enterContext(tempfile.TemporaryDirectory())
        self.out = os.path.join(self.dir, "out")

    def read(self, figure):
        with open(os.path.join(self.out, f"figure-{figure}.csv"), encoding="utf-8", newline="") as file:
            reader = csv.DictReader(file)
            self.assertEqual(tuple(reader.fieldnames), rows.COLUMNS)
            return list(reader)

    def stand_in(self, unfinished=0, text=None):
        """A build directory whose sdr is the stand-in; the log of its calls."""
        build, log = os.path.join(self.dir, "build"), os.path.join(self.dir, "log")
        os.makedirs(os.path.join(build, "src", "tool"))
        os.makedirs(os.path.join(build, "bench", "paper"))
        os.symlink(PAPER_MODEL, os.path.join(build, "bench", "paper", "paper_model"))
        path = os.path.join(build, "src", "tool", "sdr")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text or STAND_IN.format(python=sys.executable, log=log, unfinished=unfinished))
        os.chmod(path, 0o755)
        return build, log


class Flags(unittest.TestCase):
    def test_bad_values_are_named(self):
        for words, said in ((("--rtt", "25"), ("--rtt", "25", "25ms")), (("--rtt", "2s"), ("--rtt", "2s", "1s")),
                            (("--figure", "3,7"), ("--figure", "'7'", "12")), (("--figure", ","), ("--figure",)),
                            (("--runs", "0"), ("--runs", "'0'", "1000000")), (("--jobs", "x"), ("--jobs", "'x'")),
                            (("--seed", "-1"), ("--seed",)), (("--quick", "--full"), ("--full", "--quick")),
                            (("--fast",), ("--fast",))):
            done = run(*words)
            self.assertEqual(done.returncode, 2, words)
            for word in said:
                self.assertIn(word, done.stderr)

    def test_a_missing_build_is_named(self):
        done = run("--build", "/nonexistent")
        self.assertEqual(done.returncode, 1)
        self.assertIn("/nonexistent/src/tool/sdr", done.stderr)
        self.assertIn("quickstart build", done.stderr)

    def test_parsers(self):
        self.assertEqual(cells.parse_time("100us"), 1e-4)
        self.assertEqual(cells.parse_figures("15, 3", figures.FIGURES), ["3", "15"])
        self.assertRaises(ValueError, cells.parse_time, "1.2.3ms")
        self.assertEqual([cells.loss_text(loss) for loss in (1e-5, 0.016, 0.1)], ["1e-5", "1.6e-2", "1e-1"])
        self.assertEqual([cells.size_text(size) for size in (128 << 10, 128 << 20, 2 << 40)],
                         ["128 KiB", "128 MiB", "2 TiB"])


class ModelOnly(Directory):
    def test_every_figure(self):
        done = run("--model-only", "--quick", "--build", BUILD, "--out", self.out)
        self.assertEqual(done.returncode, 0, done.stderr)
        for figure in figures.FIGURES:
            with self.subTest(figure=figure):
                found = self.read(figure)
                self.assertTrue(found)
                wanted = cells.SIMULATED if figure == "13" else cells.EXACT
                self.assertEqual({row["source"] for row in found}, {wanted})
                for row in found:
                    self.assertGreater(float(row["value"]), 0)
                    self.assertEqual(float(row["km"]), float(row["rtt_ms"]) * 150)
                self.assertIn(f"Figure {figure}:", done.stdout)
        with open(os.path.join(self.out, "report.md"), encoding="utf-8") as file:
            report = file.read()
        for name in re.findall(r"\]\((figure-[^)]*)\)", report):
            self.assertTrue(os.path.exists(os.path.join(self.out, name)), name)
        self.pictures(report)

    def pictures(self, report):
        if not shutil.which("gnuplot"):
            self.assertNotIn(".svg", report)
            return
        names = [name for name in os.listdir(self.out) if name.endswith(".svg")]
        self.assertEqual(len(names), 7)  # figure 9 has two
        for name in names:
            xml.dom.minidom.parse(os.path.join(self.out, name))

    def test_another_round_trip(self):
        done = run("--model-only", "--rtt", "50ms", "--figure", "10", "--build", BUILD, "--out", self.out)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual({row["rtt_ms"] for row in self.read("10")}, {"50"})
        self.assertIn("these are for 50 ms", done.stdout)


class WithAnEngine(Directory):
    def test_its_answers_stand_beside_the_models(self):
        build, log = self.stand_in()
        done = run("--quick", "--figure", "3,9,10", "--build", build, "--out", self.out, "--jobs", "2")
        self.assertEqual(done.returncode, 0, done.stderr)
        real = [row for row in self.read("3") if row["source"] == cells.ENGINE]
        self.assertEqual({row["scheme"] for row in real}, {"sr", "sr-nack"})
        self.assertLessEqual(max(int(row["bytes"]) for row in real), engine.QUICK.most_bytes)
        for row in real:
            if row["quantity"] == "slowdown_mean":
                value = float(row["value"])
                self.assertAlmostEqual(value, 2.02, places=5)
                self.assertAlmostEqual(float(row["lo"]), 0.9 * value, places=5)
                self.assertAlmostEqual(float(row["hi"]), 1.1 * value, places=5)
        mixed = [row for row in self.read("9") if row["source"] == cells.MIXED]
        self.assertEqual({row["reading"] for row in mixed}, {"A"})
        nack = [row for row in self.read("10") if row["quantity"] == "rto_over_nack_mean" and
                row["source"] == cells.ENGINE]
        self.assertEqual(nack, [])  # 128 MiB are not in a quick run
        self.assertIn("the engine has no codes yet", done.stdout)
        self.calls(log)

    def calls(self, log):
        """No cell twice; all by the real engine, with the paper's RTO."""
        with open(log, encoding="utf-8") as file:
            lines = file.read().splitlines()
        self.assertEqual(len(lines), len(set(lines)))
        asked = set()
        for line in lines:
            args = dict(zip(line.split()[1::2], line.split()[2::2]))
            self.assertEqual(args["--engine"], "real")
            self.assertEqual(args["--packet"], "4096B")
            for scheme in args["--scheme"].split(","):
                self.assertIn(scheme, ("sr:rto=3", "sr-nack"))
                key = (scheme, args["--size"], args["--rtt"], args["--bw"], args["--loss"])
                self.assertNotIn(key, asked)
                asked.add(key)

    def test_a_second_start_asks_nothing_twice(self):
        build, log = self.stand_in()
        words = ("--quick", "--figure", "3", "--build", build, "--out", self.out)
        before = []
        for start in range(4):
            if start == 2:  # the last line of a run that was killed
                with open(os.path.join(self.out, "engine.jsonl"), "a", encoding="utf-8") as file:
                    file.write('{"build": "')
            if start == 3:  # another build
                os.utime(os.path.join(build, "src", "tool", "sdr"), (1, 1))
            self.assertEqual(run(*words).returncode, 0)
            with open(log, encoding="utf-8") as file:
                before.append(len(file.readlines()))
        self.assertGreater(before[0], 0)
        self.assertEqual(before, [before[0]] * 3 + [2 * before[0]])

    def test_tails_come_from_enough_runs_only(self):
        build, _ = self.stand_in()
        for runs, there in (("2000", True), ("1999", False)):
            done = run("--figure", "3", "--runs", runs, "--quick", "--build", build, "--out", self.out)
            self.assertEqual(done.returncode, 0, done.stderr)
            tails = [row for row in self.read("3") if row["quantity"] == "p999_s" and row["source"] == cells.ENGINE]
            self.assertEqual(bool(tails), there)

    def test_its_failures_are_told(self):
        for text, said in (("#!/bin/sh\necho --size: too large >&2; exit 2\n", "--size: too large"),
                           ("#!/bin/sh\necho '[]'\n", "sr:rto=3"), ("#!/bin/sh\necho hello\n", "does not understand"),
                           (None, "did not end")):
            with self.subTest(said=said):
                build, _ = self.stand_in(unfinished=1, text=text)
                done = run("--quick", "--figure", "3", "--build", build, "--out", self.out)
                self.assertEqual(done.returncode, 1)
                self.assertIn(said, done.stderr)
                shutil.rmtree(build)


class Pure(unittest.TestCase):
    def test_ratios_carry_the_errors_of_both(self):
        over = cells.Answer(cells.SIMULATED, 2, 1, 100, 1.97, 2.03)
        under = cells.Answer(cells.SIMULATED, 1, 1, 100, 0.98, 1.02)
        low, high = rows.ratio_bounds(over, under)
        self.assertAlmostEqual(low, 2 * (1 - 0.025))
        self.assertAlmostEqual(high, 2 * (1 + 0.025))
        exact = cells.Answer(cells.EXACT, 1, 1)
        self.assertEqual(rows.ratio_bounds(exact, exact), (None, None))
        self.assertEqual(rows.ratio_source(cells.Answer(cells.ENGINE, 1, 1), exact), cells.MIXED)

    def test_what_the_engine_is_asked(self):
        plan = engine.Plan()
        self.assertIsNone(engine.why_not(cells.Cell("sr"), plan))
        for cell in (cells.Cell("ec"), cells.Cell("sr", bytes=16 << 30), cells.Cell("sr").read_as("B"),
                     cells.Cell("sr", kind="allreduce", nodes=4)):
            self.assertIsNotNone(engine.why_not(cell, plan), cell)
        self.assertEqual(plan.runs_of(cells.Cell(bytes=2 << 20)), cells.TAIL_RUNS)
        self.assertEqual(plan.runs_of(cells.Cell(bytes=8 << 30)), plan.least_runs)
        self.assertEqual(plan.with_runs(7).runs_of(cells.Cell()), 7)
        thin, full = (figures.figure_12(0.025).asked(part) for part in (True, False))
        self.assertLess(len(set(thin)), len(set(full)))

    def test_runs_without_a_loss_have_an_upper_bound(self):
        cell = cells.Cell("sr", loss=1e-8)
        record = {"engine": "engine", "bytes": cell.bytes, "runs": 100, "unfinished": 0, "lossless_s": 0.028,
                  "mean_s": 0.028, "mean_lo_s": 0.028, "mean_hi_s": 0.028}
        answer = engine.answer_of(record, cell)
        self.assertEqual(answer.mean_lo_s, 0.028)
        self.assertAlmostEqual(answer.mean_hi_s, 0.028 + 0.03 * 3 * cell.rtt_s)
        self.assertEqual(engine.Plan().runs_of(cells.Cell("sr", 128 << 10, loss=1e-8)), engine.CLEAN_RUNS)

    def test_unknown_bounds_stay_unknown(self):
        over = cells.Answer(cells.ENGINE, 2, 1, 2000, p999_s=3, p999_lo_s=2.5)
        found = rows.ratio("9", figures.Ratio("grid", "speedup", cells.Cell("sr"), cells.Cell("ec")), over,
                           cells.Answer(cells.EXACT, 1, 1, p999_s=1))
        self.assertEqual([(row["value"], row["lo"], row["hi"]) for row in found], [("2", "", ""), ("3", "2.5", "")])

    def test_second_largest_of_a_thousand(self):
        for part in (0.05, 0.5, 0.95):
            u = headlines.beta_quantile(part, 1000)
            self.assertAlmostEqual(u**1000 + 1000 * u**999 * (1 - u), part, places=9)

    def test_printed_slips(self):
        with model.Model(PAPER_MODEL) as asked:
            ask = headlines.Asker(asked, engine.Engine(None, engine.Plan()), 0.025)
            for loss, bound, exact in ((0.03, 28.65, 28.59), (0.04, 31.90, 30.91), (0.05, 50.07, 42.98),
                                       (0.06, 100.87, 79.62)):
                found = headlines.bound_423(ask, loss)
                self.assertAlmostEqual(found[0] * 1e3, bound, delta=0.1 * (bound - 28.35))
                self.assertAlmostEqual(found[1] * 1e3, exact, delta=0.006)


class EndToEnd(Directory):
    def test_quick(self):
        sdr = os.path.join(BUILD, "src", "tool", "sdr")
        if not os.path.exists(sdr) or subprocess.run([sdr, "sim", "--help"], capture_output=True,
                                                     check=False).returncode:
            self.skipTest("this build's sdr has no sim")
        done = run("--quick", "--figure", "3", "--build", BUILD, "--out", self.out)
        self.assertEqual(done.returncode, 0, done.stderr)
        found = [row for row in self.read("3") if row["quantity"] == "slowdown_mean"]
        exact = {(row["panel"], row["scheme"], row["bytes"], row["loss"], row["km"]): float(row["value"])
                 for row in found if row["source"] == cells.EXACT}
        real = [row for row in found if row["source"] == cells.ENGINE]
        self.assertGreater(len(real), 8)
        for row in real:
            value = exact[row["panel"], row["scheme"], row["bytes"], row["loss"], row["km"]]
            room = 0.1 * value + 2 * (float(row["hi"]) - float(row["lo"]))
            self.assertAlmostEqual(float(row["value"]), value, delta=room, msg=str(row))


if __name__ == "__main__":
    unittest.main()
