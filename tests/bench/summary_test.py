# SPDX-License-Identifier: Apache-2.0
"""Records to figures to text: who is set beside whom, and that the text says what the figures do."""
import unittest
from unittest import mock

import path  # noqa: F401
from wanbench import grid, plot, predict, report, store, summary
from wanbench.contenders import CONTENDERS, DEFAULT_NAMES

CLEAN, LOSSY = grid.cells([10**9], [0.1], [0, 0.01], [1])
MIB = 1 << 20


def record(cell, name, run=1, steady=0.9, cold_ms=(200,), late=0, **more):
    return {"kind": "record", "cell_key": cell.key, "contender": name, "run": run, "failed": None,
            "void": [], "measures": ["goodput", "cold"], "version": "1", "settings": {"a": 1},
            "cell": {"rate_bps": cell.rate_bps, "rtt_s": cell.rtt_s, "loss": cell.loss,
                     "burst": cell.burst},
            "goodput": {"mean_bps": steady * 8e8, "steady_bps": steady * 1e9, "bytes_per_byte": 1.05,
                        "cpu_s_per_gib": 2.0},
            "cold": {str(MIB): {"ns": [int(ms * 1e6) for ms in cold_ms], "late": late,
                                "limit_ns": 5 * 10**9, "skipped": False}}, **more}


def both(name, clean, lossy, **more):
    return [record(CLEAN, name, steady=clean, **more), record(LOSSY, name, steady=lossy, **more)]


class Standing(unittest.TestCase):
    def setUp(self):
        records = both("sdr-sr-nack", 0.5, 0.5) + both("tcp-bbr-tuned", 0.9, 0.8) + \
            both("tcp-bbr-shipped", 0.3, 0.1) + both("udt", 0.7, 0.1) + [record(LOSSY, "srt", steady=0.9)]
        self.summary = summary.summarise(records, CONTENDERS)

    def standing(self, name):
        return summary.standing(self.summary, LOSSY, CONTENDERS[name])

    def test_who_is_set_beside_whom(self):
        self.assertEqual(self.standing("sdr-sr-nack"), "beside")
        self.assertEqual(self.standing("tcp-bbr-tuned"), "beside")  # 0.9 / (1448 / 1500) = 0.93
        self.assertEqual(self.standing("tcp-bbr-shipped"), "shipped")
        self.assertEqual(self.standing("udt"), "below")
        self.assertEqual(self.standing("srt"), "below")  # nobody knows: no clean run

    def test_share_of_the_limit(self):
        share = summary.clean_share(self.summary, LOSSY, "tcp-bbr-tuned")
        self.assertAlmostEqual(share, 0.9 * 1500 / 1448)


class Figures(unittest.TestCase):
    def test_void_and_failed_give_no_figures(self):
        records = [record(CLEAN, "udt", 1, steady=0.4), record(CLEAN, "udt", 2, steady=0.9, void=["late"]),
                   record(CLEAN, "udt", 3, steady=0.9, failed="crashed")]
        fig = summary.summarise(records, CONTENDERS)[CLEAN, "udt"]
        self.assertEqual((fig.runs, fig.void, fig.failed), (1, 1, ["crashed"]))
        self.assertAlmostEqual(fig.steady_of_link["max"], 0.4)

    def test_times_are_over_the_ideal(self):
        ideal_ms = grid.ideal_s(CLEAN, MIB) * 1e3
        fig = summary.summarise([record(CLEAN, "udt", cold_ms=(2 * ideal_ms, 4 * ideal_ms))],
                                CONTENDERS)[CLEAN, "udt"]
        self.assertAlmostEqual(fig.cold[MIB]["mean"], 3, places=4)
        self.assertAlmostEqual(fig.cold[MIB]["tail"], 4, places=4)

    def test_contenders_that_are_gone_are_passed_over(self):
        self.assertEqual(summary.summarise([record(CLEAN, "no-such")], CONTENDERS), {})


