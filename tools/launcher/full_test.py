"""The stages that `test full` adds: more seeds of the simulation, clang's thread-safety analysis,
clang-tidy, fuzzers.
"""

import json
import re
from pathlib import Path

from build import build
from commands import cores, output_of, run
from console import Console
from failure import Failure
from places import Places

FUZZ_SECONDS = 60
FUZZ_MEMORY_MB = 2048


def full_stages(places: Places, console: Console) -> list:
    return [
        ("simulating 100,000 more seeds", lambda: _simulate(places)),
        ("building clang with -Wthread-safety", lambda: build(places, "clang", [], console)),
        ("clang-tidy on changed folders", lambda: _tidy(places, console)),
        ("fuzzers", lambda: _fuzz(places, console)),
    ]


def _simulate(places: Places) -> None:
    """Runs the tests that belong to the configuration `full` only (tests/simulation)."""
    command = ["ctest", "--test-dir", str(places.build("release")), "-C", "full"]
    selected = ["-R", "^scheduler_simulation_full", "--no-tests=error", "--output-on-failure"]
    run([*command, *selected, "-j", str(cores())], "the simulation")


def changed_sources(places: Places) -> list[Path]:
    """Sources of the clang build in every folder that differs from origin/main; all of them when
    there is no origin/main.
    """
    commands = json.loads((places.build("clang") / "compile_commands.json").read_text())
    sources = sorted({Path(entry["file"]).relative_to(places.checkout) for entry in commands})
    written = [source for source in sources if source.parts[0] != "build"]
    git = ["git", "-C", str(places.checkout)]
    base = (output_of([*git, "merge-base", "HEAD", "origin/main"]) or "").strip()
    if not base:
        return written
    changed = output_of([*git, "diff", "--name-only", base]) or ""
    folders = {Path(line).parent for line in changed.splitlines()}
    return [source for source in written if source.parent in folders]


def _tidy(places: Places, console: Console) -> None:
    sources = changed_sources(places)
    tidy = ["clang-tidy", "--quiet", "-p", str(places.build("clang"))]
    for number, source in enumerate(sources, 1):
        console.progress(f"clang-tidy {number}/{len(sources)}: {source}")
        run([*tidy, str(places.checkout / source)], f"clang-tidy {source}")
    console.say(f"clang-tidy: {len(sources)} files in folders that differ from origin/main")


def fuzz_targets(text: str) -> list[str]:
    """Targets that tests/fuzz/CMakeLists.txt declares: tr_fuzz(NAME ...)."""
    names = re.findall(r"^\s*tr_fuzz\((\w+)", text, re.MULTILINE)
    if not names:
        raise Failure("tests/fuzz/CMakeLists.txt declares no fuzzer")
    return names


def _fuzz(places: Places, console: Console) -> None:
    names = fuzz_targets((places.checkout / "tests" / "fuzz" / "CMakeLists.txt").read_text())
    build(places, "fuzz", names, console)
    for program in (places.build("fuzz") / "bin" / name for name in names):
        corpus = places.build("fuzz") / "corpus" / program.name
        corpus.mkdir(parents=True, exist_ok=True)
        seeds = places.checkout / "tests" / "fuzz" / "corpus" / program.name.removesuffix("_fuzz")
        console.progress(f"{program.name}: {FUZZ_SECONDS} s")
        limits = [f"-max_total_time={FUZZ_SECONDS}", f"-rss_limit_mb={FUZZ_MEMORY_MB}"]
        inputs = [str(corpus), *([str(seeds)] if seeds.is_dir() else [])]
        run([str(program), *limits, *inputs], program.name, cwd=corpus.parent)
    console.say(f"fuzzers: {', '.join(names)}")
