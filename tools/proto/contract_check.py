"""Compares a folder of protos with its released contract, by buf."""

import os
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

TIMEOUT_SECONDS = 60  # One run takes well under a second; a hang must not stall a build machine.
FOUND = 100  # buf's exit code when it has findings


class BufError(Exception):
    """buf could not do what was asked: the protos do not compile, or buf.yaml is wrong."""


@dataclass(frozen=True)
class Buf:
    program: Path

    def run(self, folder: Path, *arguments: str) -> list[str]:
        """The findings, one per line. Nothing is kept outside `folder`: the cache is temporary."""
        with tempfile.TemporaryDirectory() as cache:
            done = subprocess.run(
                [str(self.program), *arguments],
                cwd=folder,
                env=dict(os.environ, BUF_CACHE_DIR=cache),
                capture_output=True,
                text=True,
                timeout=TIMEOUT_SECONDS,
                check=False,
            )
        if done.returncode not in (0, FOUND):
            raise BufError(f"buf {arguments[0]} in {folder}: {done.stderr.strip()}")
        # A proto that does not compile has the same exit code, with its errors on stderr.
        if done.returncode == FOUND and done.stderr.strip():
            return done.stderr.strip().splitlines()
        return done.stdout.splitlines()


def baseline_of(folder: Path) -> Path:
    return folder / "baseline" / "released.binpb"


def findings_of(buf: Buf, folder: Path) -> list[str]:
    """What lint says, and what breaks the released contract where there is one."""
    findings = buf.run(folder, "lint")
    if baseline_of(folder).exists():
        findings += buf.run(folder, "breaking", "--against", str(baseline_of(folder)))
    return list(dict.fromkeys(findings))  # What does not compile is said by both.


def release(buf: Buf, folder: Path) -> None:
    """Comments and line numbers are left out: only what is promised changes the file."""
    baseline_of(folder).parent.mkdir(exist_ok=True)
    errors = buf.run(
        folder, "build", "--exclude-source-info", "--output", str(baseline_of(folder))
    )
    if errors:
        raise BufError("\n".join(errors))
