# SPDX-License-Identifier: Apache-2.0
"""Figures to Markdown. Pure."""
from . import predict
from . import summary as s
from .grid import MTU, TCP_PAYLOAD, ideal_s, line_text, loss_text, size_text

STANDING_TITLES = {
    "beside": None,
    "shipped": "As shipped, nothing tuned (shown apart: the label says what it is)",
    "below": f"Does not fill the clean link to {s.FILLS:g} of its limit (not set beside the others)",
}


def share_text(spread):
    """A median and its spread, e.g. 0.89 (0.88-0.90)."""
    if spread is None:
        return "-"
    low, mid, high = (number(spread[key]) for key in ("min", "median", "max"))
    return mid if low == high else f"{mid} ({low}-{high})"


def number(value):
    """Three digits at most, and no more zeros than needed."""
    if value >= 100:
        return f"{value:.0f}"
    if value >= 10:
        return f"{value:.1f}"
    if value >= 0.1 or value == 0:
        return f"{value:.2f}"
    return f"{value:.2g}"


def times_text(entry):
    """Mean and tail of message times over T*, e.g. 1.12 / 1.31."""
    if entry is None:
        return "-"
    if entry["skipped"]:
        return "late"
    if entry["late"]:
        return f"> {number(entry['mean'])}"
    return f"{number(entry['mean'])} / {number(entry['tail'])}"


def cell_title(cell):
    if cell.is_clean:
        return "clean"
    burst = "" if cell.burst == 1 else f", bursts of {cell.burst}"
    return f"{loss_text(cell.loss)}{burst}"


def table(head, rows):
    out = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    out += ["| " + " | ".join(row) + " |" for row in rows]
    return out + [""]


def by_standing(summary, cells, contenders):
    """{standing: [names]} in the contenders' order, of those measured in one of these cells."""
    measured = {name for cell, name in summary if cell in cells}
    out = {key: [] for key in STANDING_TITLES}
    for name, contender in contenders.items():
        if name in measured:
            out[s.standing(summary, cells[0], contender)].append(name)
    return out


def grid_tables(title, note, summary, cells, groups, text):
    """One table with a column a cell for each standing; text(figures) fills a field."""
    out = [f"### {title}", "", note, ""] if note else [f"### {title}", ""]
    for key, heading in STANDING_TITLES.items():
        rows = []
        for name in groups[key]:
            fields = [summary.get((cell, name)) for cell in cells]
            texts = [text(f) if f else "-" for f in fields]
            if any(t != "-" for t in texts):
                rows.append([name, *texts])
        if rows:
            out += [heading + ":", ""] if heading else []
            out += table(["contender", *map(cell_title, cells)], rows)
    return out


def message_tables(summary, cells, groups):
    out = []
    sizes = sorted({size for cell in cells for (c, _), fig in summary.items() if c == cell
                    for size in (*fig.cold, *fig.warm)})
    tails = {entry.get("tail_is") for (c, _), fig in summary.items() if c in cells
             for entry in (*fig.cold.values(), *fig.warm.values())} - {None}
    tail = "99th percentile" if tails == {"p99"} else "longest" if tails == {"max"} else \
        "99th percentile (longest where there are under 100)"
    for kind, meaning in (("cold", "fresh process, fresh connection, until the sender knows"),
                          ("warm", "one at a time on a connection that is fast already")):
        for size in sizes:
            if not any(size in getattr(fig, kind) for (c, _), fig in summary.items() if c in cells):
                continue
            ideal = ", ".join(f"{cell_title(c)}: {ideal_s(c, size) * 1e3:.0f} ms" for c in cells)
            out += grid_tables(
                f"Time of {size_text(size)}, {kind}, over T*",
                f"Mean / {tail}; {meaning}. T*: {ideal}.", summary, cells, groups,
                lambda fig, kind=kind, size=size: times_text(getattr(fig, kind).get(size)))
    return out


def predicted_tables(summary, cells, groups, expected):
    """Measured beside predicted; nothing where nothing was predicted."""
    out = []
    sizes = sorted({size for cell, _, size in expected if cell in cells})
    for size in sizes:
        rows = []
        for name in groups["beside"]:
            texts = []
            for cell in cells:
                f = predict.fields(summary, expected, cell, name, size, ideal_s(cell, size))
                texts.append("-" if f is None else
                             f"{number(f[0])} ({number(f[1])}) / {number(f[2])} ({number(f[3])})")
            if any(t != "-" for t in texts):
                rows.append([name, *texts])
        if rows:
            out += [f"### {size_text(size)}, warm: measured (predicted)", "",
                    "Mean / tail over T*; in brackets the mean and 99th percentile that the model of "
                    "`sdr sim --engine model` expects.", "",
                    *table(["contender", *map(cell_title, cells)], rows)]
    return out


def clean_table(summary, cells, contenders):
    """Who fills the clean link: what decides who is compared."""
    if not cells[0].is_clean:
        return ["The clean link was not measured here: no baseline is set beside lossy figures.", ""]
    rows = []
    for name, contender in contenders.items():
        fig = summary.get((cells[0], name))
        if fig is None or fig.steady_of_limit is None:
            continue
        rows.append([name, share_text(fig.steady_of_link), share_text(fig.steady_of_limit),
                     share_text(fig.mean_of_link),
                     f"{contender.payload:.0f} of {contender.packet}"])
    if not rows:
        return []
    return ["### The clean link", "",
            "Steady goodput (last third of the run) as a share of the rate, and of what the rate "
            "leaves for this contender's payload; goodput over the whole run, start included.", "",
            *table(["contender", "of the rate", "of its limit", "whole run", "payload"], rows)]


