# SPDX-License-Identifier: Apache-2.0
"""The parts of bench/schemes/schemes: words (values as people write them), grid (what is run), cost (how often),
engine (who runs it), cells (its CSV), judge (which cells are good enough, and why not), article (a table of others
beside ours), draw (heat maps), report."""
