# SPDX-License-Identifier: Apache-2.0
"""Where the modules under test and their programs are; CTest says, and by hand it is the tree and
build/dev."""
import os
import sys

ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", ".."))
BUILD = os.environ.get("SDR_BUILD") or os.path.join(ROOT, "build", "dev")
FIGURES = os.path.join(ROOT, "bench", "paper", "figures")
PAPER_MODEL = os.path.join(BUILD, "bench", "paper", "paper_model")
PLAN = os.path.join(ROOT, "src", "plan")
sys.path[:0] = [os.path.join(ROOT, "bench", "paper"), os.path.join(ROOT, "bench")]
