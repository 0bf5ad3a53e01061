# SPDX-License-Identifier: Apache-2.0
"""The grid: cells, values as people write them, and what is measured in each cell. Pure."""
import dataclasses
import re

MIB = 1 << 20
MTU = 1500
# Of a full packet of TCP with timestamps over IPv4. T* is the same for everybody, so that
# completion times of different contenders can be divided by each other.
TCP_PAYLOAD = 1448

RATE_UNITS = {"bit": 1, "kbit": 1e3, "mbit": 1e6, "gbit": 1e9}
TIME_UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1}

DEFAULT = {"rate": "1Gbit", "rtt": "100ms", "loss": "0,1%,5%", "burst": "1,8"}
FULL = {"rate": "100Mbit,1Gbit", "rtt": "10ms,25ms,100ms,200ms",
        "loss": "0,1e-4,1e-3,1e-2,5e-2,1e-1", "burst": "1,8,64"}


@dataclasses.dataclass(frozen=True, order=True)
class Cell:
    rate_bps: int
    rtt_s: float
    loss: float
    burst: int  # mean length of a run of lost packets; 1: independent losses

    @property
    def key(self):
        return f"{rate_text(self.rate_bps)}/{time_text(self.rtt_s)}/{self.loss:g}/b{self.burst}"

    @property
    def bdp_bytes(self):
        return int(self.rate_bps * self.rtt_s / 8)

    @property
    def is_clean(self):
        return self.loss == 0


def parse_rate(text):
    match = re.fullmatch(r"([0-9.]+)\s*([kmg]?bit)(/s)?", text.strip().lower())
    value = _number(match and match.group(1)) * RATE_UNITS[match.group(2)] if match else 0
    if not 1e5 <= value <= 1e12:
        raise ValueError(f"rate '{text}': from 100kbit to 1000Gbit is wanted, e.g. 1Gbit")
    return int(value)


def parse_time(text):
    match = re.fullmatch(r"([0-9.]+)\s*(us|ms|s)", text.strip().lower())
    value = _number(match and match.group(1)) * TIME_UNITS[match.group(2)] if match else 0
    if not 1e-4 <= value <= 10:
        raise ValueError(f"time '{text}': from 100us to 10s is wanted, e.g. 100ms")
    return round(value, 9)


def parse_loss(text):
    text = text.strip()
    percent = text.endswith("%")
    try:
        value = float(text.rstrip("%")) / (100 if percent else 1)
    except ValueError:
        value = -1
    if not 0 <= value < 1:
        raise ValueError(f"loss '{text}': from 0 to below 1 is wanted, e.g. 1% or 1e-4")
    return float(f"{value:.6g}")


def parse_burst(text):
    value = int(text) if text.strip().isdigit() else 0
    if not 1 <= value <= 10000:
        raise ValueError(f"burst '{text}': a mean length of 1 to 10000 packets is wanted")
    return value


def parse_size(text):
    match = re.fullmatch(r"([0-9]+)\s*(MiB|KiB|B)?", text.strip(), re.I)
    unit = {"mib": MIB, "kib": 1024, "b": 1, "": 1}
    value = int(match.group(1)) * unit[(match.group(2) or "").lower()] if match else 0
    if not 1 <= value <= 1 << 30:
        raise ValueError(f"size '{text}': from 1B to 1024MiB is wanted, e.g. 16MiB")
    return value


def parse_counts(text):
    """Three counts, of 1, 16 and 128 MiB messages; those with 0 are not sent."""
    parts = [part.strip() for part in text.split(",")]
    if len(parts) != 3 or not all(part.isdigit() and int(part) <= 100000 for part in parts):
        raise ValueError(f"counts '{text}': three numbers from 0 to 100000 are wanted, e.g. 100,100,20")
    if not any(int(part) for part in parts):
        raise ValueError(f"counts '{text}': at least one above 0 is wanted")
    return tuple(int(part) for part in parts)


def messages(warm_counts):
    """Plan.messages with other counts of warm ones."""
    return tuple((size, cold, warm) for (size, cold, _), warm in zip(Plan.messages, warm_counts) if warm)


