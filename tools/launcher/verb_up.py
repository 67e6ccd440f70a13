"""up: everything from a bare machine to a routed answer, then stays until Ctrl-C."""

import os

import deployment
import routed_answer
from build import build
from command_line import Arguments, Flag, Verb
from console import Console, format_seconds
from failure import Failure, UsageError
from launch_settings import LaunchSettings, absolute, read_config
from places import Places, find_places
from process_names import PROCESSES
from process_plan import (
    EngineChoice,
    Plan,
    check_ports_are_free,
    make_plan,
    models_needed,
    read_plan,
    tiny_tokenizer_path,
)
from requirements import Needs, bring
from run_state import read_state, supervisor_is_alive
from tiny_tokenizer import write_tokenizer
from versions import Versions, read_versions

FIRST_PROMPT = "Write a Python function that checks whether a string is a palindrome."
FIRST_ANSWER_TOKENS = 96
LARGEST_OFFSET = 56000  # keeps the highest default port below 65536


def run(arguments: Arguments) -> int:
    console = Console()
    places = find_places()
    versions = read_versions(places.lock)
    plan = plan_of(arguments, places, versions)
    if supervisor_is_alive(read_state(places.run)):
        console.say("already running from this checkout (./tokenrouter down stops it)")
        show_endpoints(read_plan(places.run), places, console)
        return 0
    prepare(plan, places, versions, console, arguments.has("--yes"))
    check_ports_are_free(plan)
    if arguments.value("--timed") is not None:
        write_tokenizer(tiny_tokenizer_path(places))
    console.stage("Starting scheduler, small_worker, large_worker and gateway")
    running = deployment.start(places.run, plan, detached=arguments.has("--detach"))
    try:
        running.wait_until_ready(console)
        console.say(f"ready after {format_seconds(console.elapsed())} in all")
        show_endpoints(plan, places, console)
        show_first_answer(plan, console, arguments.value("--timed") is not None)
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


def plan_of(arguments: Arguments, places: Places, versions: Versions) -> Plan:
    config = arguments.value("--config") or os.environ.get("TOKENROUTER_CONFIG")
    settings = LaunchSettings(read_config(config), dict(os.environ))
    engine = EngineChoice(
        timed=arguments.value("--timed"), threads=_whole_number(arguments, "--threads", 1, 1024)
    )
    offset = _whole_number(arguments, "--port-offset", 0, LARGEST_OFFSET) or 0
    return make_plan(places, versions, settings, engine, offset, absolute(config))


def prepare(plan: Plan, places: Places, versions: Versions, console: Console, yes: bool) -> None:
    """Requirements and binaries; quick when both are there."""
    console.stage("Checking what this machine has")
    bring(places, versions, console, Needs(models=models_needed(plan, places, versions)), yes)
    console.stage("Building")
    build(places, "release", list(PROCESSES), console)


def show_endpoints(plan: Plan, places: Places, console: Console) -> None:
    admins = ", ".join(f"{process} {plan.port(f'{process} admin')}" for process in PROCESSES)
    console.say(f"""
  HTTP (OpenAI API)  http://{plan.addresses["gateway http"]}/v1
  gRPC               {plan.addresses["gateway grpc"]}
  scheduler          {plan.addresses["scheduler listen"]}
  /metrics, /livez, /readyz on ports {admins}
  logs               {places.run}
""")


def show_first_answer(plan: Plan, console: Console, timed: bool) -> None:
    console.say(f"First answer, routed by entropy ({routed_answer.legend(console)}):")
    if timed:
        console.say("The timed engine invents tokens: only their times and authors mean something.")
    console.say(f"> {FIRST_PROMPT}")
    answer = routed_answer.stream_answer(plan, FIRST_PROMPT, FIRST_ANSWER_TOKENS, True, console)
    console.say(routed_answer.authors_line(answer) + "\n")


def _whole_number(arguments: Arguments, flag: str, smallest: int, largest: int) -> int | None:
    text = arguments.value(flag)
    if text is None:
        return None
    if not text.isdigit() or not smallest <= int(text) <= largest:
        raise UsageError(f"{flag}={text}: a whole number from {smallest} to {largest} is expected")
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
        Flag("--threads", "compute threads of each worker (all cores)", value="N"),
        Flag("--timed", "engines that only keep time, with this curve (h200)", value="CURVE"),
    ),
    details="Stays until Ctrl-C. If a process dies, says which and why, and stops the rest.",
)
