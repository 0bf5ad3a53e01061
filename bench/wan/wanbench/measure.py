# SPDX-License-Identifier: Apache-2.0
"""One record: a contender in a cell, once. The link is made anew, so that everybody meets the same
line from its start; a record that the machine spoiled (void) is measured once more."""
import os
import shutil
import tempfile
import time

from . import stats
from .contender import Bench
from .link import remove
from .procs import Crew, Failed, GaveUp

GIB = 1 << 30


def goodput(bench, contender):
    before = bench.link.offered_bytes()
    try:
        stream = contender.goodput(bench, bench.plan.stream_s(bench.cell))
    except GaveUp as error:
        return {"mean_bps": 0.0, "steady_bps": 0.0, "delivered_bytes": 0, "gave_up": str(error)}
    on_link = bench.link.offered_bytes() - before
    cpu_s = sum(child.cpu_s for child in stream.children)
    out = {**stats.goodput(stream.samples, stream.end_s, stream.whole_s), "seconds": stream.end_s,
           "delivered_bytes": stream.delivered, "link_bytes": on_link, "cpu_s": cpu_s,
           "samples": thin(stream.samples, 100)}
    if stream.delivered:
        out["bytes_per_byte"] = on_link / stream.delivered
        out["cpu_s_per_gib"] = cpu_s * GIB / stream.delivered
    return out


def thin(samples, most):
    """Evenly chosen, the last one kept."""
    step = max(1, len(samples) // most)
    return [[round(t, 4), b] for t, b in samples[::step]] + \
        [[round(t, 4), b] for t, b in samples[-1:] if (len(samples) - 1) % step]


def cold(bench, contender):
    """{size: {ns, late, limit_ns, skipped}}: after a late message no more are tried."""
    out, late = {}, False
    for size, count, _ in bench.plan.messages:
        limit_s = bench.plan.limit_s(bench.cell, size)
        entry = out[str(size)] = {"ns": [], "late": 0, "limit_ns": int(limit_s * 1e9),
                                  "skipped": late}
        for _ in range(0 if late else count):
            ns = attempt_cold(bench, contender, size, limit_s, entry)
            if ns is None or ns > limit_s * 1e9:
                entry["late"] = 1
                late = True
                break
            entry["ns"].append(ns)
    return out


def attempt_cold(bench, contender, size, limit_s, entry):
    try:
        return contender.cold(bench, size, limit_s)
    except GaveUp as error:
        entry["gave_up"] = str(error)
        return None


def warm(bench, contender, cold_result):
    """As cold. Sizes that were late even for the first time on a cold connection are not tried again:
    what makes them late is not the start."""
    batches, out = [], {}
    for size, _, count in bench.plan.messages:
        limit_s = bench.plan.limit_s(bench.cell, size)
        was = (cold_result or {}).get(str(size))
        skipped = bool(was and (was["skipped"] or (was["late"] and not was["ns"])))
        out[str(size)] = {"ns": [], "late": 0, "limit_ns": int(limit_s * 1e9), "skipped": skipped}
        if not skipped:
            batches.append((size, count, limit_s))
    times, late = {}, False
    try:
        times = contender.warm(bench, batches) if batches else {}
    except GaveUp as error:
        out[str(batches[0][0])]["gave_up"] = str(error)
    for size, count, _ in batches:
        entry = out[str(size)]
        entry["ns"] = times.get(size, [])
        entry["skipped"] = late
        if not late and len(entry["ns"]) < count:
            entry["late"] = 1
            late = True
    return out


def phases(bench, contender, record):
    """What is asked for and can be measured, one phase after the other; children of a phase end
    with it."""
    wanted = [m for m in bench.plan.measures if m in contender.measures]
    for phase in wanted:
        with Crew(os.path.join(bench.work, "logs")) as crew:
            bench.crew, bench.servers = crew, []
            if phase == "goodput":
                record["goodput"] = goodput(bench, contender)
            elif phase == "cold":
                record["cold"] = cold(bench, contender)
            else:
                record["warm"] = warm(bench, contender, record.get("cold"))


def attempt(cell, contender, run, build, plan, make_link, parent):
    """A record, void or not."""
    record = {"kind": "record", "cell_key": cell.key, "contender": contender.name, "run": run,
              "cell": {"rate_bps": cell.rate_bps, "rtt_s": cell.rtt_s, "loss": cell.loss,
                       "burst": cell.burst},
              "measures": list(plan.measures), "failed": None, "void": []}
    started = time.monotonic()
    work = tempfile.mkdtemp(dir=parent)
    os.mkdir(os.path.join(work, "logs"))
    link = make_link(cell, run)
    try:
        link.up()
        bench = Bench(link, None, work, build, plan)
        contender.prepare(bench)
        record["version"] = contender.version(build)
        record["settings"] = contender.settings(cell)
        phases(bench, contender, record)
        record["health"], record["void"] = link.health()
    except Failed as error:
        record["failed"] = str(error)
    finally:
        trouble = remove(link)
        shutil.rmtree(work, ignore_errors=True)
    if trouble and not record["failed"]:
        record["failed"] = f"the link could not be removed: {trouble}"
    record["took_s"] = round(time.monotonic() - started, 2)
    return record


def measure(cell, contender, run, build, plan, make_link, parent):
    record = attempt(cell, contender, run, build, plan, make_link, parent)
    if record["void"] and not record["failed"]:
        again = attempt(cell, contender, run, build, plan, make_link, parent)
        if not again["failed"]:
            again["first_attempt_void"] = record["void"]
            record = again
    return record
