# SPDX-License-Identifier: Apache-2.0
"""A second start goes on where the first ended, whatever happened to it."""
import os
import tempfile
import unittest

import path  # noqa: F401
from wanbench import grid, store

CELLS = grid.cells([10**9], [0.1], [0, 0.01], [1, 8])


def record(cell, name, run, **more):
    return {"kind": "record", "cell_key": cell.key, "contender": name, "run": run, "failed": None,
            "void": [], "measures": ["goodput"], **more}


class Store(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)
        self.path = os.path.join(self.directory.name, "results.jsonl")

    def header(self, **plan):
        return store.make_header(grid.Plan(**plan), "sdr wan", "default", 0.001, 1, {})

    def test_no_file(self):
        self.assertEqual(store.read(self.path), (None, [], []))

    def test_round_trip_and_the_last_counts(self):
        store.append(self.path, self.header())
        store.append(self.path, record(CELLS[0], "x", 1, failed="no"))
        store.append(self.path, record(CELLS[0], "x", 1))
        header, records, wrong = store.read(self.path)
        self.assertEqual(header["seed"], 1)
        self.assertEqual(([r["failed"] for r in records], wrong), ([None], []))

    def test_a_line_that_was_cut(self):
        store.append(self.path, self.header())
        store.append(self.path, record(CELLS[0], "x", 1))
        with open(self.path, "r+b") as file:
            file.truncate(os.path.getsize(self.path) - 10)
        store.append(self.path, record(CELLS[0], "y", 1))
        _, records, wrong = store.read(self.path)
        self.assertEqual([r["contender"] for r in records], ["y"])
        self.assertEqual(len(wrong), 1)

    def test_lines_that_are_something_else(self):
        with open(self.path, "w", encoding="utf-8") as file:
            file.write('7\n[]\n{"kind": "x"}\n{"kind": "record"}\nnull\n')
        header, records, wrong = store.read(self.path)
        self.assertEqual((header, records, len(wrong)), (None, [], 5))

    def test_todo(self):
        names, done = ["x", "y"], [record(CELLS[0], "x", 1), record(CELLS[1], "y", 2, failed="no"),
                                   record(CELLS[2], "x", 1, void=["late"])]
        todo = store.todo(CELLS, names, 2, done, lambda r: True)
        self.assertEqual(len(todo), 2 * 2 * len(CELLS) - 2)  # the failed one again, the void one not
        self.assertIn((2, CELLS[1], "y"), todo)
        self.assertEqual([run for run, _, _ in todo], sorted(run for run, _, _ in todo))
        everything = [record(c, n, r) for _, c, n in todo for r in (1, 2)]
        self.assertEqual(store.todo(CELLS, names, 2, done + everything, lambda r: True), [])

    def test_todo_when_more_is_asked_for(self):
        done = [record(CELLS[0], "x", 1)]
        wants = {"goodput", "cold"}
        self.assertEqual(len(store.todo(CELLS[:1], ["x"], 1, done,
                                        lambda r: wants <= set(r["measures"]))), 1)

    def test_conflicts(self):
        self.assertIsNone(store.conflict(self.header(), self.header()))
        self.assertIn("plan", store.conflict(self.header(seconds=3), self.header(seconds=4)))
        # What is measured may grow: records say what they have.
        self.assertIsNone(store.conflict(self.header(measures=("cold",)), self.header()))


if __name__ == "__main__":
    unittest.main()
