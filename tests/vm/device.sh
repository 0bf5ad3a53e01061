#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# In the guest: the SDK and connections over two RDMA devices (tests/device), on a clean
# link, IPv4 and IPv6; connections again on one that loses, delays and reorders.
set -euo pipefail
here=$(dirname "$(realpath "$0")")
test=$SDR_BUILD/tests/device/device_test

"$test" verbs:"$SDR_VM_DEV_A" "$SDR_VM_A" verbs:"$SDR_VM_DEV_B" "$SDR_VM_B"
"$here/netem" loss 2% delay 2ms reorder 5%
"$test" verbs:"$SDR_VM_DEV_A" "$SDR_VM_A6" verbs:"$SDR_VM_DEV_B" "$SDR_VM_B6" lossy
