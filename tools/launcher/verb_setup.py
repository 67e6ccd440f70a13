"""setup: lists what is missing and installs it."""

from command_line import Arguments, Flag, Verb
from console import Console
from places import find_places
from requirements import FOR_FULL_TEST, FOR_SETUP, bring
from versions import read_versions


def run(arguments: Arguments) -> int:
    console = Console()
    places = find_places()
    needs = FOR_FULL_TEST if arguments.has("--full") else FOR_SETUP
    bring(places, read_versions(places.lock), console, needs, arguments.has("--yes"))
    console.say("everything is installed")
    return 0


VERB = Verb(
    name="setup",
    about="install the requirements of builds, runs and tests",
    run=run,
    flags=(
        Flag("--yes", "agree to installing"),
        Flag("--full", "also what ./tokenrouter test full needs"),
    ),
    details="Debian packages, libtorch, Rust, models, kubectl. Versions: tools/versions.lock.",
)
