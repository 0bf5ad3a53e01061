# SPDX-License-Identifier: Apache-2.0
"""Who takes part, in the order of tables and legends."""
from .contend_file import Rsync, Scp, SdrSend, Srt, Uftp
from .contend_net import Kcptun, Sdr, Tcp, Udt

CONTENDERS = {c.name: c for c in (
    Sdr("auto"), Sdr("sr-nack"), Sdr("sr"), Sdr("gbn"), Sdr("ec-xor:32,8"), Sdr("ec:32,8"),
    Sdr("hybrid:k=128,m=16"), SdrSend(),
    Tcp("bbr", True), Tcp("bbr", True, streams=8), Tcp("bbr", True, initcwnd=64),
    Tcp("cubic", True), Tcp("cubic", True, streams=8),
    Tcp("bbr", False), Tcp("cubic", False),
    Udt(), Srt(), Kcptun(10, 3), Kcptun(0, 0), Uftp(), Rsync(), Scp())}

DEFAULT_NAMES = ("sdr-auto", "sdr-sr-nack", "tcp-bbr-tuned", "tcp-bbr-tuned-x8", "tcp-cubic-tuned", "tcp-bbr-shipped",
                 "udt", "srt")
