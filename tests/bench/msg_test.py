# SPDX-License-Identifier: Apache-2.0
"""tcp_msg and udt_msg over loopback, and children that always end."""
import contextlib
import os
import random
import signal
import socket
import subprocess
import tempfile
import time
import unittest

import path  # noqa: F401
from wanbench import procs
from wanbench.contender import json_lines

TOOLS = os.environ.get("MSG_TOOLS", "")


def free_port(udp):
    """Below those that the kernel gives away by itself, so that it stays free."""
    while True:
        port = random.randint(12000, 20000)
        with socket.socket(type=socket.SOCK_DGRAM if udp else socket.SOCK_STREAM) as sock:
            with contextlib.suppress(OSError):
                sock.bind(("127.0.0.1", port))
                return port


class Tools(unittest.TestCase):
    """The same for both tools."""
    tool, udp, port = "tcp_msg", False, 0

    def setUp(self):
        self.path = os.path.join(TOOLS, self.tool)
        if not os.access(self.path, os.X_OK):
            self.skipTest(f"{self.tool} was not built")
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)
        self.crew = procs.Crew(self.directory.name)
        self.addCleanup(self.crew.dismiss)
        self.port = free_port(self.udp)

    def serve(self):
        server = self.crew.start("recv", [self.path, "recv", "127.0.0.1", self.port])
        procs.await_port(server, self.port, self.udp, 60)
        return server

    def send(self, *words):
        client = self.crew.start("send", [self.path, "send", "127.0.0.1", self.port, *words])
        self.assertTrue(client.wait(60), "it did not end")
        return client, json_lines(client.text())

    def test_stream_then_messages(self):
        server = self.serve()
        client, lines = self.send("--stream", "0.3", "--message", "100000x3", "--message", "1x2")
        self.assertEqual(client.returncode, 0, client.trouble())
        self.assertTrue(lines[1]["drained"])
        self.assertEqual([line["bytes"] for line in lines[2:]], [100000] * 3 + [1] * 2)
        self.assertTrue(all(line["done"] and line["ns"] > 0 for line in lines[2:]))
        time.sleep(0.2)
        server.stop()
        got = [line["received"] for line in json_lines(server.text())]
        self.assertEqual(got, sorted(got))
        self.assertGreaterEqual(got[-1], 300002 + (1 << 20))
        self.assertEqual((got[-1] - 300002) % (1 << 20), 0)  # whole frames
        self.assertGreater(client.cpu_s, 0)

    def test_late(self):
        self.serve()
        client, lines = self.send("--message", "1000000000x1@0.01")
        self.assertEqual(client.returncode, 3)
        self.assertFalse(lines[-1]["done"])

    def test_wrong_usage(self):
        for words in (["send"], ["send", "h", "1"], ["send", "h", "1", "--message", "5"],
                      ["send", "h", "1", "--message", "0x1"], ["send", "h", "1", "--stream", "x"],
                      ["send", "h", "1", "--what", "1"], ["send", "h", "1", "--stream"]):
            done = subprocess.run([self.path, *words], capture_output=True, timeout=60, check=False)
            self.assertEqual(done.returncode, 2, words)
            self.assertTrue(done.stderr, words)


class Udt(Tools):
    tool, udp = "udt_msg", True


class Streams(Tools):
    def test_parts_of_one_message(self):
        server = self.serve()
        client, lines = self.send("--streams", "3", "--message", "1000001x1")
        self.assertEqual(client.returncode, 0, client.trouble())
        self.assertEqual(lines[-1]["bytes"], 1000001)
        server.stop()
        self.assertEqual(json_lines(server.text())[-1]["received"], 1000001)


class Children(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)

    def test_a_crew_ends_whole_groups(self):
        with procs.Crew(self.directory.name) as crew:
            child = crew.start("sh", ["sh", "-c", "trap '' TERM; sleep 300 & echo $!; wait; wait"])
            while not child.text().strip():
                time.sleep(0.01)
            grandchild = int(child.text())
        self.assertIsNotNone(child.returncode)
        deadline = time.monotonic() + 60
        while os.path.exists(f"/proc/{grandchild}") and time.monotonic() < deadline:
            with open(f"/proc/{grandchild}/stat", encoding="ascii") as file:
                if file.read().rsplit(")", 1)[1].split()[0] == "Z":
                    return  # nobody reaps here, but it has ended
            time.sleep(0.01)
        self.assertFalse(os.path.exists(f"/proc/{grandchild}"))

    def test_cpu_time_of_a_child_and_its_children(self):
        with procs.Crew(self.directory.name) as crew:
            child = crew.start("sh", ["sh", "-c", "sh -c 'i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done'"])
            self.assertTrue(child.wait(60))
        self.assertGreater(child.cpu_s, 0.02)

    def test_exit_codes_and_last_words(self):
        with procs.Crew(self.directory.name) as crew:
            child = crew.start("sh", ["sh", "-c", "echo went wrong >&2; exit 7"])
            self.assertTrue(child.wait(60))
            self.assertEqual(child.returncode, 7)
            self.assertIn("went wrong", child.trouble())
            slow = crew.start("sleep", ["sleep", "300"])
            self.assertFalse(slow.wait(0.05))
        self.assertEqual(slow.returncode, -signal.SIGTERM)

    def test_a_server_that_ends_at_once_is_told(self):
        with procs.Crew(self.directory.name) as crew:
            child = crew.start("sh", ["sh", "-c", "echo no such address >&2; exit 1"])
            with self.assertRaisesRegex(procs.Failed, "no such address"):
                procs.await_port(child, 1)


if __name__ == "__main__":
    unittest.main()
