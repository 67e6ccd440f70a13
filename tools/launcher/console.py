"""Console output: stage headings with elapsed time, one progress line, questions, colours.

On a terminal the progress line is rewritten in place; elsewhere (a log, CI) a line is printed at
most every QUIET_INTERVAL_S seconds, so that a long download or build is visible and does not flood
the log.
"""

import contextlib
import os
import sys
import threading
import time

from failure import Failure

QUIET_INTERVAL_S = 15.0
TICK_S = 0.5
SMALL_COLOUR = "36"  # cyan: the small model
LARGE_COLOUR = "1;35"  # bold magenta: the large model


class Console:
    def __init__(self, out=None, clock=time.monotonic):
        self._out = out or sys.stdout
        self._clock = clock
        self._start = clock()
        self._last_quiet = None
        self._line_open = False
        self.is_terminal = self._out.isatty()
        self.colours = self.is_terminal and "NO_COLOR" not in os.environ

    def elapsed(self) -> float:
        return self._clock() - self._start

    def say(self, text: str = "") -> None:
        self._close_line()
        print(text, file=self._out, flush=True)

    def stage(self, title: str) -> None:
        self.say(f"== {title} (at {format_seconds(self.elapsed())})")

    def progress(self, text: str) -> None:
        """Shows `text` as the current state of a long step; the next call replaces it."""
        if self.is_terminal:
            width = max(20, terminal_width() - 1)
            print("\r\x1b[K" + text[:width], end="", file=self._out, flush=True)
            self._line_open = True
            return
        now = self._clock()
        if self._last_quiet is None or now - self._last_quiet >= QUIET_INTERVAL_S:
            self._last_quiet = now
            print(text, file=self._out, flush=True)

    @contextlib.contextmanager
    def ticking(self, text):
        """While the block runs, shows text() as the progress, TICK_S apart. The block itself prints
        nothing.
        """
        done = threading.Event()

        def tick():
            while not done.wait(TICK_S):
                self.progress(text())

        ticker = threading.Thread(target=tick, daemon=True)
        ticker.start()
        try:
            yield
        finally:
            done.set()
            ticker.join()

    def write(self, text: str) -> None:
        """Streams text without a line end (answers)."""
        self._close_line()
        print(text, end="", file=self._out, flush=True)

    def paint(self, text: str, colour: str) -> str:
        return f"\x1b[{colour}m{text}\x1b[0m" if self.colours else text

    def confirm(self, question: str, yes: bool) -> None:
        """Returns when the person agrees; raises Failure otherwise. Without a terminal only --yes
        agrees.
        """
        if yes:
            return
        if not sys.stdin.isatty():
            raise Failure(f"{question} There is no terminal to ask on: add --yes to agree.")
        self._close_line()
        answer = input(f"{question} [y/N] ")
        if answer.strip().lower() not in ("y", "yes"):
            raise Failure("nothing was installed, as you asked")

    def _close_line(self) -> None:
        if self._line_open:
            print("\r\x1b[K", end="", file=self._out)
            self._line_open = False


def terminal_width() -> int:
    try:
        return os.get_terminal_size().columns or 100  # a pseudo terminal may say 0
    except OSError:
        return 100


def format_seconds(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.1f} s"
    return f"{int(seconds) // 60} min {int(seconds) % 60:02} s"


def format_bytes(count: int) -> str:
    return f"{count / 1e6:,.0f} MB" if count >= 1e6 else f"{count / 1e3:,.0f} kB"
