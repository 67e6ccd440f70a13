"""The stages that `test full` adds: clang's thread-safety analysis, clang-tidy, fuzzers."""

from pathlib import Path

from build import build
from commands import output_of, run
from console import Console
from places import Places

FUZZ_SECONDS = 60
FUZZ_MEMORY_MB = 2048


def full_stages(places: Places, console: Console) -> list:
    return [
        ("building clang with -Wthread-safety", lambda: build(places, "clang", [], console)),
        ("clang-tidy on changed folders", lambda: _tidy(places, console)),
        ("fuzzers", lambda: _fuzz(places, console)),
    ]


def changed_sources(places: Places) -> list[Path]:
    """Sources of every folder touched since main, committed or not; all folders when there is no
    origin/main.
    """
    git = ["git", "-C", str(places.checkout)]
    base = (output_of([*git, "merge-base", "HEAD", "origin/main"]) or "").strip()
    changed = output_of([*git, "diff", "--name-only", base or "HEAD"]) or ""
    folders = {Path(line).parent for line in changed.splitlines()}
    tracked = [Path(line) for line in (output_of([*git, "ls-files", "*.cc"]) or "").splitlines()]
    return [path for path in tracked if not base or path.parent in folders]


def _tidy(places: Places, console: Console) -> None:
    sources = changed_sources(places)
    for number, source in enumerate(sources, 1):
        console.progress(f"clang-tidy {number}/{len(sources)}: {source}")
        run(
            [
                "clang-tidy",
                "--quiet",
                "-p",
                str(places.build("clang")),
                str(places.checkout / source),
            ],
            f"clang-tidy {source}",
        )
    console.say(f"clang-tidy: {len(sources)} files")


def _fuzz(places: Places, console: Console) -> None:
    build(places, "fuzz", [], console)
    programs = sorted((places.build("fuzz") / "bin").glob("*_fuzz"))
    for program in programs:
        corpus = places.build("fuzz") / "corpus" / program.name
        corpus.mkdir(parents=True, exist_ok=True)
        seeds = places.checkout / "tests" / "fuzz" / "corpus" / program.name.removesuffix("_fuzz")
        console.progress(f"{program.name}: {FUZZ_SECONDS} s")
        run(
            [
                str(program),
                f"-max_total_time={FUZZ_SECONDS}",
                f"-rss_limit_mb={FUZZ_MEMORY_MB}",
                str(corpus),
                *([str(seeds)] if seeds.is_dir() else []),
            ],
            program.name,
            cwd=corpus.parent,
        )
    console.say(f"fuzzers: {', '.join(program.name for program in programs)}")
