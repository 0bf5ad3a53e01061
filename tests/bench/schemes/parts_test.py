# SPDX-License-Identifier: Apache-2.0
"""The parts of bench/schemes/schemes that run nothing: what is run how often, what is said of the answers."""
import dataclasses
import math
import unittest

import paths  # noqa: F401 (the path to the rest)
from schemesbench import article, cost, draw, grid, judge, words
from schemesbench.cells import Cell, Point, by_point, cell_of, row_of
from schemesbench.words import GIB, KIB, MIB

COSTS = {scheme: cost.Cost(1e-3, {1e-3: 1e-6, 1e-1: 3e-6}) for scheme in grid.SCHEMES}
NAN = math.nan


def cell(scheme, mean, size=16 * MIB, loss=1e-3, burst=1.0, p999=NAN, runs=100, unfinished=0, overhead=0.0, spread=0.0):
    """Times over T*, which is 1 s."""
    return Cell(Point(25.0, 400.0, size, burst, loss), scheme, runs, unfinished, "engine", mean, mean - spread,
                mean + spread, mean, p999, 1.0, 1.0, overhead, NAN)


def points(*some):
    return by_point(some)


class Words(unittest.TestCase):
    def test_schemes_have_commas(self):
        self.assertEqual(words.parse_schemes("sr:rto=3,ec:32,8,hybrid:k=128,m=16,depth=64,auto"),
                         ("sr:rto=3", "ec:32,8", "hybrid:k=128,m=16,depth=64", "auto"))

    def test_lists_are_in_order(self):
        self.assertEqual(words.parse_list(words.parse_size)("1GiB,64KiB,1GiB"), (64 * KIB, GIB))

    def test_there_and_back(self):
        for size in grid.SIZES:
            self.assertEqual(words.parse_size(words.size_text(size)), size)
        for loss in grid.LOSSES:
            self.assertEqual(words.parse_ratio(words.loss_text(loss)), loss)


class Runs(unittest.TestCase):
    def test_the_grids_are_what_they_should_be(self):
        full = grid.full(grid.Choice())
        self.assertEqual(len(full), 6 * 9)
        self.assertEqual(sum(group.cells for group in full), 54 * 22 * 7)
        self.assertEqual({(g.size, g.most) for g in full}, {(s, 2000) for s in grid.SIZES[:4]} | {(GIB, 100),
                                                                                             (8 * GIB, 10)})
        self.assertEqual({(g.rtt_ns, g.bw_bps) for g in grid.default(grid.Choice())}, set(grid.Choice().links()))
        only = grid.default(grid.Choice(sizes=(GIB,), losses=(0.0, 1e-2), bursts=(8.0,)))
        self.assertEqual([(g.size, g.points) for g in only], [(GIB, [(0.0, 1.0), (1e-2, 8.0)])])

    def test_time_is_shared_out(self):
        groups = grid.default(grid.Choice())
        for seconds in (300, 3000, 30000):
            with_runs = cost.share(COSTS, groups, seconds)
            total = cost.total_s(COSTS, with_runs)
            least = cost.total_s(COSTS, [g.with_runs(cost.LEAST_RUNS) for g in groups])
            self.assertLessEqual(total, max(seconds, least))
            self.assertGreater(total, 0.6 * seconds)
            for group in with_runs:
                self.assertTrue(cost.LEAST_RUNS <= group.runs <= group.most)

    def test_enough_time_is_all_runs(self):
        self.assertTrue(all(g.runs == g.most for g in cost.share(COSTS, grid.full(grid.Choice()), 1e9)))

    def test_a_packet_costs_what_it_does_at_the_nearest_loss(self):
        one = COSTS["auto"]
        self.assertAlmostEqual(one.of(4 * MIB, 0.0), 1e-3 + 1024e-6)
        self.assertAlmostEqual(one.of(4 * MIB, 5e-2), 1e-3 + 3 * 1024e-6)


