"""bench: builds and runs one benchmark."""

import gzip
import re
import subprocess
from pathlib import Path

from build import build
from command_line import Arguments, Flag, Verb, nearest
from console import Console
from failure import UsageError
from llama_cpp import build_peer
from model_files import model_path
from places import Places, find_places
from process_names import PROCESSES
from requirements import Needs, bring
from versions import Versions, read_versions

MOST_FLAGS = 64
# Benchmarks that need files: which ones, by their names in tools/versions.lock.
INPUTS = {
    "serve": ("small", "large"),
    "perplexity": ("small", "large", "humaneval"),
    "engine": ("small", "large"),
    "engine_steps": ("small", "large"),
    "soak": ("small", "large"),
}
PEER_FLAG = "--peer="  # of engine_bench: a program, or none


def run(arguments: Arguments) -> int:
    console = Console()
    places = find_places()
    known = known_benches(places)
    if not arguments.words:
        raise UsageError(f"bench needs a name: {', '.join(known)}")
    name = arguments.words[0]
    if name not in known:
        raise UsageError(f"unknown benchmark {name}; {nearest(name, known)}")
    versions = read_versions(places.lock)
    peer = wants_peer(name, arguments.words[1:])
    needs = Needs(models=INPUTS.get(name, ()), llama_cpp=peer)
    bring(places, versions, console, needs, arguments.has("--yes"))
    build(places, "release", [f"{name}_bench", *PROCESSES], console)
    extra = [f"--peer={build_peer(places, versions, console)}"] if peer else []
    program = str(places.build("release") / "bin" / f"{name}_bench")
    rows = arguments.value("--json")
    if rows:
        Path(rows).write_text("")
    for inputs in inputs_of(name, places, versions):
        code = run_rows([program, *inputs, *extra, *arguments.words[1:]], rows)
        if code != 0:
            return code
    return 0


def wants_peer(name: str, flags: list[str]) -> bool:
    """Whether llama.cpp is to be fetched and built: not when the person chose a peer."""
    return name == "engine" and not any(flag.startswith(PEER_FLAG) for flag in flags)


def inputs_of(name: str, places: Places, versions: Versions) -> list[list[str]]:
    """The flags of each run of the benchmark."""
    paths = {key: model_path(places, versions.models[key]) for key in INPUTS.get(name, ())}
    if name in ("serve", "engine", "soak"):
        return [[f"--small={paths['small']}", f"--large={paths['large']}"]]
    if name == "engine_steps":
        return [[f"--model={paths[key]}"] for key in ("small", "large")]
    if name == "perplexity":
        texts = paths["humaneval"].with_suffix("")
        if not texts.exists():
            texts.write_bytes(gzip.decompress(paths["humaneval"].read_bytes()))
        return [[f"--model={paths[key]}", f"--texts={texts}"] for key in ("small", "large")]
    return [[]]


def run_rows(command: list[str], rows: str | None) -> int:
    """Runs `command`; its lines go to the terminal and, where they are rows, into the file."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout:
            print(line, end="", flush=True)
            if rows and line.startswith("{"):
                with open(rows, "a", encoding="utf-8") as file:
                    file.write(line)
    return process.returncode


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
    details="Without a NAME it lists them. Flags after -- go to the benchmark: bench NAME -- --help.",
    flags=(
        Flag("--json", "write the rows there too", value="FILE"),
        Flag("--yes", "agree to installing what is missing"),
    ),
)
