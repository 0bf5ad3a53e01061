# SPDX-License-Identifier: Apache-2.0
"""What each figure of the paper shows, as cells: no values. Pure.

A figure has panels; a panel has cells, each to be answered by the model and, where it can and may, by
the engine. Ratios set two cells beside each other."""
import dataclasses

from .cells import GIB, KIB, KM_PER_S, MIB, PACKET, READINGS, TIB, Cell

SIZES = [128 * KIB * 4**i for i in range(9)]  # to 8 GiB
LOSSES_3C = (1e-6, 1e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1)
LOSSES_9 = tuple(10.0**-i for i in range(8, 0, -1))
LOSSES_10 = (1e-6, 1e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 2e-2, 3e-2, 5e-2, 1e-1)
LOSSES_10D = (1e-4, 1e-3, 1e-2, 2e-2, 3e-2, 5e-2, 7e-2, 1e-1, 2e-1)
LOSSES_FALLBACK = (1e-4, 3e-4, 6e-4, 1e-3, 2.5e-3, 5e-3, 1e-2, 2e-2, 4e-2)
LOSSES_LARGEST = (1e-3, 3e-3, 1e-2, 2e-2, 3e-2, 5e-2)
SIZES_LARGEST = [128 * KIB * 2**i for i in range(14)]  # to 1 GiB
KM_3B = (75, 750, 1500, 2250, 3000, 3750, 4500, 6000)
KM_12 = (75, 375, 750, 1500, 3750, 6000)
RATES_12 = (100, 200, 400, 800, 1600, 3200)
NODES_13 = (2, 3, 4, 6, 8, 12, 16)
LOSSES_13 = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2)
LOSSES_15 = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 5e-2)
SCHEMES = ("sr", "sr-nack", "ec")
# figure: what is asked of the engine where not everything is. Of figure 3b three distances; of 9 the
# grid, and no other drop rates; of 12 one distance, one bandwidth.
THIN = {
    "3": lambda cell: cell.bytes < 8 * GIB or round(cell.km) in (750, 3750, 6000),
    "9": lambda cell: cell.bytes <= 128 * MIB and cell.bytes in SIZES and cell.loss in LOSSES_9,
    "10": lambda cell: cell.bytes <= 128 * MIB,
    "12": lambda cell: round(cell.km) == 3750 or cell.bw_bps == 400e9,
}
CODE_UNITS = 32  # a size below that many chunks has no (32,8)


@dataclasses.dataclass(frozen=True)
class Ratio:
    """Time of `over` divided by that of `under`, of the means and of the p99.9."""
    panel: str
    name: str  # speedup, rto_over_nack
    over: Cell
    under: Cell


@dataclasses.dataclass
class Figure:
    name: str
    title: str
    cells: list = dataclasses.field(default_factory=list)  # (panel, Cell)
    ratios: list = dataclasses.field(default_factory=list)

    def add(self, panel, *cells):
        self.cells += [(panel, cell) for cell in cells]

    def compare(self, panel, name, over, under):
        self.ratios.append(Ratio(panel, name, over, under))

    def all_cells(self):
        return [cell for _, cell in self.cells] + [cell for ratio in self.ratios for cell in (ratio.over, ratio.under)]

    def asked(self, thin):
        """Those for the engine; of large grids a part: see THIN."""
        kept = THIN.get(self.name) if thin else None
        return [cell for cell in self.all_cells() if not kept or kept(cell)]

    def panel(self, name):
        return [cell for panel, cell in self.cells if panel == name]


def with_scheme(cell, scheme):
    return dataclasses.replace(cell, scheme=scheme)


def figure_3(rtt_s):
    figure = Figure("3", "Slowdown over a lossless link: by message size, distance and drop rate")
    for scheme in SCHEMES:
        figure.add("a", *(Cell(scheme, size, rtt_s) for size in [*SIZES, *(32 * GIB * 4**i for i in range(4))]))
        figure.add("b", *(Cell(scheme, 8 * GIB, km / KM_PER_S) for km in KM_3B))
        figure.add("c", *(Cell(scheme, 128 * MIB, rtt_s, loss) for loss in LOSSES_3C))
    assert figure.panel("a")[12].bytes == 2 * TIB
    return figure


def figure_9(rtt_s):
    figure = Figure("9", "MDS(32,8) over SR-RTO: speed-up by message size and drop rate")
    for reading in READINGS:
        for size in SIZES:
            if size < CODE_UNITS * READINGS[reading][1]:
                continue
            for loss in LOSSES_9:
                pair = [Cell(scheme, size, rtt_s, loss).read_as(reading) for scheme in ("sr", "ec")]
                figure.add("grid", *pair)
                figure.compare("grid", "speedup", *pair)
        for size in SIZES_LARGEST:
            for loss in LOSSES_LARGEST:
                pair = [Cell(scheme, size, rtt_s, loss).read_as(reading) for scheme in ("sr", "ec")]
                if size >= CODE_UNITS * READINGS[reading][1]:
                    figure.compare("largest", "speedup", *pair)
    return figure


def figure_10(rtt_s):
    figure = Figure("10", "Completion times and slowdown of the schemes, and codes against each other")
    for scheme in SCHEMES:
        figure.add("a", *(Cell(scheme, size, rtt_s) for size in SIZES))
    for loss in LOSSES_10:
        cells = [Cell(scheme, 128 * MIB, rtt_s, loss) for scheme in (*SCHEMES, "ec-xor")]
        figure.add("bc", *cells)
        figure.compare("bc", "rto_over_nack", cells[0], cells[1])
    for m in (2, 4, 8, 16, 32):
        figure.add("d", *(Cell("ec", 128 * MIB, rtt_s, loss, m=m) for loss in LOSSES_10D))
    for reading in READINGS:
        for scheme in ("ec", "ec-xor"):
            figure.add("fallback", *(Cell(scheme, 128 * MIB, rtt_s, loss).read_as(reading)
                                     for loss in LOSSES_FALLBACK))
    return figure


def figure_12(_rtt_s):
    figure = Figure("12", "Slowdown of 128 MiB over a lossless link, by distance and bandwidth")
    for loss in (1e-5, 1e-3):
        for scheme in SCHEMES:
            for rate in RATES_12:
                figure.add(f"{loss:g}", *(Cell(scheme, 128 * MIB, km / KM_PER_S, loss, rate * 1e9)
                                          for km in KM_12))
    return figure


def figure_13(rtt_s):
    figure = Figure("13", "Ring Allreduce: speed-up of MDS(32,8) over SR-RTO")

    def pairs(panel, buffer, nodes):
        for loss in LOSSES_13:
            pair = [Cell(scheme, buffer, rtt_s, loss, nodes=nodes, kind="allreduce") for scheme in ("sr", "ec")]
            figure.add(panel, *pair)
            figure.compare(panel, "speedup", *pair)

    for nodes in NODES_13:
        pairs("nodes", 128 * MIB, nodes)
    for buffer in SIZES[3:]:
        pairs("buffer", buffer, 4)
    return figure


def figure_15(rtt_s):
    figure = Figure("15", "Drop rate of a chunk of several packets")
    for loss in LOSSES_15:
        figure.add("chunk", *(Cell(kind="chunk", rtt_s=rtt_s, loss=loss, bytes=PACKET << i, chunk_bytes=PACKET << i)
                              for i in range(7)))
    return figure


FIGURES = {"3": figure_3, "9": figure_9, "10": figure_10, "12": figure_12, "13": figure_13, "15": figure_15}
