"""up: everything from a bare machine to a routed answer, then stays until Ctrl-C."""

from pathlib import Path

import deployment
import routed_answer
from build import build
from command_line import Arguments, Flag, Verb
from console import Console, format_seconds
from failure import Failure, UsageError
from places import Places, find_places
from process_plan import HOST, PROCESSES, EngineChoice, Ports, check_ports_are_free, make_plan, read_ports
from requirements import FOR_UP, bring
from run_state import read_state, supervisor_is_alive
from versions import Versions, read_versions

FIRST_PROMPT = "Write a Python function that checks whether a string is a palindrome."
FIRST_ANSWER_TOKENS = 96
LARGEST_PORT = 65535


def run(arguments: Arguments) -> int:
    console = Console()
    places = find_places()
    versions = read_versions(places.lock)
    ports = Ports().shifted(_whole_number(arguments, "--port-offset", 0, LARGEST_PORT - Ports().large_worker_admin))
    engine = EngineChoice(timed=arguments.value("--timed"), threads=_whole_number(arguments, "--threads", 2, 1024))
    config = arguments.value("--config")
    if config and not Path(config).is_file():
        raise UsageError(f"--config={config}: there is no such file")

    if supervisor_is_alive(read_state(places.run)):
        console.say("already running from this checkout (./tokenrouter down stops it)")
        show_endpoints(read_ports(places.run), places, console)
        return 0
    prepare(places, versions, console, arguments.has("--yes"))
    check_ports_are_free(ports)
    plan = make_plan(places, versions, ports, engine, config)
    console.stage("Starting scheduler, small_worker, large_worker and gateway")
    running = deployment.start(places.run, ports, plan, detached=arguments.has("--detach"))
    try:
        running.wait_until_ready(console)
        console.say(f"ready after {format_seconds(console.elapsed())} in all")
        show_endpoints(ports, places, console)
        show_first_answer(ports, engine, console)
        if arguments.has("--detach"):
            console.say("running in the background: ./tokenrouter status, logs, chat, down")
            return 0
        console.say("Ctrl-C stops everything.")
        running.wait_until_it_ends()
        console.say("stopped")
        return 0
    except KeyboardInterrupt:
        console.say("stopping: gateway, workers, scheduler")
        running.stop()
        console.say("stopped")
        return 0
    except Failure:
        running.stop()
        raise


def prepare(places: Places, versions: Versions, console: Console, yes: bool) -> None:
    """Requirements and binaries; quick when both are there."""
    console.stage("Checking what this machine has")
    bring(places, versions, console, FOR_UP, yes)
    console.stage("Building")
    build(places, "release", list(PROCESSES), console)


def show_endpoints(ports: Ports, places: Places, console: Console) -> None:
    console.say(f"""
  HTTP (OpenAI API)  http://{HOST}:{ports.http}/v1
  gRPC               {HOST}:{ports.grpc}
  scheduler          {HOST}:{ports.scheduler}
  admin (/metrics, /livez, /readyz)  gateway {ports.gateway_admin}, scheduler {ports.scheduler_admin}, \
small_worker {ports.small_worker_admin}, large_worker {ports.large_worker_admin}
  logs               {places.run}
""")


def show_first_answer(ports: Ports, engine: EngineChoice, console: Console) -> None:
    console.say(f"First answer, routed by entropy ({routed_answer.legend(console)}):")
    if engine.timed:
        console.say("The timed engine invents tokens: only their times and authors mean something.")
    console.say(f"> {FIRST_PROMPT}")
    answer = routed_answer.stream_answer(ports.http, FIRST_PROMPT, FIRST_ANSWER_TOKENS, True, console)
    console.say(f"{answer.small_tokens} tokens by the small model, {answer.large_tokens} by the large one\n")


def _whole_number(arguments: Arguments, flag: str, default: int, largest: int) -> int:
    text = arguments.value(flag)
    if text is None:
        return default
    if not text.isdigit() or int(text) > largest:
        raise UsageError(f"{flag}={text}: a whole number from 0 to {largest} is expected")
    return int(text)


VERB = Verb(
    name="up",
    about="install what is missing, build, start the four processes, show a routed answer",
    run=run,
    flags=(
        Flag("--yes", "agree to installing what is missing"),
        Flag("--detach", "return once everything is ready; ./tokenrouter down stops it"),
        Flag("--config", "one configuration file for all four processes", value="FILE"),
        Flag("--port-offset", "shift every port by N, to run beside another checkout", value="N"),
        Flag("--threads", "compute threads of each worker (2)", value="N"),
        Flag("--timed", "engines that only keep time, with this curve (h200)", value="CURVE"),
    ),
    details="Stays until Ctrl-C. If a process dies, says which and why, and stops the rest.",
)
