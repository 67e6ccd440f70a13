"""logs: the processes' log files, once or followed."""

import sys
import time
from pathlib import Path

from command_line import Arguments, Flag, Verb, nearest
from deployment import last_lines
from failure import Failure, UsageError
from places import find_places
from process_names import PROCESSES
from process_plan import log_path

LINES_SHOWN = 100
POLL_S = 0.3


def run(arguments: Arguments) -> int:
    wanted = arguments.words or list(PROCESSES)
    if wanted[0] not in PROCESSES:
        raise UsageError(f"unknown process {wanted[0]}; {nearest(wanted[0], list(PROCESSES))}")
    folder = find_places().run
    logs = {name: log_path(folder, name) for name in wanted}
    if not any(path.exists() for path in logs.values()):
        raise Failure(f"no logs in {folder}: nothing was started from this checkout yet")
    sizes = {name: path.stat().st_size if path.exists() else 0 for name, path in logs.items()}
    for name, path in logs.items():
        if len(wanted) > 1:
            print(f"== {name}: {path}")
        print(last_lines(path, LINES_SHOWN))
    if arguments.has("-f"):
        _follow(logs, sizes)
    return 0


def _follow(logs: dict[str, Path], read: dict[str, int]) -> None:
    """Until Ctrl-C. A log that shrank was started anew and is read from its beginning."""
    while True:
        for name, path in logs.items():
            size = path.stat().st_size if path.exists() else 0
            if size < read[name]:
                read[name] = 0
            if size > read[name]:
                with open(path, errors="replace") as file:
                    file.seek(read[name])
                    text = file.read(size - read[name])
                    read[name] = file.tell()
                prefix = f"{name}: " if len(logs) > 1 else ""
                sys.stdout.write("".join(f"{prefix}{line}\n" for line in text.splitlines()))
                sys.stdout.flush()
        time.sleep(POLL_S)


VERB = Verb(
    name="logs",
    about="show the log of one process, or of all",
    run=run,
    words=f"[{'|'.join(PROCESSES)}]",
    most_words=1,
    flags=(Flag("-f", "follow until Ctrl-C"),),
)
