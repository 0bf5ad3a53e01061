# SPDX-License-Identifier: Apache-2.0
"""What is asked, what is answered, and how people write the values. Pure."""
import dataclasses
import math
import re

KIB, MIB, GIB, TIB = 1 << 10, 1 << 20, 1 << 30, 1 << 40
PACKET = 4096
KM_PER_S = 150e3  # of round trip, as the paper counts: 25 ms are 3750 km
PAPER_RTT_S = 0.025
TAIL_RUNS = 2000  # a p99.9 is two runs of them; from fewer it is not given
TIME_UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1}

SCHEME_TEXT = {"sr": "SR-RTO", "sr-nack": "SR-NACK", "ec": "MDS", "ec-xor": "XOR"}


@dataclasses.dataclass(frozen=True)
class Cell:
    """One question. Of a write; of a ring Allreduce among `nodes`; of one chunk's loss."""
    scheme: str = "sr"
    bytes: int = 128 * MIB
    rtt_s: float = PAPER_RTT_S
    loss: float = 1e-5  # of a packet
    bw_bps: float = 400e9
    packet_bytes: int = PACKET
    chunk_bytes: int = PACKET
    k: int = 32
    m: int = 8
    nodes: int = 0
    kind: str = "write"  # write, allreduce, chunk, printed

    @property
    def km(self):
        return self.rtt_s * KM_PER_S

    @property
    def packets(self):
        return -(-self.bytes // self.packet_bytes)

    @property
    def inject_s(self):
        return self.packets * self.packet_bytes * 8 / self.bw_bps

    @property
    def reading(self):
        """How chunk and drop rate of the paper are read: see READINGS."""
        if self.chunk_bytes == PACKET:
            return "A"
        return "B" if self.packet_bytes == PACKET else "C"

    def read_as(self, reading):
        return dataclasses.replace(self, packet_bytes=READINGS[reading][0], chunk_bytes=READINGS[reading][1])


# reading: (packet, chunk) in bytes; the drop rate is a packet's. Of C a packet is the chunk.
READINGS = {"A": (PACKET, PACKET), "B": (PACKET, 16 * PACKET), "C": (16 * PACKET, 16 * PACKET)}
READING_TEXT = {"A": "chunks of one 4 KiB packet", "B": "64 KiB chunks, drop rate per 4 KiB packet",
                "C": "64 KiB chunks, drop rate per chunk"}

EXACT, SIMULATED, ENGINE = "model exact", "model simulated", "engine"
MIXED = "engine / model exact"  # of ratios: the engine has no codes yet


@dataclasses.dataclass(frozen=True)
class Answer:
    """Times in s; bounds are of 95 % confidence, and None where a value is exact."""
    source: str
    mean_s: float
    lossless_s: float
    runs: int = 0
    mean_lo_s: float | None = None
    mean_hi_s: float | None = None
    p50_s: float | None = None
    p99_s: float | None = None
    p999_s: float | None = None
    p999_lo_s: float | None = None
    p999_hi_s: float | None = None
    quantile_s: float | None = None
    unit_loss: float | None = None
    p_fallback: float | None = None

    @property
    def slowdown(self):
        return self.mean_s / self.lossless_s


def parse_time(text):
    match = re.fullmatch(r"([0-9.]+)\s*(us|ms|s)", text.strip().lower())
    try:
        value = float(match.group(1)) * TIME_UNITS[match.group(2)] if match else -1
    except ValueError:
        value = -1
    value = round(value, 9)
    if not 1e-4 <= value <= 1:
        raise ValueError(f"'{text}': a time from 100us to 1s is wanted, e.g. 25ms")
    return value


def parse_figures(text, known):
    names = [word.strip() for word in text.split(",") if word.strip()]
    for name in names:
        if name not in known:
            raise ValueError(f"'{name}': there are figures {', '.join(known)}")
    if not names:
        raise ValueError(f"'{text}': at least one of {', '.join(known)} is wanted")
    return [name for name in known if name in names]


def parse_count(text, least, most):
    value = int(text) if text.isdigit() else least - 1
    if not least <= value <= most:
        raise ValueError(f"'{text}': a number from {least} to {most} is wanted")
    return value


def size_text(size):
    for unit, name in ((TIB, "TiB"), (GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB")):
        if size >= unit:
            return f"{size / unit:.3g} {name}"
    return f"{size:g} B"


def loss_text(loss):
    """Two digits at most: 1e-2, 1.6e-2."""
    exponent = math.floor(math.log10(loss) + 1e-9)
    return f"{loss / 10**exponent:.2g}e{exponent}"


def time_text(seconds):
    return f"{seconds * 1e3:.4g} ms"
