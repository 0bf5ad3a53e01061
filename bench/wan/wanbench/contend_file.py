# SPDX-License-Identifier: Apache-2.0
"""Contenders that send files: sdr send, SRT, uftp, rsync, scp. TCP below rsync and scp is BBR,
tuned: TCP at its best."""
import os

from .contend_net import Tcp, Udt
from .contender import PORT, FileContender, missing_programs
from .grid import MIB, MTU
from .procs import Failed, await_port, run


def debian_version(package, label):
    try:
        return run(["dpkg-query", "-W", f"-f={label} ${{Version}}", package])
    except Failed:
        return label


class SdrSend(FileContender):
    name = "sdr-send"
    family = "sdr"
    ours = True
    payload = (MTU - 20 - 8 - 36) // 4 * 4

    def tool(self, build):
        return os.path.join(build, "src/tool/sdr")

    def missing(self, build):
        return None if os.access(self.tool(build), os.X_OK) else "the build has no src/tool/sdr"

    def version(self, build):
        return run([self.tool(build), "--version"]).strip().splitlines()[0]

    def settings(self, _cell):
        return {"otherwise": "as it comes; hashes what it sends"}

    def serve(self, bench, directory):
        child = bench.on("b", "sdr-recv", [self.tool(bench.build), "recv", "--dir", directory,
                                           "--quiet", "-p", PORT])
        await_port(child, PORT)
        return [child]

    def command(self, bench, source):
        return [self.tool(bench.build), "send", "--quiet", source, f"{bench.link.ip['b']}:{PORT}"]


class Srt(FileContender):
    name = "srt"
    family = "srt"
    packages = "srt-tools"
    payload = MTU - 20 - 8 - 16
    confirms = False

    def missing(self, _build):
        return missing_programs(["srt-file-transmit"], self.packages)

    def version(self, _build):
        return debian_version("srt-tools", "SRT")

    def parameters(self, cell):
        """As UDT's: it is its descendant."""
        buf, window = Udt().numbers(cell)
        return {"transtype": "file", "messageapi": 0, "congestion": "file", "mss": MTU,
                "fc": window, "sndbuf": buf, "rcvbuf": buf, "udp_sndbuf": buf,
                "udp_rcvbuf": buf, "linger": 180}

    def settings(self, cell):
        return self.parameters(cell)

    def uri(self, cell, host, mode):
        query = "&".join(f"{key}={value}" for key, value in self.parameters(cell).items())
        return f"srt://{host}:{PORT}?mode={mode}&{query}"

    def serve(self, bench, directory):
        child = bench.on("b", "srt-receiver", ["srt-file-transmit", "-q", self.uri(bench.cell, "",
                         "listener"), f"file://{directory}/data"])
        await_port(child, PORT, udp=True)
        return [child]

    def command(self, bench, source):
        return ["srt-file-transmit", "-q", f"file://{source}",
                self.uri(bench.cell, bench.link.ip["b"], "caller")]


class Uftp(FileContender):
    """Unicast to one receiver. It has no rate of its own: it is told the link's."""
    name = "uftp"
    family = "uftp"
    packages = "uftp"
    block = 1440
    payload = 1440
    rate_share = 0.97

    def missing(self, _build):
        return missing_programs(["uftp", "uftpd"], self.packages)

    def version(self, _build):
        return debian_version("uftp", "uftp")

    def settings(self, cell):
        return {"-R (kbit/s, told)": int(cell.rate_bps * self.rate_share / 1e3), "-B": self.buf(cell),
                "-b": self.block, "-Y": "none", "-r": self.grtt(cell), "-s": 10,
                "-H": "the one receiver, so that nobody else is waited for"}

    def buf(self, cell):
        return min(100 * MIB, max(4 * MIB, cell.bdp_bytes))

    def grtt(self, cell):
        """Round trip at first, at least and at most, in seconds."""
        return f"{1.2 * cell.rtt_s + 0.005:.3f}:{max(0.01, cell.rtt_s / 2):.3f}:2"

    def serve(self, bench, directory):
        child = bench.on("b", "uftpd", ["uftpd", "-d", "-q", "-p", PORT, "-D", directory, "-B",
                                        self.buf(bench.cell), "-I", bench.link.device])
        await_port(child, PORT, udp=True)
        return [child]

    def command(self, bench, source):
        cell = bench.cell
        uid = "0x" + "".join(f"{int(byte):02X}" for byte in bench.link.ip["b"].split("."))
        return ["uftp", "-R", int(cell.rate_bps * self.rate_share / 1e3), "-B", self.buf(cell), "-b",
                self.block, "-Y", "none", "-p", PORT, "-I", bench.link.device, "-M",
                bench.link.ip["b"], "-H", uid, "-r", self.grtt(cell), "-s", "10", "-q", source]