class Predicted(unittest.TestCase):
    """What the model expects stands beside what was measured, in the same unit."""

    def setUp(self):
        warm = {str(MIB): {"ns": [int(1.5e9 * grid.ideal_s(LOSSY, MIB))], "late": 0, "limit_ns": 5 * 10**9,
                           "skipped": False}}
        self.summary = summary.summarise(both("sdr-ec", 0.9, 0.9, warm=warm), CONTENDERS)

    def test_measured_and_predicted_share_a_field(self):
        ideal_s = grid.ideal_s(LOSSY, MIB)
        expected = {(LOSSY, "sdr-ec", MIB): {"mean": 1.25 * ideal_s, "p99": 2 * ideal_s}}
        text = "\n".join(report.predicted_tables(self.summary, [CLEAN, LOSSY], {"beside": ["sdr-ec"]},
                                                 expected))
        self.assertIn("| sdr-ec | - | 1.50 (1.25) / 1.50 (2.00) |", text)

    def test_nothing_expected_no_table(self):
        self.assertEqual(report.predicted_tables(self.summary, [LOSSY], {"beside": ["sdr-ec"]}, {}), [])

    def test_the_command_names_the_link(self):
        words = predict.command("sdr", LOSSY, CONTENDERS["sdr-ec"], MIB)
        self.assertEqual(words[words.index("--scheme") + 1], "ec:32,8")
        self.assertEqual(words[words.index("--bw") + 1], "957333333bit")
        self.assertIsNone(CONTENDERS["sdr-sr"].model)


class Report(unittest.TestCase):
    def text(self, records):
        header = store.make_header(grid.Plan(), "sdr wan", "default", 0.001, 1,
                                   {"cpu": "x", "cores": 2, "kernel": "6", "commit": "c"})
        figures = summary.summarise(records, CONTENDERS)
        return report.report(header, records, figures, CONTENDERS, {})

    def test_sections(self):
        text = self.text(both("sdr-sr-nack", 0.95, 0.94) + both("tcp-bbr-tuned", 0.96, 0.5) +
                         both("tcp-bbr-shipped", 0.3, 0.1) + both("udt", 0.7, 0.1, cold_ms=(), late=1))
        self.assertIn("| sdr-sr-nack | 0.95 | 0.94 |", text)
        shipped = text.index("As shipped")
        self.assertLess(text.index("| tcp-bbr-tuned | 0.96 | 0.50 |"), shipped)
        self.assertGreater(text.index("| tcp-bbr-shipped | 0.30 | 0.10 |"), shipped)
        self.assertIn("| udt | > ", text)

    def test_what_tcp_does_well_comes_from_the_figures(self):
        text = self.text(both("sdr-sr-nack", 0.95, 0.94) + both("tcp-bbr-tuned", 0.96, 0.5))
        self.assertIn("- clean: tcp-bbr-tuned reaches 0.96 of the link, sdr-sr-nack 0.95.", text)
        self.assertNotIn("- 1 %: tcp-bbr-tuned reaches", text)
        self.assertIn("clean, 1 MiB cold: tcp-bbr-tuned takes", text)

    def test_void_and_failed_are_told(self):
        text = self.text([record(CLEAN, "udt", void=["late"]), record(CLEAN, "srt", failed="no word")])
        self.assertIn("udt: 1 of 1 runs void", text)
        self.assertIn("srt: failed: no word", text)

    def test_numbers(self):
        self.assertEqual([report.number(v) for v in (0, 0.0123, 0.5, 1.234, 12.34, 1234.5)],
                         ["0.00", "0.012", "0.50", "1.23", "12.3", "1234"])


class Plot(unittest.TestCase):
    def test_without_gnuplot_there_are_none(self):
        with mock.patch("shutil.which", return_value=None), mock.patch("builtins.print"):
            self.assertEqual(plot.plots("/nowhere", {}, {}, CONTENDERS), {})

    def test_every_contender_has_a_look_of_its_own(self):
        looks = plot.Style(CONTENDERS).of
        self.assertEqual(len(set(looks.values())), len(CONTENDERS))

    def test_the_script_names_what_is_drawn_and_what_is_not(self):
        figures = summary.summarise(both("sdr-sr-nack", 0.95, 0.94) + both("udt", 0.5, 0.1), CONTENDERS)
        page = plot.goodput_page({"link": "sdr wan"}, figures, [CLEAN, LOSSY], CONTENDERS,
                                 plot.Style(CONTENDERS))
        page.legend()
        text = "\n".join(page.lines)
        self.assertIn("'sdr-sr-nack'", text)
        self.assertNotIn("'udt'", text)
        self.assertIn("udt (0.52)", text)


class Names(unittest.TestCase):
    def test_defaults_exist(self):
        self.assertLessEqual(set(DEFAULT_NAMES), set(CONTENDERS))


if __name__ == "__main__":
    unittest.main()
