"""down: stops what was started from this checkout."""

from command_line import Arguments, Verb
from console import Console
from deployment import stop_running
from places import find_places


def run(_: Arguments) -> int:
    console = Console()
    console.progress("stopping: gateway, workers, scheduler")
    console.say(
        "stopped" if stop_running(find_places().run) else "nothing was running from this checkout"
    )
    return 0


VERB = Verb(name="down", about="stop what was started from this checkout", run=run)
