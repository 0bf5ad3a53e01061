# SPDX-License-Identifier: Apache-2.0
"""bench/schemes/schemes: a tiny grid end to end, by the real program, in one piece and in shards."""
import csv
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
import xml.dom.minidom

from paths import BUILD, SCHEMES
from schemesbench import cells

TINY = ("--full", "--rtt", "1ms", "--bw", "10Gbit", "--size", "64KiB,1MiB", "--loss", "0,1e-2", "--burst", "1,8",
        "--scheme", "sr:rto=3,sr-nack,ec:32,8,auto", "--runs", "30", "--no-article", "--build", BUILD)
POINTS = 2 * 3  # without losses there are no bursts


def run(*words, timeout=200):
    return subprocess.run([sys.executable, "-B", SCHEMES, *words], text=True, capture_output=True, timeout=timeout,
                          check=False)


def rows_of(path):
    with open(path, encoding="utf-8", newline="") as file:
        reader = csv.DictReader(file)
        assert tuple(reader.fieldnames) == cells.COLUMNS
        return list(reader)


class Directory(unittest.TestCase):
    def setUp(self):
        self.out = self.enterContext(tempfile.TemporaryDirectory())

    def good(self, *words):
        done = run(*words)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout


class Tiny(Directory):
    def check_rows(self, rows):
        self.assertEqual(len(rows), POINTS * 4)
        self.assertEqual(len({(r["scheme"], r["bytes"], r["loss"], r["burst_pkts"]) for r in rows}), POINTS * 4)
        for row in rows:
            self.assertEqual((row["runs"], row["unfinished"], row["p999_s"]), ("30", "0", ""), row)
            # Nobody beats T*, and nobody is near it who loses much and waits three round trips for it. Few runs
            # may have lost less than T* allows for.
            self.assertGreater(float(row["mean_over_limit"]), 0.995, row)
            if float(row["loss"]) == 0:
                self.assertLess(float(row["mean_over_limit"]), 1.2, row)
        slow = [float(r["mean_over_limit"]) for r in rows
                if r["scheme"] == "sr:rto=3" and r["loss"] == "0.01" and r["bytes"] == "1048576"]
        self.assertTrue(all(value > 1.3 for value in slow), slow)

    def check_files(self):
        with open(os.path.join(self.out, "report.md"), encoding="utf-8") as file:
            report = file.read()
        for name in ("sr:rto=3", "sr-nack", "ec:32,8", "auto"):
            self.assertIn(f"| `{name}` | {POINTS} |", report)
        if shutil.which("gnuplot"):
            for stem in ("limit-auto", "limit-sr-rto-3", "speedup-auto", "speedup-ec-32-8", "schemes"):
                self.assertIn(f"`{stem}.svg`", report)
                with open(os.path.join(self.out, f"{stem}.svg"), encoding="utf-8") as file:
                    text = "".join(node.data for element in xml.dom.minidom.parse(file).getElementsByTagName("text")
                                   for node in walk(element))
                self.assertIn("64 KiB", text)
                self.assertIn("bursts of 8 packets", text)

    def test_one_piece_and_shards_say_the_same(self):
        self.good(*TINY, "--out", self.out)
        rows = rows_of(os.path.join(self.out, "cells.csv"))
        self.check_rows(rows)
        self.check_files()
        os.remove(os.path.join(self.out, "cells.csv"))
        for part in ("1/2", "2/2"):
            self.good(*TINY, "--out", self.out, "--shard", part)
            self.assertFalse(os.path.exists(os.path.join(self.out, "cells.csv")))
        self.good(*TINY, "--out", self.out, "--merge")
        self.assertEqual(rows_of(os.path.join(self.out, "cells.csv")), rows)

    def test_what_was_run_is_kept(self):
        words = ("--runs", "3", "--rtt", "25ms", "--bw", "400Gbit", "--size", "64KiB", "--loss", "1e-2", "--burst", "1",
                 "--scheme", "sr-nack", "--no-article", "--build", BUILD, "--out", self.out)
        self.good(*words)
        kept = {name: os.stat(os.path.join(self.out, "runs", name)).st_mtime_ns
                for name in os.listdir(os.path.join(self.out, "runs"))}
        self.assertEqual(len(kept), 1)
        self.good(*words)
        self.assertEqual({name: os.stat(os.path.join(self.out, "runs", name)).st_mtime_ns
                          for name in os.listdir(os.path.join(self.out, "runs"))}, kept)


def walk(node):
    for child in node.childNodes:
        if child.nodeType == child.TEXT_NODE:
            yield child
        yield from walk(child)


class Mistakes(Directory):
    def test_each_says_what_is_wrong(self):
        for words, part in ((("--loss", "2"), "'2': a ratio"), (("--size", "7"), "'7': a size like"),
                            (("--shard", "1/2"), "--shard and --merge are for --full"),
                            (("--full", "--shard", "3/2"), "'3/2': I/N is wanted"),
                            (("--full", "--shard", "1/2", "--merge"), "exclude each other"),
                            (("--size", "3MiB", "--build", BUILD, "--no-article"), "nothing is left of the grid"),
                            (("--build", self.out), "build first"),
                            (("--full", "--merge", "--no-article", "--build", BUILD), "has no shard of")):
            done = run(*words, "--out", os.path.join(self.out, "o"))
            self.assertNotEqual(done.returncode, 0, words)
            self.assertIn(part, done.stderr, words)

    def test_a_scheme_that_there_is_not(self):
        done = run("--runs", "1", "--size", "64KiB", "--loss", "0", "--scheme", "tcp", "--no-article", "--build", BUILD,
                   "--out", self.out)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("unknown scheme", done.stderr)
        self.assertFalse(os.listdir(os.path.join(self.out, "runs")))


class Estimate(Directory):
    def test_full_says_how_long_and_how_to_run_a_part(self):
        out = self.good("--full", "--rtt", "1ms", "--bw", "10Gbit", "--size", "64KiB", "--scheme", "sr-nack",
                        "--no-article", "--build", BUILD, "--out", self.out)
        self.assertIn("2000 runs", out)
        self.assertIn("22 cells: about", out)
        self.assertIn("--shard 1/", out)
        self.assertFalse(os.path.exists(os.path.join(self.out, "cells.csv")))


if __name__ == "__main__":
    unittest.main()
