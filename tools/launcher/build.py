"""Configures and builds presets with CMake and Ninja, showing one progress line."""

import os
import re
from pathlib import Path

from commands import cores, run
from console import Console
from places import Places
from rust import cargo_program
from versions import read_versions

NINJA_STATUS = "[%f/%t] "
LOOKING = "Re-checking globbed"  # CMake looks for new files: no step, and in every build
STEP = re.compile(r"\[(\d+)/(\d+)\] (.*)")


def configure(places: Places, preset: str, console: Console) -> None:
    """Runs cmake only when the folder is new, or the presets or a definition changed."""
    wanted = {
        "TOKENROUTER_HOME": str(places.home),
        "CARGO": cargo_program(read_versions(places.lock)),
    }
    folder = places.build(preset)
    if _is_configured(folder, places.checkout / "CMakePresets.json", wanted):
        return
    console.progress(f"configuring {preset}")
    flags = [f"-D{name}={value}" for name, value in wanted.items()]
    run(
        ["cmake", "--preset", preset, *flags],
        f"cmake --preset {preset}",
        cwd=places.checkout,
        on_line=lambda line: console.progress(f"configuring {preset}: {line}"),
    )


def build(places: Places, preset: str, targets: list[str], console: Console) -> None:
    """An empty `targets` builds everything."""
    configure(places, preset, console)
    run_ninja(places.build(preset), targets, preset, console)


def run_ninja(folder: Path, targets: list[str], name: str, console: Console) -> None:
    """Builds in a configured folder; messages call it `name`."""
    began = console.elapsed()
    steps = 0

    def on_line(line: str) -> None:
        nonlocal steps
        match = STEP.match(line)
        if match and not match[3].startswith(LOOKING):
            steps = int(match[2])
            percent = 100 * int(match[1]) // max(1, steps)
            console.progress(
                f"building {name}: {percent} % ({match[1]}/{match[2]}) {_short(match[3])}"
            )

    command = ["ninja", "-C", str(folder), "-j", str(cores()), *targets]
    run(
        command,
        f"build of {name}",
        on_line,
        env=dict(os.environ, NINJA_STATUS=NINJA_STATUS),
        keep=lambda line: not STEP.match(line),
    )
    if steps:
        console.say(f"built {name}: {steps} steps in {console.elapsed() - began:.0f} s")


def _is_configured(folder: Path, presets: Path, wanted: dict[str, str]) -> bool:
    cache, ninja = folder / "CMakeCache.txt", folder / "build.ninja"
    if not ninja.exists() or not cache.exists() or presets.stat().st_mtime > ninja.stat().st_mtime:
        return False
    lines = cache.read_text(errors="replace").splitlines()
    values = dict(re.findall(r"^(\w+):\w+=(.*)$", "\n".join(lines), re.MULTILINE))
    return all(values.get(name) == value for name, value in wanted.items())


def _short(step: str) -> str:
    """The target's last path part: CMake's step lines name whole object paths."""
    words = step.split()
    return f"{' '.join(words[:-1])} {words[-1].rsplit('/', 1)[-1]}" if len(words) > 1 else step
