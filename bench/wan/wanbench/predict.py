# SPDX-License-Identifier: Apache-2.0
"""What the model of `sdr sim` and `sdr plan` expects of sdr's warm messages, to stand beside what was
measured: the link's rate less headers, the loss of one direction, nothing else in the way."""
import json
import subprocess


def command(sdr, cell, contender, size):
    """A line that anybody can run again."""
    bw_bps = round(cell.rate_bps * contender.payload / contender.packet)
    return [sdr, "sim", "--engine", "model", "--rtt", f"{round(cell.rtt_s * 1e6)}us",
            "--bw", f"{bw_bps}bit", "--loss", f"{cell.loss:g}", "--burst", str(cell.burst),
            "--size", f"{size}B", "--packet", f"{contender.payload}B", "--scheme", contender.model,
            "--runs", "1000", "--json", "--quiet"]


def predict(sdr, cell, contender, size):
    """{mean, p99} in seconds, or None: the model does not know that scheme, or says no."""
    if getattr(contender, "model", None) is None:
        return None
    done = subprocess.run(command(sdr, cell, contender, size), stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True, check=False)
    if done.returncode != 0:
        return None
    row = json.loads(done.stdout)[0]
    return {"mean": row["mean_s"], "p99": row["p99_s"]}


def predictions(sdr, summary, contenders):
    """{(cell, name, size): {mean, p99}} for all warm messages of ours that have figures."""
    out = {}
    for (cell, name), fig in summary.items():
        for size in fig.warm:
            expected = predict(sdr, cell, contenders[name], size)
            if expected:
                out[cell, name, size] = expected
    return out


def fields(summary, expected, cell, name, size, ideal_s):
    """(measured mean, predicted mean, measured tail, predicted p99), over T*; None: no figure."""
    entry = summary[cell, name].warm.get(size) if (cell, name) in summary else None
    if not entry or entry["skipped"] or entry["late"] or (cell, name, size) not in expected:
        return None
    model = expected[cell, name, size]
    return entry["mean"], model["mean"] / ideal_s, entry["tail"], model["p99"] / ideal_s

