"""llama.cpp as the peer of `bench engine`: its source, out of the source package that
tools/versions.lock pins, and the program that runs it, both in TOKENROUTER_HOME/llama_cpp-VERSION.
"""

import os
import shutil
import tarfile
from pathlib import Path, PurePosixPath

from build import run_ninja
from commands import run
from console import Console, format_bytes
from failure import Failure
from places import Places
from versions import Versions
from wheels import download_source, downloaded_bytes

VENDORED = ("vendor", "llama.cpp")  # below the package's own folder
PROGRAM = "llama_cpp_peer"  # tests/bench/engine/llama_cpp_peer


def source_is_present(places: Places, versions: Versions) -> bool:
    return (_folder(places, versions) / "source").is_dir()


def fetch_source(places: Places, versions: Versions, console: Console) -> None:
    """The folder appears whole, by a rename, or not at all."""
    downloads = places.downloads / "llama_cpp"
    package = versions.llama_cpp
    with console.ticking(lambda: _fetching(downloads, package.bytes)):
        path = download_source(package, downloads)
    folder = _folder(places, versions)
    staging = folder / f"source.unpacking-{os.getpid()}"
    try:
        console.progress(f"llama.cpp: unpacking {path.name}")
        unpack_vendored(path, staging)
        staging.rename(folder / "source")
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    shutil.rmtree(downloads, ignore_errors=True)


def unpack_vendored(package: Path, target: Path) -> None:
    """Extracts what lies below PACKAGE-VERSION/vendor/llama.cpp."""
    with tarfile.open(package) as archive:
        members = []
        for member in archive.getmembers():
            parts = PurePosixPath(member.name).parts
            if parts[1 : 1 + len(VENDORED)] == VENDORED and (member.isfile() or member.isdir()):
                inner = parts[1 + len(VENDORED) :]
                if ".." in inner:
                    raise Failure(f"{package.name} holds {member.name}, which leads out of it")
                member.name = str(PurePosixPath(*inner))
                members.append(member)
        if not members:
            raise Failure(f"{package.name} holds no {'/'.join(VENDORED)}")
        target.mkdir(parents=True)
        archive.extractall(target, members)


def build_peer(places: Places, versions: Versions, console: Console) -> Path:
    """The program's path; builds what is not up to date. REQUIRES: the source is present."""
    folder = _folder(places, versions)
    _copy_changed(places.checkout / "tests" / "bench" / "engine" / PROGRAM, folder / PROGRAM)
    target = folder / "build"
    if not (target / "build.ninja").exists():
        console.progress("configuring llama.cpp")
        run(
            ["cmake", "-G", "Ninja", "-S", str(folder / PROGRAM), "-B", str(target)]
            + [f"-DLLAMA_CPP={folder / 'source'}"],
            "configuration of llama.cpp",
            on_line=lambda line: console.progress(f"configuring llama.cpp: {line}"),
        )
    run_ninja(target, [PROGRAM], "llama.cpp", console)
    return target / PROGRAM


def _copy_changed(source: Path, target: Path) -> None:
    """Checkouts share the build, so it reads a copy; an equal file keeps its time."""
    target.mkdir(parents=True, exist_ok=True)
    for path in source.iterdir():
        copy = target / path.name
        if not copy.exists() or copy.read_bytes() != path.read_bytes():
            shutil.copyfile(path, copy)


def _folder(places: Places, versions: Versions) -> Path:
    return places.llama_cpp(versions.llama_cpp.version)


def _fetching(downloads: Path, size: int) -> str:
    return f"llama.cpp: {format_bytes(downloaded_bytes(downloads))} of {format_bytes(size)} fetched"
