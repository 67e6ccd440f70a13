"""Unpacks libtorch and the CUDA runtime it is linked with from wheels into
TOKENROUTER_HOME/libtorch-VERSION.
"""

import os
import shutil
import zipfile
from pathlib import Path

from console import Console, format_bytes
from places import Places
from versions import Versions
from wheels import download_wheel, downloaded_bytes


def libtorch_is_present(places: Places, versions: Versions) -> bool:
    library = places.libtorch(versions.libtorch_version) / "torch" / "lib" / "libtorch_cpu.so"
    return library.exists()


def install_libtorch(places: Places, versions: Versions, console: Console) -> None:
    """The folder appears whole, by a rename, or not at all."""
    target = places.libtorch(versions.libtorch_version)
    if libtorch_is_present(places, versions):
        return
    staging = places.home / f"{target.name}.unpacking-{os.getpid()}"
    shutil.rmtree(staging, ignore_errors=True)
    downloads = places.downloads / "libtorch"
    try:
        for wheel in versions.libtorch_wheels:
            with console.ticking(lambda: _fetching(downloads, versions)):
                path = download_wheel(wheel, downloads)
            console.progress(
                f"libtorch: unpacking {wheel.package}, {format_bytes(path.stat().st_size)}"
            )
            unpack_folders(path, versions.libtorch_folders, staging)
        if target.exists():
            shutil.rmtree(target)  # without libtorch_cpu.so: left by hand or by an older launcher
        staging.rename(target)
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    shutil.rmtree(downloads, ignore_errors=True)


def download_size(versions: Versions) -> int:
    return sum(wheel.bytes for wheel in versions.libtorch_wheels)


def _fetching(downloads: Path, versions: Versions) -> str:
    done = format_bytes(downloaded_bytes(downloads))
    return f"libtorch: {done} of {format_bytes(download_size(versions))} fetched"


def unpack_folders(wheel: Path, folders: tuple[str, ...], target: Path) -> None:
    """Extracts the members below one of `folders`."""
    with zipfile.ZipFile(wheel) as archive:
        for info in archive.infolist():
            if any(info.filename.startswith(f"{folder}/") for folder in folders):
                archive.extract(info, target)
