"""state.json in the run folder: the last state that the supervisor knew. Only the supervisor writes
it; every verb reads it.

Phases: starting -> ready -> stopping -> stopped, and failed from any of the first two. A process is
identified by its id and its start time, so a recycled id is never mistaken for one of ours.
"""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path


@dataclass
class ProcessState:
    pid: int
    started: int  # clock ticks since boot, from /proc
    admin: int
    state: str = "starting"  # starting, not ready, ready, ended
    detail: str = ""  # the message of /readyz while not ready
    ready_after_s: float | None = None


@dataclass
class RunState:
    phase: str = "starting"
    supervisor_pid: int = 0
    supervisor_started: int = 0
    processes: dict[str, ProcessState] = field(default_factory=dict)
    failed_process: str = ""
    message: str = ""


def write_state(run: Path, state: RunState) -> None:
    text = json.dumps(asdict(state), indent=1)
    fresh = run / "state.json.new"
    fresh.write_text(text)
    fresh.replace(run / "state.json")


def read_state(run: Path) -> RunState | None:
    """None when nothing was ever started from this checkout."""
    try:
        entry = json.loads((run / "state.json").read_text())
    except FileNotFoundError:
        return None
    processes = {name: ProcessState(**process) for name, process in entry.pop("processes").items()}
    return RunState(processes=processes, **entry)


def start_time(pid: int) -> int:
    """Clock ticks since boot; 0 when there is no such process or it is a zombie."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return 0
    fields = text.rpartition(")")[2].split()
    return 0 if fields[0] in ("Z", "X") else int(fields[19])


def is_alive(pid: int, started: int) -> bool:
    return pid > 0 and started > 0 and start_time(pid) == started


def supervisor_is_alive(state: RunState | None) -> bool:
    return state is not None and is_alive(state.supervisor_pid, state.supervisor_started)
