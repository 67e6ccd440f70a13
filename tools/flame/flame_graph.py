"""The flame graph of an engine's step, and a JSON row of the costs of its parts.

  python3 tools/flame/flame_graph.py --model=FILE --shape=1x1@512 --svg=step.svg

Profiles build/release/bin/engine_steps_bench (./tokenrouter bench engine_steps builds it) with perf
while it runs the step again and again; neither loading nor filling the context is recorded. Release
binaries have no frame pointers: perf keeps a piece of the stack and unwinds it by .eh_frame."""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from step_shares import not_unwound, outside_linear, shares, step_stacks

INFERNO = "0.12.8"
SAMPLES_PER_S = 999
STACK_BYTES = 32768  # attention alone has 16 KiB of scores
LEAST_SHARE = 0.0005  # of the time: thinner stacks are not drawn
PROGRAM = Path(__file__).resolve().parents[2] / "build" / "release" / "bin" / "engine_steps_bench"
NEEDED = {
    "perf": "apt-get install linux-perf",
    "inferno-collapse-perf": f"cargo install inferno --locked --version {INFERNO}",
    "inferno-flamegraph": f"cargo install inferno --locked --version {INFERNO}",
}


def record(options: argparse.Namespace, folder: Path) -> str:
    """Folded stacks of all steps; the benchmark's row goes to stderr."""
    data, fifo, ack = folder / "perf.data", folder / "control", folder / "control.ack"
    os.mkfifo(fifo)
    os.mkfifo(ack)
    bench = [options.program, f"--model={options.model}", f"--format={options.format}"]
    bench.append(f"--kv_format={options.kv_format}")
    bench += [f"--threads={options.threads}", f"--repeats={options.repeats}"]
    bench += [f"--shapes={options.shape}", f"--perf_control={fifo}"]
    perf = ["perf", "record", "-q", "-o", data, "-e", "cpu-clock", "-F", str(SAMPLES_PER_S)]
    perf += ["--call-graph", f"dwarf,{STACK_BYTES}", "--delay=-1", f"--control=fifo:{fifo},{ack}"]
    if options.realtime:  # perf above the threads that wait for it
        perf, bench = ["chrt", "-f", "9", *perf], ["chrt", "-f", "5", *bench]
    subprocess.run([*perf, "--", *bench], check=True, stdout=sys.stderr)
    # Names of inlined functions would need debug information, and much time.
    script = subprocess.run(
        ["perf", "script", "--no-inline", "-i", data], check=True, capture_output=True
    )
    return filtered("inferno-collapse-perf", script.stdout.decode(), "--tid")


def filtered(program: str, text: str, *flags: str) -> str:
    done = subprocess.run(
        [program, *flags], input=text.encode(), check=True, capture_output=True
    )
    return done.stdout.decode()


def short_name(frame: str) -> str:
    """The name without namespaces and types of template arguments, so that it fits into a box."""
    frame = frame.replace("(anonymous namespace)::", "").replace("tokenrouter::", "")
    if frame.startswith("ThreadPool::For<"):
        return "ThreadPool::For"
    return re.sub(r"\(.*\)", "", frame)


def drawing(stacks: dict[tuple[str, ...], int], title: str) -> str:
    least = LEAST_SHARE * sum(stacks.values())
    lines = [
        f"{';'.join(short_name(frame) for frame in stack)} {count}"
        for stack, count in stacks.items()
        if count >= least
    ]
    flags = (f"--title={title}", "--countname=ns", "--hash")
    svg = filtered("inferno-flamegraph", "\n".join(lines), *flags)
    return re.sub(r"(?m)^\s*//.*\n", "", svg)  # comments of its script


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", required=True, help="a .gguf file or a Hugging Face folder")
    parser.add_argument("--format", default="int8", choices=("int8", "int4", "fp32"))
    parser.add_argument("--kv_format", default="fp32", choices=("fp32", "int8"))
    parser.add_argument("--shape", default="1x1@512", help="ROWSxIDS@CONTEXT of the step")
    parser.add_argument("--threads", type=int, default=0, help="of the engine; 0: one per core")
    parser.add_argument("--repeats", type=int, default=200, help="steps")
    parser.add_argument("--realtime", action="store_true", help="keep other work off the cores")
    parser.add_argument("--svg", type=Path, help="where to write the flame graph; left out: none")
    parser.add_argument("--program", default=str(PROGRAM), help="the built engine_steps_bench")
    options = parser.parse_args()
    for program, remedy in NEEDED.items():
        if shutil.which(program) is None:
            print(f"flame_graph: {program} is missing: {remedy}", file=sys.stderr)
            return 1
    with tempfile.TemporaryDirectory() as folder:
        folded = record(options, Path(folder))
    stacks = step_stacks(folded)
    parts = shares(stacks)
    if not parts:
        print("flame_graph: no step was sampled: raise --repeats", file=sys.stderr)
        return 1
    name = Path(options.model).stem
    row = {"model": name, "format": options.format, "kv": options.kv_format, "shape": options.shape}
    row |= {part: round(share, 4) for part, share in parts.items()}
    row |= {"outside_linear": round(outside_linear(parts), 4)}
    print(json.dumps(row | {"not_unwound": round(not_unwound(folded), 4)}))
    if options.svg:
        options.svg.write_text(drawing(stacks, f"{name} {options.format}, step {options.shape}"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
