# SPDX-License-Identifier: Apache-2.0
"""Cells and values as people write them."""
import unittest

import path  # noqa: F401
from wanbench import grid


class Values(unittest.TestCase):
    def test_rates(self):
        self.assertEqual(grid.parse_rate("1Gbit"), 10**9)
        self.assertEqual(grid.parse_rate("2.5 gbit/s"), 2_500_000_000)
        self.assertEqual(grid.parse_rate("100Mbit"), 10**8)
        for bad in ("", "1", "Gbit", "-1Gbit", "1GB", "1..5Gbit", "0Gbit", "1e30bit", "5Tbit"):
            with self.assertRaises(ValueError, msg=bad):
                grid.parse_rate(bad)

    def test_times(self):
        self.assertEqual(grid.parse_time("100ms"), 0.1)
        self.assertEqual(grid.parse_time("250us"), 0.00025)
        for bad in ("100", "0ms", "1h", "20s", "ms", "."):
            with self.assertRaises(ValueError, msg=bad):
                grid.parse_time(bad)

    def test_losses(self):
        self.assertEqual(grid.parse_loss("0"), 0)
        self.assertEqual(grid.parse_loss("1%"), 0.01)
        self.assertEqual(grid.parse_loss("1e-4"), 1e-4)
        self.assertEqual(grid.parse_loss("5%"), grid.parse_loss("5e-2"))
        for bad in ("1", "100%", "-1%", "x", "", "nan"):
            with self.assertRaises(ValueError, msg=bad):
                grid.parse_loss(bad)

    def test_sizes_and_bursts(self):
        self.assertEqual(grid.parse_size("16MiB"), 16 << 20)
        self.assertEqual(grid.parse_burst("64"), 64)
        for bad in ("0", "-1", "1.5", "x", "10001"):
            with self.assertRaises(ValueError, msg=bad):
                grid.parse_burst(bad)

    def test_lists_keep_their_order_and_drop_repeats(self):
        self.assertEqual(grid.parse_list("5%,0, 1%,5e-2", grid.parse_loss), [0.05, 0, 0.01])
        with self.assertRaises(ValueError):
            grid.parse_list(" , ", grid.parse_loss)

    def test_texts(self):
        self.assertEqual(grid.rate_text(2_500_000_000), "2.5Gbit")
        self.assertEqual(grid.time_text(0.025), "25ms")
        self.assertEqual(grid.loss_text(0.05), "5 %")
        self.assertEqual(grid.loss_text(1e-4), "1e-4")
        self.assertEqual(grid.size_text(16 << 20), "16 MiB")


class Cells(unittest.TestCase):
    def test_clean_comes_first_and_has_no_bursts(self):
        cells = grid.cells([10**9], [0.1, 0.01], [0.05, 0, 0.01], [8, 1])
        self.assertEqual(len(cells), 2 * (1 + 2 * 2))
        self.assertTrue(cells[0].is_clean and cells[5].is_clean)
        self.assertEqual(sum(c.is_clean for c in cells), 2)
        self.assertEqual({c.burst for c in cells if c.is_clean}, {1})

    def test_keys_differ(self):
        cells = grid.cells([10**8, 10**9], [0.01, 0.025, 0.1, 0.2],
                           [0, 1e-4, 1e-3, 1e-2, 5e-2, 1e-1], [1, 8, 64])
        self.assertEqual(len(cells), 2 * 4 * (1 + 5 * 3))
        self.assertEqual(len({c.key for c in cells}), len(cells))

    def test_full_and_default_parse(self):
        for base in (grid.FULL, grid.DEFAULT):
            self.assertTrue(grid.cells(grid.parse_list(base["rate"], grid.parse_rate),
                                       grid.parse_list(base["rtt"], grid.parse_time),
                                       grid.parse_list(base["loss"], grid.parse_loss),
                                       grid.parse_list(base["burst"], grid.parse_burst)))


class Ideal(unittest.TestCase):
    def test_by_hand(self):
        # 1 448 000 bytes are 1000 packets of 1500 bytes: 12 ms at 1 Gbit/s.
        clean = grid.Cell(10**9, 0.1, 0.0, 1)
        self.assertAlmostEqual(grid.injection_s(clean, 1_448_000), 0.012)
        self.assertAlmostEqual(grid.ideal_s(clean, 1_448_000), 0.112)
        lossy = grid.Cell(10**9, 0.1, 0.2, 1)
        self.assertAlmostEqual(grid.ideal_s(lossy, 1_448_000), 0.115)

    def test_estimate_grows_with_the_work(self):
        cells = grid.cells([10**9], [0.1], [0, 0.01], [1])
        little, much = grid.Plan(seconds=4, measures=("goodput",)), grid.Plan(seconds=4)
        self.assertLess(grid.estimate_s(cells, little)[0], grid.estimate_s(cells, much)[0])
        least, most = grid.estimate_s(cells * 3, much)
        self.assertLess(least, most)
        self.assertAlmostEqual(least, 3 * grid.estimate_s(cells, much)[0])


class Counts(unittest.TestCase):
    def test_messages_with_other_counts(self):
        self.assertEqual(grid.messages(grid.parse_counts("100,0,20")),
                         ((grid.MIB, 3, 100), (128 * grid.MIB, 1, 20)))

    def test_wrong_counts_are_named(self):
        for text in ("", "1,2", "1,2,x", "0,0,0", "1,2,-3", "1,2,100001"):
            with self.assertRaisesRegex(ValueError, "counts '"):
                grid.parse_counts(text)


if __name__ == "__main__":
    unittest.main()
