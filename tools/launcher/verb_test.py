"""test: install, build and test everything in stages; the first that fails ends the run."""

import os
import re
import subprocess

from build import build, configure
from commands import cores, describe_exit, output_of
from command_line import Arguments, Flag, Verb, nearest
from console import Console, format_seconds
from failure import Failure, UsageError
from full_test import full_stages
from places import Places, find_places
from requirements import FOR_FULL_TEST, FOR_TEST, bring
from versions import read_versions

CLOSING_LINE = re.compile(r"\d+% tests passed, \d+ tests failed out of \d+")
TSAN = ["-L", "^tsan$"]
ASAN_ENGINE = ["-L", "^asan-engine$"]


def run(arguments: Arguments) -> int:
    full = _wants_full(arguments)
    console = Console()
    places = find_places()
    closing: dict[str, str] = {}
    stages = [
        (
            "installing what is missing",
            lambda: _install(places, console, arguments.has("--yes"), full),
        ),
        *_preset_stages(places, console, closing),
        *(full_stages(places, console) if full else ()),
    ]
    times = []
    for title, stage in stages:
        console.stage(title)
        began = console.elapsed()
        try:
            stage()
        except Failure as failure:
            raise Failure(
                f"stage '{title}' failed after {format_seconds(console.elapsed())}: {failure}"
            ) from failure
        times.append((title, console.elapsed() - began))
    console.stage("all stages passed")
    for title, seconds in times:
        console.say(f"  {format_seconds(seconds):>13}  {title}")
    for preset, line in closing.items():
        console.say(f"  {preset}: {line}")
    console.say(closing["release"])
    return 0


def _preset_stages(places: Places, console: Console, closing: dict[str, str]) -> list:
    def build_stage(preset):
        return (f"building {preset}", lambda: build(places, preset, [], console))

    def test_stage(preset, *flags):
        return (f"testing {preset}", lambda: _ctest(places, preset, list(flags), closing))

    return [
        build_stage("release"),
        test_stage("release"),
        build_stage("asan"),
        test_stage("asan"),
        (
            "building asan-engine",
            lambda: _build_labelled(places, "asan-engine", ASAN_ENGINE, console),
        ),
        test_stage("asan-engine", *ASAN_ENGINE),
        ("building tsan", lambda: _build_labelled(places, "tsan", TSAN, console)),
        test_stage("tsan", *TSAN),
    ]


def _build_labelled(places: Places, preset: str, selection: list[str], console: Console) -> None:
    """Builds only the programs of the selected tests: a test is named like its target."""
    configure(places, preset, console)
    listing = output_of(["ctest", "--test-dir", str(places.build(preset)), "-N", *selection]) or ""
    names = re.findall(r"^\s*Test\s+#\d+: (\S+)$", listing, re.MULTILINE)
    if not names:
        raise Failure(f"no test of {preset} is selected by {' '.join(selection)}")
    build(places, preset, names, console)


def _install(places: Places, console: Console, yes: bool, full: bool) -> None:
    bring(places, read_versions(places.lock), console, FOR_FULL_TEST if full else FOR_TEST, yes)


def _ctest(places: Places, preset: str, flags: list[str], closing: dict[str, str]) -> None:
    command = [
        "ctest",
        "--test-dir",
        str(places.build(preset)),
        "--output-on-failure",
        "--no-tests=error",
        "-j",
        str(cores()),
        *flags,
    ]
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env=dict(os.environ, TOKENROUTER_MODELS=str(places.models)),
    )
    with process:
        for line in process.stdout:
            print(line, end="", flush=True)
            if match := CLOSING_LINE.search(line):
                closing[preset] = match[0]
    if process.returncode != 0:
        raise Failure(f"ctest: {closing.get(preset, describe_exit(process.returncode))}")


def _wants_full(arguments: Arguments) -> bool:
    if arguments.words and arguments.words[0] != "full":
        raise UsageError(
            f"unknown test set {arguments.words[0]}; {nearest(arguments.words[0], ['full'])}"
        )
    return bool(arguments.words)


VERB = Verb(
    name="test",
    about="install, build and run every test (what CI runs)",
    run=run,
    words="[full]",
    most_words=1,
    flags=(Flag("--yes", "agree to installing what is missing"),),
    details="Stages: release (all tests), asan (address and undefined behaviour, no torch),\n"
    "asan-engine (the same for the engine's tests), tsan (labelled tests). full adds:\n"
    "100,000 more seeds of the simulation, a clang build with thread-safety analysis, clang-tidy\n"
    "on changed folders, and each fuzzer for a minute.",
)