def parse_list(text, parse):
    """Values of a comma-separated list, each once, in the order given."""
    values = [parse(item) for item in text.split(",") if item.strip()]
    if not values:
        raise ValueError(f"'{text}': a comma-separated list with at least one value is wanted")
    return list(dict.fromkeys(values))


def _number(text):
    try:
        return float(text)
    except (TypeError, ValueError):
        return 0.0


def rate_text(bps):
    for unit, name in ((1e9, "Gbit"), (1e6, "Mbit"), (1e3, "kbit")):
        if bps >= unit:
            return f"{bps / unit:g}{name}"
    return f"{bps}bit"


def line_text(rate_bps, rtt_s):
    """As people read it, e.g. 1 Gbit/s, 100 ms round trip."""
    rate = rate_text(rate_bps).replace("Gb", " Gb").replace("Mb", " Mb").replace("kb", " kb")
    time = f"{rtt_s:g} s" if rtt_s >= 1 else f"{rtt_s * 1e3:g} ms"
    return f"{rate}/s, {time} round trip"


def time_text(s):
    return f"{s:g}s" if s >= 1 else f"{s * 1e3:g}ms"


def loss_text(loss):
    """As it stands in tables and on axes: percent where that is short, else a power of ten."""
    if loss == 0:
        return "0"
    return f"{loss * 100:g} %" if loss >= 1e-3 else f"{loss:.0e}".replace("e-0", "e-")


def size_text(size):
    return f"{size // MIB} MiB" if size % MIB == 0 else f"{size} B"


def cells(rates, rtts, losses, bursts):
    """Every cell once, the clean one of each rate and round trip first: it decides who is
    compared. A clean link has no bursts, and a burst must leave room for loss."""
    out = []
    for rate in rates:
        for rtt in rtts:
            for loss in sorted(losses):
                for burst in sorted(bursts):
                    cell = Cell(rate, rtt, loss, 1 if loss == 0 else burst)
                    if cell not in out:
                        out.append(cell)
    return out


# ---- what is measured ---------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Plan:
    seconds: float = 8.0
    measures: tuple = ("goodput", "cold", "warm")
    # bytes: (cold repetitions, warm repetitions), ascending
    messages: tuple = ((MIB, 3, 8), (16 * MIB, 2, 4), (128 * MIB, 1, 1))

    def stream_s(self, cell):
        """Long enough for the ramp to be behind in the last third, which is what counts."""
        return max(self.seconds, 60 * cell.rtt_s)

    def warm_up_s(self, cell):
        return max(1.0, 30 * cell.rtt_s)

    def limit_s(self, cell, size):
        """A message that takes longer is late, and no larger one is tried."""
        return max(5.0, 20 * ideal_s(cell, size))

    def identity(self):
        """What must be the same for records to stand in one table."""
        return {"seconds": self.seconds, "messages": [list(m) for m in self.messages]}


def injection_s(cell, size):
    """Time to put a message with TCP's headers on the link, once."""
    return size * MTU / TCP_PAYLOAD * 8 / cell.rate_bps


def ideal_s(cell, size):
    """T*: injection, each lost packet sent again at once, and one round trip for the last
    packet to arrive and be confirmed."""
    return injection_s(cell, size) / (1 - cell.loss) + cell.rtt_s


def estimate_s(todo, plan):
    """(fast, slow) seconds for a list of cells, one entry a record: all messages near T*, or all at
    five times T*."""
    fixed = near = 0.0
    for cell in todo:
        fixed += 2.0
        if "goodput" in plan.measures:
            fixed += plan.stream_s(cell) + 1.5
        for kind, column in (("cold", 1), ("warm", 2)):
            if kind in plan.measures:
                fixed += len(plan.messages) * (plan.warm_up_s(cell) + 0.5) if kind == "warm" else 0
                fixed += sum(0.15 * row[column] for row in plan.messages)
                near += sum(1.3 * row[column] * ideal_s(cell, row[0]) for row in plan.messages)
    return fixed + near, fixed + 5 * near
