"""bench: builds and runs one benchmark."""

import os
import re

from build import build
from command_line import Arguments, Flag, Verb, nearest
from console import Console
from failure import UsageError
from places import Places, find_places
from process_names import PROCESSES
from requirements import FOR_UP, bring
from versions import read_versions

MOST_FLAGS = 64


def run(arguments: Arguments) -> int:
    console = Console()
    places = find_places()
    known = known_benches(places)
    if not arguments.words:
        raise UsageError(f"bench needs a name: {', '.join(known)}")
    name = arguments.words[0]
    if name not in known:
        raise UsageError(f"unknown benchmark {name}; {nearest(name, known)}")
    bring(places, read_versions(places.lock), console, FOR_UP, arguments.has("--yes"))
    build(places, "release", [f"{name}_bench", *PROCESSES], console)
    program = str(places.build("release") / "bin" / f"{name}_bench")
    json_file = arguments.value("--json")
    flags = [f"--json={json_file}"] if json_file else []
    os.execv(program, [program, *flags, *arguments.words[1:]])


def known_benches(places: Places) -> list[str]:
    """Targets NAME_bench of tests/bench."""
    lists = places.checkout / "tests" / "bench" / "CMakeLists.txt"
    text = lists.read_text() if lists.exists() else ""
    return sorted(set(re.findall(r"tr_binary\((\w+)_bench\b", text)))


VERB = Verb(
    name="bench",
    about="run a benchmark",
    run=run,
    words="NAME [-- FLAGS]",
    most_words=MOST_FLAGS,
    details="Flags after -- go to the benchmark itself; NAME_bench --help lists them.",
    flags=(
        Flag("--json", "write the rows there too", value="FILE"),
        Flag("--yes", "agree to installing what is missing"),
    ),
)
