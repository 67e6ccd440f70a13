"""Tests up, status, chat, logs and down from the user's view, with fake binaries on free ports."""

import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

DRIVER = Path(__file__).with_name("drive_launcher.py")
LIMIT_S = 60.0
ANSWER = "def« f»\n1 tokens by the small model, 1 by the large one"


class UpTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        # Ports of this test's own, from its process id: two builds may test on one machine.
        self.offset = str(10000 + 10 * (os.getpid() % 1300))

    def command(self, *argv: str) -> list[str]:
        places = [str(self.folder / "checkout"), str(self.folder / "home"), self.offset]
        return [sys.executable, "-B", str(DRIVER), *places, *argv]

    def call(self, *argv: str) -> tuple[int, str]:
        done = subprocess.run(
            self.command(*argv),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )
        return done.returncode, done.stdout + done.stderr

    def start(self) -> subprocess.Popen:
        """A foreground up, read until it says that it stays."""
        process = subprocess.Popen(
            self.command("up"), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.terminate)
        self.shown = ""
        while "Ctrl-C" not in self.shown:
            line = process.stdout.readline()
            self.assertNotEqual(line, "", self.shown)
            self.shown += line
        return process

    def test_detached_it_can_be_asked_followed_and_stopped(self):
        self.addCleanup(self.call, "down")
        code, text = self.call("up", "--detach")
        self.assertEqual(code, 0, text)
        self.assertIn(ANSWER, text)
        code, text = self.call("status")
        self.assertEqual((code, text.count(" ready")), (0, 4), text)
        code, text = self.call("up")
        self.assertIn("already running", text)
        self.assertEqual(self.call("chat", "hi", "--authors")[1].split("\n", 1)[1].strip(), ANSWER)
        self.assertEqual(self.call("chat", "hi"), (0, "def f\n"))
        self.assertIn("fake process says hello", self.call("logs", "gateway")[1])
        self.assertEqual(self.call("down"), (0, "stopping: gateway, workers, scheduler\nstopped\n"))
        self.assertEqual(self.call("status")[0], 3)
        self.assertIn("nothing was running", self.call("down")[1])

    def test_ctrl_c_stops_everything(self):
        process = self.start()
        self.assertIn(ANSWER, self.shown)
        process.send_signal(signal.SIGINT)
        rest = process.stdout.read()
        self.assertEqual(process.wait(LIMIT_S), 0)
        self.assertTrue(rest.endswith("stopped\n"), rest)
        self.assertEqual(self.call("status")[0], 3)

    def test_sigterm_stops_everything(self):
        process = self.start()
        process.send_signal(signal.SIGTERM)
        self.assertTrue(process.stdout.read().endswith("stopped\n"))
        self.assertEqual(self.call("status")[0], 3)

    def test_a_killed_process_ends_up_with_its_name_and_log(self):
        process = self.start()
        status = self.call("status")[1]
        pid = next(line.split()[1] for line in status.splitlines() if "small_worker" in line)
        os.kill(int(pid), signal.SIGKILL)
        rest = process.stdout.read()
        self.assertEqual(process.wait(LIMIT_S), 1)
        self.assertIn("small_worker ended with signal 9 (SIGKILL)", rest)
        self.assertIn("fake process says hello", rest)
        self.assertIn("last time: small_worker ended", self.call("status")[1])

    def test_a_killed_launcher_leaves_nothing_behind(self):
        process = self.start()
        process.kill()
        process.wait()
        deadline = time.monotonic() + LIMIT_S
        while self.call("status")[0] != 3:
            self.assertLess(time.monotonic(), deadline)


if __name__ == "__main__":
    unittest.main()
