# SPDX-License-Identifier: Apache-2.0
"""What bench/wan/compare is made of.

  grid      cells (rate, round trip, loss, burst), values as people write them, what is measured
  stats     shares, T*, medians, pooled message times
  procs     child processes: started, timed, charged for their CPU, and always ended
  link      the emulated link, its namespaces, its counters, its health
  contend*  who takes part: settings, versions, how each streams and sends a message
  measure   one record: a cell, a contender, a run
  store     the file of results, so that a second start goes on
  summary   records to figures
  report    figures to Markdown
  plot      figures to SVG, by gnuplot

grid, stats, store and summary are pure; tests/bench tests them.
"""
