# SPDX-License-Identifier: Apache-2.0
"""Where the modules under test are; CTest says, and by hand it is the tree."""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
WANBENCH = os.environ.get("WANBENCH") or os.path.join(HERE, "..", "..", "bench", "wan")
BENCH = os.path.dirname(os.path.abspath(WANBENCH))
sys.path[:0] = [os.path.abspath(WANBENCH), os.path.join(BENCH, "paper"), BENCH]
