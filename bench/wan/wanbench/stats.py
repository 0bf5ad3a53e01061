# SPDX-License-Identifier: Apache-2.0
"""Figures from samples. Pure."""
import bisect
import math
import statistics

STEADY_FROM = 2 / 3  # of a stream: what is steady is measured from there on
P99_SAMPLES = 100  # with fewer, the 99th percentile is the largest or invented


def bytes_at(samples, t):
    """Bytes delivered by time t, from ascending (time, total) samples: linear between them,
    nothing before the first, no more than the last."""
    if not samples or t <= samples[0][0]:
        return float(samples[0][1]) if samples and t == samples[0][0] else 0.0
    i = bisect.bisect_right(samples, (t, math.inf))
    if i == len(samples):
        return float(samples[-1][1])
    (t0, b0), (t1, b1) = samples[i - 1], samples[i]
    return b0 + (b1 - b0) * (t - t0) / (t1 - t0)


def goodput(samples, end_s, whole_s=None):
    """{mean_bps, steady_bps}: over the run, from its start to end_s; and over its last third,
    when the ramp is behind. Of a file that was there at whole_s and confirmed at end_s the last
    third ends at whole_s."""
    if end_s <= 0:
        return {"mean_bps": 0.0, "steady_bps": 0.0}
    until_s = min(whole_s or end_s, end_s)
    from_s = STEADY_FROM * until_s
    steady = bytes_at(samples, until_s) - bytes_at(samples, from_s)
    return {"mean_bps": bytes_at(samples, end_s) * 8 / end_s,
            "steady_bps": steady * 8 / (until_s - from_s)}


def limit_bps(cell, payload, packet):
    """What the link can carry of a contender's payload: all of it in full packets, and what is
    lost has used the link."""
    return cell.rate_bps * payload / packet * (1 - cell.loss)


def spread(values):
    """{median, min, max, n} of the runs; None without any."""
    values = [v for v in values if v is not None]
    if not values:
        return None
    return {"median": statistics.median(values), "min": min(values), "max": max(values),
            "n": len(values)}


def quantile(sorted_values, q):
    """Nearest rank."""
    rank = max(1, math.ceil(q * len(sorted_values)))
    return sorted_values[rank - 1]


def message_times(runs):
    """Pools what each run says of one size: {"ns": [...], "late": n, "limit_ns": n, "skipped":
    bool} or None. Returns None where nothing was tried, else {n, late, skipped, mean_ns, low_ns,
    high_ns, tail_ns, tail_is}: low and high are the runs' means, tail_is "p99" or "max". A late message
    counts with its limit, so that with late > 0 the figures are lower bounds. Where a run skipped
    the size, as smaller ones were late already, there is no figure at all."""
    runs = [run for run in runs if run is not None]
    times = sorted(t for run in runs for t in run["ns"] + [run["limit_ns"]] * run["late"])
    means = [statistics.fmean(run["ns"] + [run["limit_ns"]] * run["late"])
             for run in runs if run["ns"] or run["late"]]
    skipped = any(run["skipped"] for run in runs)
    if not times and not skipped:
        return None
    out = {"n": len(times), "late": sum(run["late"] for run in runs), "skipped": skipped}
    if skipped:
        return out
    enough = len(times) >= P99_SAMPLES
    return {**out, "mean_ns": statistics.fmean(times), "low_ns": min(means), "high_ns": max(means),
            "tail_ns": quantile(times, 0.99) if enough else times[-1],
            "tail_is": "p99" if enough else "max"}
