# SPDX-License-Identifier: Apache-2.0
"""One record with a contender and a link made of nothing: what is late, what gives up, what is
void and what fails, and that everything is removed in each case."""
import os
import subprocess
import sys
import tempfile
import unittest

import path
from wanbench import grid, measure
from wanbench.contender import Contender, Stream
from wanbench.procs import Failed, GaveUp

MIB = 1 << 20
LOSSY = grid.Cell(10**9, 0.1, 0.01, 1)
PLAN = grid.Plan(messages=((MIB, 2, 3), (16 * MIB, 2, 3), (128 * MIB, 1, 1)))


class Link:
    """Counts how often it was made and removed."""

    def __init__(self, cell, void=()):
        self.cell, self.voids, self.ups, self.downs, self.offered = cell, list(void), 0, 0, 0

    def up(self):
        self.ups += 1

    def down(self):
        self.downs += 1

    def offered_bytes(self):
        self.offered += 2000
        return self.offered

    def health(self):
        return {}, self.voids.pop(0) if self.voids else []


class Fake(Contender):
    name = "fake"

    def __init__(self, cold=None, warm=None, goodput=None):
        self.cold_times, self.warm_times, self.stream = cold or {}, warm or {}, goodput

    def goodput(self, _bench, seconds):
        if isinstance(self.stream, Exception):
            raise self.stream
        return Stream([(0.0, 0), (seconds, 1000)], seconds, 1000, [])

    def cold(self, _bench, size, _limit_s):
        value = self.cold_times.get(size, 5_000_000)
        if isinstance(value, Exception):
            raise value
        return value

    def warm(self, _bench, batches):
        self.asked = [size for size, _, _ in batches]
        if isinstance(self.warm_times, Exception):
            raise self.warm_times
        return {size: self.warm_times.get(size, [1_000_000] * count) for size, count, _ in batches}


class Measure(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)
        self.link = Link(LOSSY)

    def measure(self, contender, plan=PLAN):
        record = measure.measure(LOSSY, contender, 1, "/build", plan, lambda c, r: self.link,
                                 self.directory.name)
        self.assertEqual(self.link.ups, self.link.downs)
        self.assertEqual(os.listdir(self.directory.name), [])
        return record

    def test_all_well(self):
        record = self.measure(Fake())
        self.assertEqual((record["failed"], record["void"]), (None, []))
        self.assertEqual(record["goodput"]["bytes_per_byte"], 2.0)
        self.assertEqual([len(e["ns"]) for e in record["cold"].values()], [2, 2, 1])
        self.assertEqual([len(e["ns"]) for e in record["warm"].values()], [3, 3, 1])

    def test_after_a_late_message_no_larger_one(self):
        contender = Fake(cold={16 * MIB: None})
        record = self.measure(contender)
        self.assertEqual([(e["late"], e["skipped"]) for e in record["cold"].values()],
                         [(0, False), (1, False), (0, True)])
        self.assertEqual(contender.asked, [MIB])

    def test_slower_than_the_limit_is_late_too(self):
        record = self.measure(Fake(cold={MIB: 10**12}))
        self.assertEqual(record["cold"][str(MIB)]["late"], 1)

    def test_fewer_warm_ones_than_asked_for(self):
        record = self.measure(Fake(warm={16 * MIB: [7], 128 * MIB: []}))
        entries = record["warm"]
        self.assertEqual((entries[str(16 * MIB)]["ns"], entries[str(16 * MIB)]["late"]), ([7], 1))
        self.assertTrue(entries[str(128 * MIB)]["skipped"])

    def test_giving_up_is_a_result(self):
        record = self.measure(Fake({MIB: GaveUp("no way")}, GaveUp("no"), GaveUp("never")))
        self.assertIsNone(record["failed"])
        self.assertEqual(record["goodput"]["steady_bps"], 0)
        self.assertEqual(record["cold"][str(MIB)]["gave_up"], "no way")
        self.assertEqual(record["cold"][str(MIB)]["late"], 1)

    def test_failing_is_none(self):
        record = self.measure(Fake(goodput=Failed("broken")))
        self.assertEqual(record["failed"], "broken")

    def test_void_is_measured_once_more(self):
        self.link = Link(LOSSY, [["late"], []])
        record = self.measure(Fake())
        self.assertEqual((record["void"], record["first_attempt_void"], self.link.ups), ([], ["late"], 2))
        self.link = Link(LOSSY, [["late"], ["late again"]])
        record = self.measure(Fake())
        self.assertEqual((record["void"], self.link.ups), (["late again"], 2))

    def test_only_what_is_asked_for(self):
        record = self.measure(Fake(), grid.Plan(measures=("cold",)))
        self.assertNotIn("goodput", record)
        self.assertNotIn("warm", record)


class Command(unittest.TestCase):
    """What needs neither root nor a link."""

    def run_compare(self, *words):
        command = os.path.join(path.WANBENCH, "compare")
        return subprocess.run([sys.executable, "-B", command, *words], capture_output=True, text=True,
                              timeout=60, check=False)

    def test_help(self):
        done = self.run_compare("--help")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("1e-4,1%", done.stdout)

    def test_mistakes_are_named(self):
        with tempfile.TemporaryDirectory() as out:
            for words, said in ((["--rate", "1GB"], "1GB"), (["--contenders", "quic"], "quic"),
                                (["--measure", "joy"], "joy"), (["--loss", "200%"], "200%")):
                done = self.run_compare("--out", out, *words)
                self.assertNotEqual(done.returncode, 0, words)
                self.assertIn(said, done.stderr)
                self.assertNotIn("Traceback", done.stderr)

    def test_estimate_measures_nothing(self):
        with tempfile.TemporaryDirectory() as out:
            done = self.run_compare("--out", out, "--estimate", "--full")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("128 cells", done.stdout)
            self.assertEqual(os.listdir(out), [])


if __name__ == "__main__":
    unittest.main()
