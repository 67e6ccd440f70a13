"""Starts the processes of plan.json, watches them, and stops all when one dies or on a signal.

usage: supervise.py RUN_FOLDER {attached|detached}

It is the leader of one session that holds all processes, so that the kernel's autogroup scheduling
weighs them against each other and not as separate logins. When attached, it stops when its standard
input closes, so nothing outlives a launcher that was killed. Children die with it (parent death
signal).
"""

import ctypes
import fcntl
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import admin_port
from commands import describe_exit
from process_names import STOP_ORDER
from process_plan import ProcessPlan, log_path, read_plan
from run_state import ProcessState, RunState, start_time, write_state

POLL_S = 0.2
READY_LIMIT_S = 900.0  # a cold page cache and a slow disk load a model in minutes, never in this
STOP_LIMIT_S = 20.0  # per process, from SIGTERM to SIGKILL; longer than the gateway's drain
PR_SET_PDEATHSIG = 1
EXIT_FAILED, EXIT_ALREADY_RUNNING = 1, 3
LIBC = ctypes.CDLL(None)


def die_with_parent() -> None:
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


class Supervisor:
    def __init__(self, run: Path, plan: list[ProcessPlan], attached: bool):
        self._run = run
        self._plan = plan
        self._inputs = [sys.stdin.fileno()] if attached else []
        self._children: dict[str, subprocess.Popen] = {}
        self._state = RunState(
            supervisor_pid=os.getpid(), supervisor_started=start_time(os.getpid())
        )
        self._began = time.monotonic()
        self._stop = False

    def serve(self) -> int:
        self._listen_to_signals()
        try:
            self._start_all()
            while not self._stop and not self._state.failed_process:
                self._look_at_children()
                self._look_at_readiness()
                write_state(self._run, self._state)
                self._wait()
        finally:
            self._stop_all()
        return EXIT_FAILED if self._state.failed_process else 0

    def _listen_to_signals(self) -> None:
        read_end, write_end = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(write_end, warn_on_full_buffer=False)
        self._inputs.append(read_end)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda *_: setattr(self, "_stop", True))
        signal.signal(signal.SIGCHLD, lambda *_: None)  # only to wake the loop

    def _start_all(self) -> None:
        for process in self._plan:
            with open(log_path(self._run, process.name), "wb") as log:
                try:
                    child = subprocess.Popen(
                        process.argv,
                        stdin=subprocess.DEVNULL,
                        stdout=log,
                        stderr=log,
                        preexec_fn=die_with_parent,
                    )
                except OSError as error:
                    self._fail(
                        process.name,
                        f"{process.name} does not start: {process.argv[0]}: {error.strerror}",
                    )
                    return
            self._children[process.name] = child
            self._state.processes[process.name] = ProcessState(
                pid=child.pid, started=start_time(child.pid), admin=process.admin
            )
            write_state(self._run, self._state)

    def _look_at_children(self) -> None:
        for name, child in self._children.items():
            code = child.poll()
            if code is not None:
                self._state.processes[name].state = "ended"
                self._fail(name, f"{name} ended with {describe_exit(code)}")
                return

    def _look_at_readiness(self) -> None:
        if self._state.phase != "starting":
            return
        elapsed = time.monotonic() - self._began
        for process in self._state.processes.values():
            if process.state in ("starting", "not ready"):
                process.state, process.detail = admin_port.readiness(process.admin)
                if process.state == "ready":
                    process.ready_after_s = round(elapsed, 1)
        waiting = [
            name for name, process in self._state.processes.items() if process.state != "ready"
        ]
        if not waiting and not self._state.failed_process:
            self._state.phase = "ready"
        elif elapsed > READY_LIMIT_S:
            self._fail(waiting[0], f"{waiting[0]} was not ready after {READY_LIMIT_S:.0f} s")

    def _fail(self, name: str, message: str) -> None:
        self._state.phase = "failed"
        self._state.failed_process = self._state.failed_process or name
        self._state.message = self._state.message or message

    def _wait(self) -> None:
        readable, _, _ = select.select(self._inputs, [], [], POLL_S)
        for source in readable:
            if not os.read(source, 4096):
                self._stop = True  # the attached launcher is gone

    def _stop_all(self) -> None:
        if self._state.phase != "failed":
            self._state.phase = "stopping"
        for name in STOP_ORDER:
            child = self._children.get(name)
            if child is None or child.poll() is not None:
                continue
            write_state(self._run, self._state)
            child.terminate()
            try:
                child.wait(STOP_LIMIT_S)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
                note = f"{name} did not stop within {STOP_LIMIT_S:.0f} s and was killed"
                self._state.message = f"{self._state.message}; {note}".lstrip("; ")
            self._state.processes[name].state = "ended"
        if self._state.phase != "failed":
            self._state.phase = "stopped"
        write_state(self._run, self._state)


def main() -> int:
    run, mode = Path(sys.argv[1]), sys.argv[2]
    with open(run / "lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return EXIT_ALREADY_RUNNING
        return Supervisor(run, read_plan(run).processes, mode == "attached").serve()


if __name__ == "__main__":
    sys.exit(main())