class Judge(unittest.TestCase):
    def test_the_best_fixed_scheme(self):
        near = points(cell("sr-nack", 1.2), cell("ec:32,8", 1.0), cell("auto", 1.049))
        self.assertEqual(list(judge.near_best(near)), [])
        far = points(cell("sr-nack", 1.2), cell("ec:32,8", 1.0), cell("auto", 1.06))
        (miss,) = judge.near_best(far)
        self.assertEqual((miss.against, miss.reason), ("ec:32,8", "not told by the cell"))
        self.assertAlmostEqual(miss.value, 1.06)

    def test_reasons(self):
        for reason, changes in (("3 of 100 runs", {"unfinished": 3}), ("few runs", {"spread": 0.3}),
                                ("few packets: 16", {"size": 64 * KIB}), ("rare: one write in", {"loss": 1e-8}),
                                ("burst: its mean is", {"size": 1 * MIB, "burst": 100.0}),
                                ("budget: parity is 29%", {"overhead": 0.29})):
            (miss,) = judge.near_best(points(cell("ec:32,8", 1.0), cell("auto", 1.3, **changes),
                                             cell("ec:32,8", 1.0, **{k: v for k, v in changes.items()
                                                                     if k in ("size", "loss", "burst")})))
            self.assertIn(reason, miss.reason)

    def test_aims(self):
        for loss, mean, p999, missed in ((1e-2, 1.05, 1.10, []), (1e-2, 1.051, 1.10, ["mean"]),
                                         (1e-2, 1.0, 1.11, ["p99.9"]), (5e-2, 1.09, 1.24, []),
                                         (5e-2, 1.11, 1.26, ["mean", "p99.9"]), (1e-1, 3.0, 3.0, [])):
            found = judge.beyond_aims(points(cell("auto", mean, loss=loss, p999=p999)))
            self.assertEqual([miss.what for miss in found], missed, (loss, mean, p999))
        self.assertEqual(list(judge.beyond_aims(points(cell("auto", 2.0, size=64 * KIB)))), [])

    def test_overhead(self):
        for loss, overhead, missed in ((0.0, 0.02, True), (0.0, 0.009, False), (1e-2, 0.29, False), (1e-2, 0.31, True)):
            found = [m.what for m in judge.beyond_aims(points(cell("auto", 1.0, loss=loss, overhead=overhead)))]
            self.assertEqual(found, ["overhead"] if missed else [])

    def test_without_auto_nothing_is_judged(self):
        some = points(cell("ec:32,8", 3.0))
        self.assertEqual((list(judge.near_best(some)), list(judge.beyond_aims(some))), ([], []))


class Cells(unittest.TestCase):
    def test_a_row_of_sdr_sim_becomes_one_of_ours(self):
        row = {"scheme": "ec:32,8", "bytes": "1048576", "mean_s": "0.05", "mean_lo_s": "0.049", "mean_hi_s": "0.051",
               "p99_s": "0.06", "p999_s": "", "lossless_s": "0.024", "limit_s": "0.025", "overhead": "0.25",
               "model_mean_s": "", "rtt_s": "0.025", "bw_bps": "400000000000", "loss": "0.01", "burst_pkts": "8",
               "runs": "20", "unfinished": "0", "engine": "model"}
        ours = row_of(cell_of(row))
        self.assertEqual((ours["rtt_ms"], ours["bw_gbps"], ours["mean_over_limit"], ours["p99_over_limit"],
                          ours["p999_over_limit"], ours["by"]), ("25", "400", "2", "2.4", "", "model"))

    def test_what_a_write_loses(self):
        self.assertAlmostEqual(Point(25, 400, 4 * MIB, 1, 1e-6).hit, 1024e-6, delta=1e-6)
        self.assertAlmostEqual(Point(25, 400, 4 * MIB, 8, 1e-6).hit, 128e-6, delta=1e-7)


class Article(unittest.TestCase):
    def test_the_closest_sizes_are_found(self):
        claim = article.CLAIMS[0]
        some = [dataclasses.replace(cell(claim.scheme, mean, size=size, loss=claim.loss, p999=tail),
                                    point=Point(claim.rtt_ns / 1e6, 400.0, size, 1.0, claim.loss))
                for size, mean, tail in ((MIB, 1.1, 4.0), (8 * MIB, 1.7, 4.1), (64 * MIB, 3.0, 5.3))]
        ((found, mean, tail, span),) = article.lines(some)
        self.assertIs(found, claim)
        self.assertEqual((mean, tail, span), ("8 MiB: 1.70, p99.9 4.10", "64 MiB: 3.00, p99.9 5.30", "1.10–3.00"))


class Scale(unittest.TestCase):
    def test_places_on_the_bar(self):
        for value, place in ((0.9, 0), (1, 0), (1.02, 1), (1.035, 1.5), (8, 8), (100, 8)):
            self.assertAlmostEqual(draw.limit_place(value), place)


if __name__ == "__main__":
    unittest.main()
