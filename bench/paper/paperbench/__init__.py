# SPDX-License-Identifier: Apache-2.0
"""The parts of bench/paper/figures: cells (what is asked), model and engine (who answers), figures
(which cells make a figure), rows (its CSV), draw (its SVG), headlines (what it says)."""