class OverTcp(FileContender):
    tcp = Tcp("bbr", True)

    def missing(self, _build):
        return missing_programs(self.programs, self.packages)

    def prepare(self, bench):
        self.tcp.prepare(bench)

    def settings(self, cell):
        return {**self.tcp.settings(cell), **self.extra}


class Rsync(OverTcp):
    name = "rsync"
    family = "rsync"
    packages = "rsync"
    programs = ["rsync"]
    extra = {"rsync": "daemon, no ssh; --whole-file --inplace --no-compress"}

    def version(self, _build):
        return " ".join(run(["rsync", "--version"]).split()[:3])

    def serve(self, bench, directory):
        config = os.path.join(bench.work, "rsyncd.conf")
        with open(config, "w", encoding="utf-8") as file:
            file.write(f"use chroot = no\nuid = 0\ngid = 0\nreverse lookup = no\npid file = {bench.work}/rsyncd.pid\n"
                       f"[target]\npath = {directory}\nread only = no\n")
        if os.path.exists(bench.work + "/rsyncd.pid"):
            os.unlink(bench.work + "/rsyncd.pid")
        child = bench.on("b", "rsyncd", ["rsync", "--daemon", "--no-detach", f"--port={PORT}",
                                         f"--config={config}"])
        await_port(child, PORT)
        return [child]

    def command(self, bench, source):
        return ["rsync", "--whole-file", "--inplace", "--no-compress", source,
                f"rsync://{bench.link.ip['b']}:{PORT}/target/"]


class Scp(OverTcp):
    name = "scp"
    family = "scp"
    packages = "openssh-client, openssh-server"
    programs = ["scp", "sshd", "ssh-keygen"]
    extra = {"scp": "sftp mode, -X nrequests=1024 buffer=261120, -c aes128-gcm@openssh.com, no "
                    "compression", "keys": "made for the run"}

    def version(self, _build):
        return debian_version("openssh-client", "OpenSSH")

    def key(self, bench, name):
        path = os.path.join(bench.work, name)
        if not os.path.exists(path):
            run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", path])
        return path

    def serve(self, bench, directory):
        host, user = self.key(bench, "host_key"), self.key(bench, "user_key")
        os.makedirs("/run/sshd", mode=0o755, exist_ok=True)  # sshd wants it to be there
        child = bench.on("b", "sshd", [
            "/usr/sbin/sshd", "-D", "-e", "-f", "/dev/null", "-h", host, "-p", PORT,
            "-o", f"AuthorizedKeysFile={user}.pub", "-o", "PidFile=none", "-o", "UsePAM=no",
            "-o", "StrictModes=no", "-o", "PermitRootLogin=prohibit-password",
            "-o", "Subsystem=sftp internal-sftp", "-o", f"ListenAddress={bench.link.ip['b']}"])
        await_port(child, PORT)
        self.directory = directory
        return [child]

    def command(self, bench, source):
        return ["scp", "-q", "-P", PORT, "-F", "/dev/null", "-i", self.key(bench, "user_key"),
                "-c", "aes128-gcm@openssh.com", "-X", "nrequests=1024", "-X", "buffer=261120",
                "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null",
                "-o", "BatchMode=yes", "-o", "LogLevel=ERROR", "-o", "Compression=no", source,
                f"root@{bench.link.ip['b']}:{self.directory}/"]


