"""status: what runs from this checkout, and whether it is ready."""

import admin_port
from command_line import Arguments, Verb
from console import Console
from places import find_places
from process_plan import read_plan
from run_state import ProcessState, is_alive, read_state, supervisor_is_alive
from verb_up import show_endpoints

EXIT_NOT_READY, EXIT_NOT_RUNNING = 1, 3


def run(_: Arguments) -> int:
    console = Console()
    places = find_places()
    state = read_state(places.run)
    if state is None or not supervisor_is_alive(state):
        console.say("not running (from this checkout)")
        if state is not None and state.message:
            console.say(
                f"last time: {state.message}; ./tokenrouter logs {state.failed_process}".rstrip()
            )
        return EXIT_NOT_RUNNING
    console.say(f"{'process':<14} {'pid':>8}  {'admin':>5}  state")
    states = [_show(name, process, console) for name, process in state.processes.items()]
    if "scheduler" in state.processes:
        for model in admin_port.page(state.processes["scheduler"].admin, "/state").get("models", []):
            console.say(describe_model(model))
    show_endpoints(read_plan(places.run), places, console)
    return 0 if all(found == "ready" for found in states) else EXIT_NOT_READY


def describe_model(model: dict) -> str:
    """One line about the scheduler's model of a pair (PairModel of GetState)."""
    mode = model["service_mode"].replace("large_alone", "large-only")
    parts = [f"pair {model['pair']}: {mode}", model["policy"]]
    routed = model["routed"]
    parts.append(f"{100 * routed['mean']:.0f} % routed")
    plan = model.get("plan")
    if plan:
        parts.append(
            f"at {count(plan['requests'], 'request')} {plan['routed_per_s']:.0f} tokens/s routed, "
            f"{plan['large_alone_per_s']:.0f} by the large model alone (predicted)"
        )
    return "; ".join(parts)


def count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _show(name: str, process: ProcessState, console: Console) -> str:
    found, detail = "ended", ""
    if is_alive(process.pid, process.started):
        found, detail = admin_port.readiness(process.admin)
    console.say(f"{name:<14} {process.pid:>8}  {process.admin:>5}  {found} {detail}".rstrip())
    return found


VERB = Verb(
    name="status",
    about="show the processes and whether they are ready",
    run=run,
    details="Exit code 0: all ready; 1: running but not all ready; 3: not running.",
)
