# SPDX-License-Identifier: Apache-2.0
"""Records to figures: one summary for each cell and contender. Pure."""
import dataclasses

from . import stats
from .grid import Cell, ideal_s

FILLS = 0.9  # a baseline below this share of a clean link is not set beside lossy figures


@dataclasses.dataclass
class Figures:
    cell: Cell
    contender: str
    runs: int = 0
    void: int = 0
    failed: list = dataclasses.field(default_factory=list)
    steady_of_link: dict = None   # spreads of shares
    steady_of_limit: dict = None
    mean_of_link: dict = None
    bytes_per_byte: dict = None
    cpu_s_per_gib: dict = None
    cold: dict = dataclasses.field(default_factory=dict)  # size: message_times, over T*
    warm: dict = dataclasses.field(default_factory=dict)


def cell_of(record):
    return Cell(**record["cell"])


def over_ideal(cell, size, runs):
    """Message times as multiples of T*."""
    times = stats.message_times(runs)
    if times is None or times["skipped"]:
        return times
    ideal_ns = ideal_s(cell, size) * 1e9
    return {**times, **{key: times[f"{key}_ns"] / ideal_ns
                        for key in ("mean", "low", "high", "tail")}}


def figures(cell, name, contender, records):
    """Of one cell and contender; void and failed runs count, but give no figures."""
    out = Figures(cell, name)
    out.void = sum(bool(r["void"]) for r in records)
    out.failed = [r["failed"] for r in records if r["failed"]]
    good = [r for r in records if not r["void"] and not r["failed"]]
    out.runs = len(good)
    streams = [r["goodput"] for r in good if "goodput" in r]
    limit = stats.limit_bps(cell, contender.payload, contender.packet)
    out.steady_of_link = stats.spread([s["steady_bps"] / cell.rate_bps for s in streams])
    out.steady_of_limit = stats.spread([s["steady_bps"] / limit for s in streams])
    out.mean_of_link = stats.spread([s["mean_bps"] / cell.rate_bps for s in streams])
    out.bytes_per_byte = stats.spread([s.get("bytes_per_byte") for s in streams])
    out.cpu_s_per_gib = stats.spread([s.get("cpu_s_per_gib") for s in streams])
    for kind in ("cold", "warm"):
        have = [r[kind] for r in good if kind in r]
        for size in sorted({int(s) for runs in have for s in runs}):
            entry = over_ideal(cell, size, [runs.get(str(size)) for runs in have])
            if entry:
                getattr(out, kind)[size] = entry
    return out


def summarise(records, contenders):
    """{(cell, name): Figures} for the contenders known, as {name: contender}."""
    groups = {}
    for record in records:
        if record["contender"] in contenders:
            groups.setdefault((cell_of(record), record["contender"]), []).append(record)
    return {key: figures(key[0], key[1], contenders[key[1]], group)
            for key, group in sorted(groups.items(), key=lambda item: item[0])}


def clean_share(summary, cell, name):
    """The share of its limit that a contender reaches on the clean link of a cell's rate and round
    trip; None where that was not measured."""
    clean = summary.get((Cell(cell.rate_bps, cell.rtt_s, 0.0, 1), name))
    if clean is None or clean.steady_of_limit is None:
        return None
    return clean.steady_of_limit["median"]


def standing(summary, cell, contender):
    """Where a contender's lossy figures belong: "beside", "shipped" (apart: as it comes) or
    "below" (apart: does not fill the clean link, or nobody knows)."""
    if contender.ours:
        return "beside"
    if contender.shipped:
        return "shipped"
    share = clean_share(summary, cell, contender.name)
    return "beside" if share is not None and share >= FILLS else "below"


def lines_of(summary):
    """The (rate, round trip) pairs measured, ascending."""
    return sorted({(cell.rate_bps, cell.rtt_s) for cell, _ in summary})


def cells_of(summary, rate_bps, rtt_s):
    return sorted({cell for cell, _ in summary
                   if (cell.rate_bps, cell.rtt_s) == (rate_bps, rtt_s)})


def as_json(summary, contenders):
    """For summary.json: plain values."""
    out = []
    for (cell, name), fig in summary.items():
        row = dataclasses.asdict(fig)
        row["cell_key"] = cell.key
        row["standing"] = standing(summary, cell, contenders[name])
        row["clean_share_of_limit"] = clean_share(summary, cell, name)
        out.append(row)
    return out
