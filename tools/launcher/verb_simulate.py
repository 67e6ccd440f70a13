"""simulate: builds and runs the simulator of the batching model."""

import subprocess

from build import build
from command_line import Arguments, Flag, Verb
from console import Console
from places import find_places

FLAGS = (
    Flag("--set", "step curves: h200, 8b, cpu, vnni, roofline, or base=,row=,id=", value="CURVE"),
    Flag("--small", "curve of the small model instead of the set's", value="CURVE"),
    Flag("--large", "curve of the large model instead of the set's", value="CURVE"),
    Flag("--n", "requests that decode at once, a list", value="N"),
    Flag("--r", "share of small rows that are routed, a list", value="R"),
    Flag("--q", "probability that the large model hands back", value="Q"),
    Flag("--devices", "one per model, or a shared one", value="N", choices=("1", "2")),
    Flag("--small_workers", "each on a dedicated device", value="N"),
    Flag("--large_workers", "each on a dedicated device", value="N"),
    Flag("--policy", "list of policies, or all", value="NAMES"),
    Flag("--noise", "relative spread of step times", value="CV"),
    Flag("--hop_ms", "delay of a row between the models", value="MS"),
    Flag("--seconds", "simulated time of a cell", value="S"),
    Flag("--seed", "of the random numbers", value="N"),
    Flag("--plot", "write an SVG there", value="FILE"),
    Flag("--distributed", "small workers decide alone, as in the real system"),
    Flag("--json", "print JSON rows instead of a table"),
)


def run(arguments: Arguments) -> int:
    places = find_places()
    build(places, "release", ["simulate"], Console())
    program = str(places.build("release") / "bin" / "simulate")
    return subprocess.run([program, *program_flags(arguments)], check=False).returncode


def program_flags(arguments: Arguments) -> list[str]:
    """The program accepts only name=value."""
    flags = [f"{name}={value}" for name, value in arguments.values.items()]
    return flags + [f"{name}=true" for name in sorted(arguments.switches)]


VERB = Verb(
    name="simulate",
    about="simulate routed decoding on given step curves",
    run=run,
    flags=FLAGS,
    details="Prints committed tokens/s, multiples of the large model alone, gaps between a request's\n"
    "tokens, and how far the best possible policy is (16 requests on two devices, 512 on one).",
)
