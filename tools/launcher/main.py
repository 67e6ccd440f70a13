"""Entry of the launcher: the table of verbs, and how their failures are shown."""

import signal
import sys

import verb_bench
import verb_chat
import verb_down
import verb_logs
import verb_models
import verb_setup
import verb_simulate
import verb_status
import verb_test
import verb_up
from command_line import HELP_WORDS, find_verb, parse, program_help, verb_help
from failure import Failure, UsageError

VERBS = (
    verb_up.VERB,
    verb_down.VERB,
    verb_status.VERB,
    verb_chat.VERB,
    verb_logs.VERB,
    verb_setup.VERB,
    verb_models.VERB,
    verb_test.VERB,
    verb_bench.VERB,
    verb_simulate.VERB,
)
EXIT_FAILURE, EXIT_USAGE, EXIT_INTERRUPTED = 1, 2, 130


def main(argv: list[str]) -> int:
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C: stop what was started
    try:
        if not argv or argv[0] in HELP_WORDS:
            print(program_help(VERBS))
            return 0 if argv else EXIT_USAGE
        verb = find_verb(argv[0], VERBS)
        own = argv[1 : argv.index("--")] if "--" in argv else argv[1:]  # the rest is a benchmark's
        if any(word in ("--help", "-h") for word in own):
            print(verb_help(verb))
            return 0
        return verb.run(parse(verb, argv[1:]))
    except UsageError as error:
        print(f"tokenrouter: {error}", file=sys.stderr)
        return EXIT_USAGE
    except Failure as error:
        sys.stdout.flush()
        print(f"tokenrouter: {error}", file=sys.stderr)
        return EXIT_FAILURE
    except KeyboardInterrupt:
        print("\ntokenrouter: interrupted", file=sys.stderr)
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        sys.stderr.close()  # the reader of our output went away
        return EXIT_FAILURE


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
