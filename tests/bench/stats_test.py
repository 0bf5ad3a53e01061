# SPDX-License-Identifier: Apache-2.0
"""Figures from samples."""
import random
import unittest

import path  # noqa: F401
from wanbench import grid, stats


class Goodput(unittest.TestCase):
    def test_bytes_at(self):
        samples = [(0.0, 0), (1.0, 100), (3.0, 500)]
        self.assertEqual(stats.bytes_at(samples, -1), 0)
        self.assertEqual(stats.bytes_at(samples, 0.5), 50)
        self.assertEqual(stats.bytes_at(samples, 1.0), 100)
        self.assertEqual(stats.bytes_at(samples, 2.0), 300)
        self.assertEqual(stats.bytes_at(samples, 9.0), 500)
        self.assertEqual(stats.bytes_at([], 1.0), 0)

    def test_bytes_at_against_a_slow_twin(self):
        rng = random.Random(7)
        for _ in range(200):
            times = sorted(rng.sample(range(1, 1000), rng.randint(1, 20)))
            samples, total = [(0, 0)], 0
            for t in times:
                total += rng.randint(0, 50)
                samples.append((t, total))
            at = rng.uniform(-10, 1100)
            self.assertAlmostEqual(stats.bytes_at(samples, at), slow_bytes_at(samples, at))

    def test_ramp_counts_in_the_mean_only(self):
        # Nothing for 6 of 9 seconds, then 125 bytes a second: 1000 bit/s.
        samples = [(0.0, 0), (6.0, 0), (9.0, 375)]
        got = stats.goodput(samples, 9.0)
        self.assertAlmostEqual(got["mean_bps"], 1000 / 3)
        self.assertAlmostEqual(got["steady_bps"], 1000)

    def test_what_comes_after_the_end_does_not_count(self):
        got = stats.goodput([(0.0, 0), (2.0, 200), (4.0, 10**9)], 2.0)
        self.assertAlmostEqual(got["mean_bps"], 800)

    def test_the_confirmation_of_a_file_is_not_steady(self):
        got = stats.goodput([(0.0, 0), (4.0, 400)], 5.0, 4.0)
        self.assertAlmostEqual(got["steady_bps"], 800)
        self.assertAlmostEqual(got["mean_bps"], 640)

    def test_nothing(self):
        self.assertEqual(stats.goodput([], 1.0), {"mean_bps": 0.0, "steady_bps": 0.0})
        self.assertEqual(stats.goodput([(0, 0)], 0), {"mean_bps": 0.0, "steady_bps": 0.0})

    def test_limit(self):
        cell = grid.Cell(10**9, 0.1, 0.1, 1)
        self.assertAlmostEqual(stats.limit_bps(cell, 1448, 1500), 10**9 * 1448 / 1500 * 0.9)


def slow_bytes_at(samples, at):
    """Walks along every segment."""
    if at < samples[0][0]:
        return 0.0
    for (t0, b0), (t1, b1) in zip(samples, samples[1:]):
        if t0 <= at <= t1:
            return b0 + (b1 - b0) * (at - t0) / (t1 - t0)
    return samples[-1][1]


class Spread(unittest.TestCase):
    def test_median_and_ends(self):
        self.assertEqual(stats.spread([3, 1, 2, None]), {"median": 2, "min": 1, "max": 3, "n": 3})
        self.assertIsNone(stats.spread([None, None]))


class Messages(unittest.TestCase):
    def entry(self, ns, late=0, skipped=False):
        return {"ns": ns, "late": late, "limit_ns": 1000, "skipped": skipped}

    def test_pooled(self):
        got = stats.message_times([self.entry([100, 200]), self.entry([300]), None])
        self.assertEqual((got["n"], got["mean_ns"], got["low_ns"], got["high_ns"]), (3, 200, 150, 300))
        self.assertEqual((got["tail_ns"], got["tail_is"], got["late"]), (300, "max", 0))

    def test_p99_only_with_enough(self):
        got = stats.message_times([self.entry(list(range(1, 201)))])
        self.assertEqual((got["tail_is"], got["tail_ns"]), ("p99", 198))
        got = stats.message_times([self.entry(list(range(1, 100)))])
        self.assertEqual((got["tail_is"], got["tail_ns"]), ("max", 99))

    def test_late_counts_with_its_limit(self):
        got = stats.message_times([self.entry([200], late=1), self.entry([300])])
        self.assertEqual((got["late"], got["mean_ns"], got["tail_ns"]), (1, 500, 1000))

    def test_skipped_has_no_figure(self):
        got = stats.message_times([self.entry([], skipped=True), self.entry([100])])
        self.assertTrue(got["skipped"])
        self.assertNotIn("mean_ns", got)

    def test_nothing_tried(self):
        self.assertIsNone(stats.message_times([None]))
        self.assertIsNone(stats.message_times([self.entry([])]))


if __name__ == "__main__":
    unittest.main()