# ---- what TCP does well --------------------------------------------------------------


def tcp_does_well(summary, cells, contenders):
    """Where the best TCP is as good as the best of ours, by figures; and what no figure shows."""
    ours = [n for n, c in contenders.items() if c.ours and n != "sdr-send"]
    tcps = [n for n, c in contenders.items() if c.family.startswith("tcp-")]
    said = []
    for cell in cells:
        best = {}
        for label, names in (("ours", ours), ("tcp", tcps)):
            figs = [(summary[cell, n], n) for n in names if (cell, n) in summary]
            values = [(f.steady_of_link["median"], n) for f, n in figs if f.steady_of_link]
            best[label] = (max(values) if values else None, figs)
        if best["ours"][0] and best["tcp"][0] and best["tcp"][0][0] >= 0.97 * best["ours"][0][0]:
            said.append(f"- {cell_title(cell)}: {best['tcp'][0][1]} reaches {best['tcp'][0][0]:.2f} of "
                        f"the link, {best['ours'][0][1]} {best['ours'][0][0]:.2f}.")
        for kind in ("cold", "warm"):
            said += faster_tcp(cell, kind, best["ours"][1], best["tcp"][1])
    out = ["### What TCP does well", ""]
    out += said or ["- By these figures alone, nothing that sdr does not do better here."]
    out += ["- It is in every kernel, passes every firewall, shares a path with others by rules that the "
            "internet lives by, and costs less CPU: segmentation and checksums are offloaded.", ""]
    return out


def faster_tcp(cell, kind, ours, tcps):
    out = []
    for size in sorted({size for fig, _ in ours + tcps for size in getattr(fig, kind)}):
        means = {}
        for label, figs in (("ours", ours), ("tcp", tcps)):
            values = [(getattr(f, kind)[size]["mean"], n) for f, n in figs
                      if "mean" in getattr(f, kind).get(size, {}) and not getattr(f, kind)[size]["late"]]
            means[label] = min(values) if values else None
        if means["ours"] and means["tcp"] and means["tcp"][0] <= 1.03 * means["ours"][0]:
            out.append(f"- {cell_title(cell)}, {size_text(size)} {kind}: {means['tcp'][1]} takes "
                       f"{number(means['tcp'][0])} T*, {means['ours'][1]} {number(means['ours'][0])}.")
    return out


# ---- the whole -----------------------------------------------------------------------


def trouble(summary):
    out = []
    for (cell, name), fig in summary.items():
        if fig.void:
            out.append(f"- {cell.key} {name}: {fig.void} of {fig.void + fig.runs + len(fig.failed)} runs "
                       "void: the machine was too slow or lost packets itself.")
        out += [f"- {cell.key} {name}: failed: {text}" for text in sorted(set(fig.failed))]
    return ["## Void and failed", "", *out, ""] if out else []


def contender_list(records, contenders):
    """Versions and settings, as they were in the last record of each."""
    latest, versions = {}, {}
    for record in records:
        if record["contender"] in contenders and "version" in record:
            latest[record["contender"]] = record
            versions.setdefault(record["contender"], set()).add(record["version"])
    rows = []
    for name in contenders:
        if name in latest:
            settings = "; ".join(f"{k}: {v}" for k, v in latest[name]["settings"].items())
            rows.append([name, ", ".join(sorted(versions[name])), settings or "-"])
    return ["## Contenders", "", *table(["name", "version", "settings (of the last cell)"], rows)]


def report(header, records, summary, contenders, plots, expected=None):
    env = header["environment"]
    out = [f"# {header['link']}: who crosses a long link how fast", "",
           f"{env['cpu']}, {env['cores']} cores, Linux {env['kernel']}; both ends and the link on this "
           f"machine; project at {env['commit']}. Seeds from {header['seed']}, queue {header['queue']}, "
           f"MTU {MTU}. Medians over the runs, with the least and the most in brackets.", "",
           f"T* = injection / (1 - loss) + round trip; injection counts TCP's headers "
           f"({MTU} bytes on the link for {TCP_PAYLOAD}), for everybody. \"late\": smaller messages "
           "took over 20 T* (at least 5 s) already; \"> n\": at least n, some were late.", ""]
    for rate_bps, rtt_s in s.lines_of(summary):
        cells = s.cells_of(summary, rate_bps, rtt_s)
        groups = by_standing(summary, cells, contenders)
        out += [f"## {line_text(rate_bps, rtt_s)}", ""]
        for title, name in plots.get((rate_bps, rtt_s), []):
            out += [f"![{title}]({name})", ""]
        out += clean_table(summary, cells, contenders)
        out += grid_tables("Steady goodput, share of the rate", "", summary, cells, groups,
                           lambda fig: share_text(fig.steady_of_link))
        out += message_tables(summary, cells, groups)
        out += predicted_tables(summary, cells, groups, expected or {})
        out += grid_tables("Bytes on the link for each byte delivered", "", summary, cells, groups,
                           lambda fig: share_text(fig.bytes_per_byte))
        out += grid_tables("CPU seconds per GiB",
                           "User and system time of both ends' processes; the kernel's work in softirqs "
                           "is not in it.", summary, cells, groups,
                           lambda fig: share_text(fig.cpu_s_per_gib))
        out += tcp_does_well(summary, cells, contenders)
    return "\n".join(out + trouble(summary) + contender_list(records, contenders)) + "\n"
