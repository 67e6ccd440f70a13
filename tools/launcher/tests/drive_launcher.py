"""Runs the launcher with fake binaries.

usage: drive_launcher.py CHECKOUT HOME PORT_OFFSET VERB [ARGUMENTS]

Installing and building are left out; everything else is the real launcher in a separate process.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import main
import verb_up
from places import Places
from process_names import PROCESSES

FAKE = Path(__file__).with_name("fake_process.py")


def write_binaries(checkout: Path) -> None:
    programs = checkout / "build" / "release" / "bin"
    programs.mkdir(parents=True, exist_ok=True)
    for name in PROCESSES:
        program = programs / name
        program.write_text(f'#!/bin/sh\nexec {sys.executable} -B {FAKE} "$@"\n')
        program.chmod(0o755)


def drive(checkout: Path, home: Path, offset: str, argv: list[str]) -> int:
    write_binaries(checkout)
    places = Places(checkout=checkout, home=home)
    for name, module in list(sys.modules.items()):
        if name.startswith("verb_") and hasattr(module, "find_places"):
            module.find_places = lambda: places
    verb_up.prepare = lambda *_: None
    lock = Path(__file__).resolve().parents[2] / "versions.lock"
    verb_up.read_versions = lambda _, read=verb_up.read_versions: read(lock)
    if argv[0] == "up":
        argv = [*argv, f"--port-offset={offset}"]
    return main.main(argv)


if __name__ == "__main__":
    sys.exit(drive(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], sys.argv[4:]))
