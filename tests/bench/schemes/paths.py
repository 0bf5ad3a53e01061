# SPDX-License-Identifier: Apache-2.0
"""Where things are: the build is $SDR_BUILD, or build/dev."""
import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
BUILD = os.environ.get("SDR_BUILD", os.path.join(ROOT, "build/dev"))
SCHEMES = os.path.join(ROOT, "bench/schemes/schemes")
sys.path[:0] = [os.path.join(ROOT, "bench/schemes"), os.path.join(ROOT, "bench")]
