"""Runs other programs: quietly with the output kept for a failure, or line by line for progress."""

import os
import shutil
import signal
import subprocess
from collections import deque

from failure import Failure

KEPT_LINES = 60  # of a failed command's output


def run(argv: list[str], what: str, on_line=None, env=None, cwd=None, keep=None) -> None:
    """Runs argv; raises Failure with its last lines when it fails. on_line(line) sees each line as
    it comes.
    """
    kept: deque[str] = deque(maxlen=KEPT_LINES)
    try:
        process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            env=env,
            cwd=cwd,
        )
    except OSError as error:
        raise Failure(f"{what}: {argv[0]} does not start: {error.strerror}") from error
    with process:
        for line in process.stdout:
            if keep is None or keep(line):
                kept.append(line)
            if on_line:
                on_line(line.rstrip("\n"))
    if process.returncode != 0:
        raise Failure(
            f"{what} failed ({describe_exit(process.returncode)}):\n{''.join(kept).rstrip()}"
        )


def output_of(argv: list[str]) -> str | None:
    """The standard output, or None when the program is missing or fails."""
    try:
        done = subprocess.run(
            argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )
    except OSError:
        return None
    return done.stdout if done.returncode == 0 else None


def describe_exit(code: int) -> str:
    """`code` as subprocess reports it: negative means a signal."""
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"signal {-code} ({signal.Signals(-code).name})"
    except ValueError:
        return f"signal {-code}"


def as_root(argv: list[str]) -> list[str]:
    if os.geteuid() == 0:
        return argv
    if shutil.which("sudo") is None:
        raise Failure("this step needs root: run it as root or install sudo")
    return ["sudo", *argv]


def cores() -> int:
    """Parallel jobs of builds and tests; TOKENROUTER_JOBS overrides."""
    jobs = os.environ.get("TOKENROUTER_JOBS")
    if jobs is None:
        return len(os.sched_getaffinity(0))
    if not jobs.isdigit() or int(jobs) < 1:
        raise Failure(f"TOKENROUTER_JOBS={jobs}: a whole number from 1 is expected")
    return int(jobs)
