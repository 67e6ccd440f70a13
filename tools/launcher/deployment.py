"""The launcher's side of a running deployment: start the supervisor, follow its state, stop it."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from commands import describe_exit
from console import Console, format_seconds
from failure import Failure
from process_names import PROCESSES
from process_plan import Plan, log_path, write_plan
from run_state import RunState, is_alive, read_state, supervisor_is_alive

POLL_S = 0.1
STOP_LIMIT_S = 90.0  # four processes at the supervisor's limit each, and a little
LOG_LINES_SHOWN = 20


class Deployment:
    def __init__(self, run: Path, supervisor: subprocess.Popen):
        self._run = run
        self._supervisor = supervisor

    @property
    def supervisor(self) -> subprocess.Popen:
        return self._supervisor

    def wait_until_ready(self, console: Console) -> None:
        """Shows each process as it becomes ready; raises Failure with the log when one dies."""
        said: set[str] = set()
        while True:
            ended = self._supervisor.poll()
            state = read_state(self._run) or RunState()
            for name, process in state.processes.items():
                if process.state == "ready" and name not in said:
                    said.add(name)
                    console.say(f"  {name} ready after {format_seconds(process.ready_after_s)}")
            if state.phase == "ready":
                return
            if ended is not None:
                raise Failure(failure_text(self._run, state, ended))
            if state.phase != "failed":
                console.progress("starting: " + ", ".join(_progress_text(state)))
            time.sleep(POLL_S)

    def wait_until_it_ends(self) -> None:
        """Returns when the deployment was stopped from elsewhere; raises Failure when a process
        died.
        """
        code = self._supervisor.wait()
        state = read_state(self._run) or RunState()
        if state.phase != "stopped":
            raise Failure(failure_text(self._run, state, code))

    def stop(self) -> None:
        self._supervisor.terminate()
        try:
            self._supervisor.wait(STOP_LIMIT_S)
        except subprocess.TimeoutExpired:
            self._supervisor.kill()
            self._supervisor.wait()


def start(run: Path, plan: Plan, detached: bool) -> Deployment:
    """REQUIRES: no supervisor of this run folder is alive (the supervisor's own lock settles a
    race).
    """
    write_plan(run, plan)
    for name in PROCESSES:
        log = log_path(run, name)
        if log.exists():
            log.replace(log.with_suffix(".log.previous"))
    (run / "state.json").unlink(missing_ok=True)
    program = Path(__file__).with_name("supervise.py")
    with open(run / "supervisor.log", "wb") as log:
        supervisor = subprocess.Popen(
            [sys.executable, str(program), str(run), "detached" if detached else "attached"],
            stdin=subprocess.DEVNULL if detached else subprocess.PIPE,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    return Deployment(run, supervisor)


def failure_text(run: Path, state: RunState, code: int) -> str:
    """Which process ended, why, and its last log lines."""
    if not state.failed_process:
        return (
            f"the supervisor ended with {describe_exit(code)}.\n"
            f"Last lines of {run / 'supervisor.log'}:\n{last_lines(run / 'supervisor.log')}"
        )
    log = log_path(run, state.failed_process)
    return (
        f"{state.message}; the other processes were stopped.\n"
        f"Last lines of {log}:\n{last_lines(log)}"
    )


def last_lines(path: Path, count: int = LOG_LINES_SHOWN) -> str:
    try:
        lines = path.read_text(errors="replace").splitlines()
    except FileNotFoundError:
        return "  (no such file)"
    return "\n".join(f"  {line}" for line in lines[-count:]) or "  (empty)"


def stop_running(run: Path) -> bool:
    """Stops what runs from this checkout, also what a killed supervisor left. False when nothing
    ran.
    """
    state = read_state(run)
    if state is None:
        return False
    victims = [(state.supervisor_pid, state.supervisor_started)]
    if not supervisor_is_alive(state):
        victims = [(process.pid, process.started) for process in state.processes.values()]
    victims = [victim for victim in victims if is_alive(*victim)]
    for number, limit in ((signal.SIGTERM, STOP_LIMIT_S), (signal.SIGKILL, 5.0)):
        for pid, started in victims:
            if is_alive(pid, started):
                os.kill(pid, number)
        deadline = time.monotonic() + limit
        while any(is_alive(*victim) for victim in victims) and time.monotonic() < deadline:
            time.sleep(POLL_S)
    return bool(victims)


def _progress_text(state: RunState) -> list[str]:
    texts = []
    for name, process in state.processes.items():
        detail = f" ({process.detail})" if process.detail else ""
        texts.append(f"{name} {process.state}{detail}")
    return texts
