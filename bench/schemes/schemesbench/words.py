# SPDX-License-Identifier: Apache-2.0
"""Values as people write them, and back. Pure."""
import math
import re

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
SIZES = {"b": 1, "kib": KIB, "mib": MIB, "gib": GIB}
TIMES = {"us": 1_000, "ms": 1_000_000, "s": 1_000_000_000}
RATES = {"mbit": 10**6, "gbit": 10**9}


def scaled(text, units, what):
    match = re.fullmatch(r"([0-9.]+)\s*([a-z]+)", text.strip().lower())
    try:
        return round(float(match.group(1)) * units[match.group(2)])
    except (AttributeError, KeyError, ValueError):
        raise ValueError(f"'{text}': {what} is wanted") from None


def parse_size(text):
    return scaled(text, SIZES, "a size like 16MiB")


def parse_time(text):
    return scaled(text, TIMES, "a time like 25ms")


def parse_rate(text):
    return scaled(text, RATES, "a rate like 400Gbit")


def parse_ratio(text):
    try:
        value = float(text)
    except ValueError:
        value = -1
    if not 0 <= value < 1:
        raise ValueError(f"'{text}': a ratio from 0 to below 1 is wanted, like 1e-4")
    return value


def parse_burst(text):
    try:
        value = float(text)
    except ValueError:
        value = 0
    if not 1 <= value <= 10000:
        raise ValueError(f"'{text}': a number from 1 to 10000 is wanted")
    return value


def parse_count(text, least, most):
    value = int(text) if text.isdigit() else least - 1
    if not least <= value <= most:
        raise ValueError(f"'{text}': a number from {least} to {most} is wanted")
    return value


def parse_list(parse):
    """Of values with commas between, each once, in order of size."""
    def of(text):
        return tuple(sorted({parse(word) for word in text.split(",")}))
    return of


def parse_schemes(text):
    """A comma inside a scheme's parameters is followed by a digit or NAME=."""
    return tuple(re.split(r",(?![0-9]|[a-z]+=)", text))


def parse_shard(text):
    match = re.fullmatch(r"(\d+)/(\d+)", text)
    part, of = (int(match.group(1)), int(match.group(2))) if match else (0, 0)
    if not 1 <= part <= of <= 100000:
        raise ValueError(f"'{text}': I/N is wanted, like 3/64")
    return part, of


def size_text(size):
    for unit, name in ((GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB")):
        if size >= unit:
            return f"{size / unit:.3g} {name}"
    return f"{size} B"


def loss_text(loss):
    if loss == 0:
        return "0"
    exponent = math.floor(math.log10(loss) + 1e-9)
    return f"{loss / 10**exponent:.2g}e{exponent}"


def duration_text(seconds):
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
