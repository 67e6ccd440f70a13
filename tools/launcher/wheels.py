"""Downloads wheels and source packages as files with pip; they are unpacked, never installed.

The tags are fixed (CPython 3.11, x86-64, glibc up to Debian 12's), so every Python that runs the
launcher gets the same files. A finished wheel is kept in the download folder until its user removes
it: an interrupted install continues where it stopped.
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
PIP_DOWNLOAD = (
    sys.executable,
    *("-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"),
)


def wheel_path(wheel: Wheel, folder: Path) -> Path | None:
    stem = f"{wheel.package.replace('-', '_')}-{wheel.version}-"
    for path in sorted(folder.glob(f"{stem}*.whl")):
        return path
    return None


def source_path(source: Wheel, folder: Path) -> Path | None:
    path = folder / f"{source.package.replace('-', '_')}-{source.version}.tar.gz"
    return path if path.exists() else None


def download_wheel(wheel: Wheel, folder: Path) -> Path:
    """The wheel's path; fetched only when it is not there. Verifies its hash where the lock file
    has one.
    """
    return _download(wheel, folder, wheel_path, pip_command)


def download_source(source: Wheel, folder: Path) -> Path:
    """The same for the source package of that name and version."""
    return _download(source, folder, source_path, pip_source_command)


def _download(wheel: Wheel, folder: Path, path_of, command_of) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = path_of(wheel, folder)
    if path is None:
        scratch = folder / SCRATCH
        scratch.mkdir(
            exist_ok=True
        )  # pip writes the growing file below TMPDIR: downloaded_bytes() sees it
        run(
            command_of(wheel, folder),
            f"download of {wheel.package} {wheel.version}",
            env=dict(os.environ, TMPDIR=str(scratch)),
        )
        path = path_of(wheel, folder)
        if path is None:
            raise Failure(f"pip fetched no {wheel.package} {wheel.version} into {folder}")
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
    """Finished and growing packages in `folder`."""
    total = 0
    for where, _, names in os.walk(folder):  # continues when pip removes a folder meanwhile
        for name in names:
            if name.endswith((".whl", ".tar.gz")):
                try:
                    total += os.stat(os.path.join(where, name)).st_size
                except FileNotFoundError:
                    pass  # pip moved it since it was listed
    return total


def pip_command(wheel: Wheel, folder: Path) -> list[str]:
    tags = [f"manylinux_2_{minor}_x86_64" for minor in range(NEWEST_GLIBC, OLDEST_GLIBC - 1, -1)]
    command = [*PIP_DOWNLOAD, "--only-binary=:all:"]
    command += ["--python-version", "3.11", "--implementation", "cp"]
    for abi in ("cp311", "abi3", "none"):
        command += ["--abi", abi]
    for tag in [*tags, "manylinux2014_x86_64", "any"]:
        command += ["--platform", tag]
    return [*command, "--dest", str(folder), f"{wheel.package}=={wheel.version}"]


def pip_source_command(source: Wheel, folder: Path) -> list[str]:
    """pip runs a source package's own code to read what it is, so it checks the hash before."""
    pinned = folder / SCRATCH / "source.txt"
    pinned.write_text(f"{source.package}=={source.version} --hash=sha256:{source.sha256}\n")
    return [
        *PIP_DOWNLOAD,
        f"--no-binary={source.package}",
        "--require-hashes",
        "--dest",
        str(folder),
        "--requirement",
        str(pinned),
    ]


def sha256_of(path: Path, on_bytes=None) -> str:
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(READ_BYTES):
            digest.update(block)
            if on_bytes:
                on_bytes(len(block))
    return digest.hexdigest()
