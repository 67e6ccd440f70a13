import os
import signal
import socket
import sys
import tempfile
import threading
import time
import unittest
from pathlib import Path

import deployment
from console import Console
from failure import Failure
from process_names import PROCESSES
from process_plan import Plan, ProcessPlan, check_ports_are_free, log_path
from run_state import is_alive, read_state, supervisor_is_alive

FAKE = Path(__file__).with_name("fake_process.py")
LIMIT_S = 60.0


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def fake_plan(**extra: list[str]) -> Plan:
    """The four processes; `extra` adds flags to one of them."""
    plan = []
    for name in PROCESSES:
        port = free_port()
        argv = [sys.executable, "-B", str(FAKE), f"--admin=127.0.0.1:{port}", *extra.get(name, [])]
        plan.append(ProcessPlan(name, argv, port))
    return Plan(plan, {}, "tokenrouter")


class SuperviseTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.run_folder = Path(folder.name)
        self.silent = Console(out=open(os.devnull, "w"))
        self.addCleanup(self.silent._out.close)

    def start(self, plan, detached=False):
        running = deployment.start(self.run_folder, plan, detached)
        self.addCleanup(self.end, running)
        return running

    def end(self, running):
        if running.supervisor.poll() is None:
            running.stop()
        if running.supervisor.stdin:
            running.supervisor.stdin.close()

    def until(self, condition):
        deadline = time.monotonic() + LIMIT_S
        while not condition():
            self.assertLess(time.monotonic(), deadline, "the condition did not come true")
            time.sleep(0.02)

    def alive(self, state):
        return [
            name
            for name, process in state.processes.items()
            if is_alive(process.pid, process.started)
        ]

    def test_all_become_ready_in_one_session_and_stop_when_told(self):
        running = self.start(fake_plan(large_worker=["--ready_after=0.5"]))
        running.wait_until_ready(self.silent)
        state = read_state(self.run_folder)
        self.assertEqual(self.alive(state), list(PROCESSES))
        sessions = {os.getsid(process.pid) for process in state.processes.values()}
        self.assertEqual(sessions, {running.supervisor.pid})
        running.stop()
        state = read_state(self.run_folder)
        self.assertEqual((state.phase, self.alive(state)), ("stopped", []))
        running.wait_until_it_ends()

    def test_a_killed_process_is_named_with_its_signal_and_the_rest_stops(self):
        running = self.start(fake_plan())
        running.wait_until_ready(self.silent)
        os.kill(read_state(self.run_folder).processes["large_worker"].pid, signal.SIGKILL)
        with self.assertRaises(Failure) as caught:
            running.wait_until_it_ends()
        self.assertIn("large_worker ended with signal 9 (SIGKILL)", str(caught.exception))
        self.assertIn("fake process says hello", str(caught.exception))
        self.assertEqual(self.alive(read_state(self.run_folder)), [])

    def test_a_process_that_dies_while_starting_is_named_with_its_last_log_lines(self):
        running = self.start(
            fake_plan(small_worker=["--ready_after=60", "--exit_after=0.3", "--exit_code=7"])
        )
        with self.assertRaises(Failure) as caught:
            running.wait_until_ready(self.silent)
        self.assertIn("small_worker ended with exit code 7", str(caught.exception))
        self.assertIn("the disk is on fire", str(caught.exception))
        self.assertEqual(self.alive(read_state(self.run_folder)), [])

    def test_a_program_that_is_missing_is_named(self):
        plan = fake_plan()
        plan.processes[1] = ProcessPlan("small_worker", ["/no/such/small_worker"], 1)
        with self.assertRaisesRegex(
            Failure, "small_worker does not start: /no/such/small_worker: No such file"
        ):
            self.start(plan).wait_until_ready(self.silent)

    def test_what_readyz_says_while_loading_is_kept(self):
        self.start(fake_plan(large_worker=["--ready_after=60"]))
        self.until(
            lambda: (state := read_state(self.run_folder))
            and "large_worker" in state.processes
            and state.processes["large_worker"].detail == "loading 42 %"
        )

    def test_an_attached_deployment_ends_with_its_launcher(self):
        running = self.start(fake_plan())
        running.wait_until_ready(self.silent)
        running.supervisor.stdin.close()  # what the kernel does when the launcher is killed
        self.until(lambda: running.supervisor.poll() is not None)
        self.assertEqual(self.alive(read_state(self.run_folder)), [])

    def test_children_end_when_the_supervisor_is_killed(self):
        running = self.start(fake_plan(), detached=True)
        running.wait_until_ready(self.silent)
        running.supervisor.kill()
        running.supervisor.wait()
        self.until(lambda: not self.alive(read_state(self.run_folder)))

    def test_down_stops_a_detached_deployment_and_says_when_nothing_runs(self):
        running = self.start(fake_plan(), detached=True)
        running.wait_until_ready(self.silent)
        self.until(lambda: supervisor_is_alive(read_state(self.run_folder)))
        # The test is the supervisor's parent: reap it, as init would.
        reaper = threading.Thread(target=running.supervisor.wait)
        reaper.start()
        self.assertTrue(deployment.stop_running(self.run_folder))
        reaper.join()
        self.assertFalse(deployment.stop_running(self.run_folder))

    def test_a_second_start_keeps_the_previous_log(self):
        log_path(self.run_folder, "gateway").write_text("old\n")
        self.start(fake_plan()).wait_until_ready(self.silent)
        self.assertEqual((self.run_folder / "gateway.log.previous").read_text(), "old\n")

    def test_a_taken_port_is_named(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            with self.assertRaisesRegex(Failure, f"gateway http=127.0.0.1:{port} cannot be bound"):
                check_ports_are_free(Plan([], {"gateway http": f"127.0.0.1:{port}"}, ""))


if __name__ == "__main__":
    unittest.main()
