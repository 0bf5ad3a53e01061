# SPDX-License-Identifier: Apache-2.0
"""What the tests between namespaces share: running their cases, and skipping where there can
be no namespaces. Knows nothing of what a case does."""
import os
import shutil
import subprocess
import sys
import time

SKIP = 77


def sh(*cmd):
    subprocess.run(cmd, check=True, stdout=subprocess.DEVNULL)


def skip_unless_possible(up, down):
    """Makes the namespaces with up(), or ends the program as skipped."""
    if os.geteuid() != 0:
        print("skipped: namespaces need root")
        sys.exit(SKIP)
    for tool in ("nft", "ip"):
        if not shutil.which(tool):
            print("skipped: %s is not installed" % tool)
            sys.exit(SKIP)
    try:
        up()
    except subprocess.CalledProcessError:
        down()
        print("skipped: no namespaces here")
        sys.exit(SKIP)


def run(module, wanted, up, down, undo=lambda: None):
    """Runs the functions case_NAME of a module (its globals()), all or those wanted, undo()
    after each; ends the program, 0 if all were good."""
    skip_unless_possible(up, down)
    bad = 0
    try:
        for name, case in list(module.items()):
            if not name.startswith("case_") or (wanted and name[5:] not in wanted):
                continue
            begun = time.time()
            try:
                case()
                print("ok     %-22s %.1f s" % (name[5:], time.time() - begun), flush=True)
            except AssertionError as e:
                bad += 1
                print("FAILED %-22s %s" % (name[5:], e), flush=True)
            undo()
    finally:
        down()
    sys.exit(bad != 0)
