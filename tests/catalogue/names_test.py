#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""That no name is forgotten: names.txt against the catalogue's table and CTest.

Each name of names.txt has an answer: a scenario of the table, a test that CTest has, or a reason.
Each name of the list `field` is itself in the table. What the table says is tested elsewhere
is a case of that test's source. A name planted where none is must be seen.

names_test.py CATALOGUE CTEST BUILD_DIR SOURCE_DIR
"""
import json
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).parent


def names():
    for line in (HERE / "names.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            yield line.split("\t")


def table(catalogue):
    """The table's names, and {name: "test:case"} of those that are elsewhere."""
    text = subprocess.run([catalogue, "--list"], capture_output=True, text=True, check=True).stdout
    rows = [line for line in text.splitlines() if not line.startswith(" ")]
    elsewhere = {}
    for line in rows:
        found = re.search(r"; elsewhere: (\S+)", line)
        if found:
            elsewhere[line.split()[0]] = found[1]
    return [line.split()[0] for line in rows], elsewhere


def ctest_names(ctest, build):
    text = subprocess.run([ctest, "--test-dir", build, "--show-only=json-v1"],
                          capture_output=True, text=True, check=True).stdout
    return {test["name"] for test in json.loads(text[text.index("{"):])["tests"]}


def answered(source, name, answer, scenarios, tests):
    """None, or what is wrong."""
    if source == "field" and answer != name:
        return f"{name}: a name of ours is its own scenario, not {answer!r}"
    if answer.startswith("-"):
        return None if len(answer) > 8 else f"{source} {name}: no reason is given"
    if answer.startswith("test:"):
        known = answer[5:] in tests
        return None if known else f"{source} {name}: CTest has no test {answer[5:]}"
    return None if answer in scenarios else f"{source} {name}: the table has no {answer}"


def is_case(source_dir, place):
    """place: "test:case", a cmocka case in the test's source."""
    test, case = place.split(":")
    files = [p for top in ("src", "tests") for p in pathlib.Path(source_dir, top).rglob(f"{test}.c")]
    return any(re.search(rf"cmocka_unit_test\({case}\)", p.read_text()) for p in files)


def main():
    catalogue, ctest, build, source = sys.argv[1:]
    scenarios, elsewhere = table(catalogue)
    tests = ctest_names(ctest, build)
    rows = list(names())
    wrong = [w for w in (answered(*row, scenarios, tests) for row in rows) if w]
    wrong += [f"{n}: twice in the table" for n in set(scenarios) if scenarios.count(n) > 1]
    wrong += [f"{n}: no case {where}" for n, where in elsewhere.items()
              if where.split(":")[0] not in tests or not is_case(source, where)]
    planted = [("field", "x", "y"), ("field", "x", "x"), ("interop", "x", "test:x"),
               ("interop", "x", "nobody"), ("interop", "x", "-")]
    wrong += [f"not seen: {row}" for row in planted if not answered(*row, scenarios, tests)]
    if is_case(source, "sdk_hostile_test:no_such_case"):
        wrong.append("not seen: a case that there is not")
    for line in wrong:
        print(line)
    by = {}
    for row in rows:
        by.setdefault(row[0], []).append(row[2])
    for name, answers in by.items():
        here = sum(not a.startswith(("-", "test:")) for a in answers)
        there = sum(a.startswith("test:") for a in answers)
        print(f"{name}: {len(answers)} names, {here} scenarios, {there} other tests, "
              f"{len(answers) - here - there} that do not apply")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
