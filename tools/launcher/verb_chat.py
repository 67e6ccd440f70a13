"""chat: one question to the running deployment, streamed."""

from command_line import Arguments, Flag, Verb
from console import Console
from failure import UsageError
from places import find_places
from process_plan import read_plan
from routed_answer import authors_line, legend, stream_answer

DEFAULT_TOKENS = 512
MOST_TOKENS = 32768


def run(arguments: Arguments) -> int:
    if not arguments.words:
        raise UsageError('chat needs a text: ./tokenrouter chat "What is a monoid?"')
    text = arguments.value("--max-tokens", str(DEFAULT_TOKENS))
    if not text.isdigit() or not 1 <= int(text) <= MOST_TOKENS:
        raise UsageError(f"--max-tokens={text}: a whole number from 1 to {MOST_TOKENS} is expected")
    console = Console()
    authors = arguments.has("--authors")
    if authors:
        console.say(f"({legend(console)})")
    answer = stream_answer(
        read_plan(find_places().run), arguments.words[0], int(text), authors, console
    )
    if authors:
        console.say(authors_line(answer))
    return 0


VERB = Verb(
    name="chat",
    about="ask the running deployment one question and stream the answer",
    run=run,
    words='"TEXT"',
    most_words=1,
    flags=(
        Flag("--authors", "mark each token by the model that wrote it"),
        Flag("--max-tokens", f"length limit of the answer ({DEFAULT_TOKENS})", value="N"),
    ),
)
