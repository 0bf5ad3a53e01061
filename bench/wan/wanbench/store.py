# SPDX-License-Identifier: Apache-2.0
"""The file of results: one JSON object a line, appended as they are measured. A second start
reads it and goes on; a line that was cut short by a crash is measured again. Pure but for the file
itself."""
import json
import os

VERSION = 1


def record_key(record):
    return (record["cell_key"], record["contender"], record["run"])


def is_final(record):
    """Failed ones are tried again at the next start; void ones were tried twice already."""
    return record.get("failed") is None


def read(path):
    """(header or None, [records], complaints). Of records with the same key the last counts."""
    header, records, wrong = None, {}, []
    if not os.path.exists(path):
        return None, [], []
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            try:
                value = json.loads(line)
                if value["kind"] == "header":
                    header = value
                elif value["kind"] == "record":
                    records[record_key(value)] = value
                else:
                    raise ValueError(f"kind '{value['kind']}'")
            except (ValueError, KeyError, TypeError) as error:
                wrong.append(f"{path}:{number}: not a record ({error}): measured again")
    return header, list(records.values()), wrong


def make_header(plan, link, queue, late_s, seed, environment):
    return {"kind": "header", "version": VERSION, "plan": plan.identity(), "link": link,
            "queue": queue, "late_s": late_s, "seed": seed, "environment": environment}


def conflict(old, new):
    """What makes new results not comparable with those in the file; None if nothing."""
    for key in ("version", "plan", "link", "queue", "late_s", "seed"):
        if old.get(key) != new[key]:
            return (f"the results there were measured with {key} = {json.dumps(old.get(key))}, now "
                    f"it is {json.dumps(new[key])}: use another --out, or the same options")
    return None


def append(path, value):
    """One whole line, on disk before the next is measured."""
    with open(path, "a+b") as file:
        if file.tell():  # behind a line that a crash has cut
            file.seek(-1, os.SEEK_END)
            if file.read(1) != b"\n":
                file.write(b"\n")
        file.write(json.dumps(value).encode() + b"\n")
        file.flush()
        os.fsync(file.fileno())


def todo(cells, contenders, runs, records, covers):
    """(run, cell, contender) not measured yet: rounds outermost, so that what was stopped early
    has something of each, and drift of the machine meets everybody alike. covers(record) says
    whether a record has all that is asked for."""
    have = {record_key(r) for r in records if is_final(r) and covers(r)}
    return [(run, cell, name) for run in range(1, runs + 1) for cell in cells
            for name in contenders if (cell.key, name, run) not in have]
