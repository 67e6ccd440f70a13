"""The launcher's command line as tables: verbs, their flags and arguments; errors name the nearest
match.
"""

import difflib
from collections.abc import Callable
from dataclasses import dataclass, field

from failure import UsageError


@dataclass(frozen=True)
class Flag:
    name: str  # with its dashes: --yes
    about: str
    value: str | None = None  # what the value is called in help; None: a switch
    short: str | None = None
    choices: tuple[str, ...] = ()


@dataclass(frozen=True)
class Verb:
    name: str
    about: str
    run: Callable[["Arguments"], int]
    flags: tuple[Flag, ...] = ()
    words: str = ""  # positional arguments as help shows them
    most_words: int = 0
    details: str = ""


@dataclass
class Arguments:
    words: list[str] = field(default_factory=list)
    values: dict[str, str] = field(default_factory=dict)
    switches: set[str] = field(default_factory=set)

    def has(self, flag: str) -> bool:
        return flag in self.switches

    def value(self, flag: str, default: str | None = None) -> str | None:
        return self.values.get(flag, default)


NEAR, NEAR_SHORT = 0.65, 0.5  # share of equal letters; of up, one letter is half
SHORT_WORD = 3
HELP_WORDS = ("--help", "-h", "help")


def nearest(word: str, known: list[str]) -> str:
    """`did you mean X?`, or what there is when nothing is near."""
    bare = {name.lstrip("-"): name for name in known}  # dashes are no likeness
    cutoff = NEAR if len(word.lstrip("-")) > SHORT_WORD else NEAR_SHORT
    close = difflib.get_close_matches(word.lstrip("-"), list(bare), n=1, cutoff=cutoff)
    return f"did you mean {bare[close[0]]}?" if close else f"known: {', '.join(known)}"


def find_verb(word: str, verbs: tuple[Verb, ...]) -> Verb:
    for verb in verbs:
        if verb.name == word:
            return verb
    raise UsageError(f"unknown command {word}; {nearest(word, [verb.name for verb in verbs])}")


def parse(verb: Verb, argv: list[str]) -> Arguments:
    found = Arguments()
    rest = list(argv)
    while rest:
        word = rest.pop(0)
        if word == "--":
            found.words += rest
            break
        if not word.startswith("-") or word == "-":
            found.words.append(word)
            continue
        name, equals, value = word.partition("=")
        flag = _find_flag(verb, name)
        if flag.value is None:
            if equals:
                raise UsageError(f"{flag.name} takes no value")
            found.switches.add(flag.name)
            continue
        found.values[flag.name] = _value_of(flag, equals, value, rest)
    if len(found.words) > verb.most_words:
        extra = found.words[verb.most_words]
        raise UsageError(f"{verb.name} does not take {extra!r}; usage: ./tokenrouter {usage(verb)}")
    return found


def usage(verb: Verb) -> str:
    flags = [f"[{_flag_text(flag)}]" for flag in verb.flags]
    return " ".join(part for part in (verb.name, verb.words, *flags) if part)


def verb_help(verb: Verb) -> str:
    lines = [f"./tokenrouter {usage(verb)}", "", verb.about]
    if verb.details:
        lines += ["", verb.details]
    if verb.flags:
        lines += ["", *(f"  {_flag_text(flag):<28} {flag.about}" for flag in verb.flags)]
    return "\n".join(lines)


def program_help(verbs: tuple[Verb, ...]) -> str:
    lines = [
        "tokenrouter: a small and a large language model that answer as one",
        "",
        "usage: ./tokenrouter COMMAND [ARGUMENTS]   (COMMAND --help shows one command)",
        "",
    ]
    lines += [f"  {verb.name:<9} {verb.about}" for verb in verbs]
    lines += [
        "",
        "environment: TOKENROUTER_HOME (~/.cache/tokenrouter): libtorch, models, logs",
        "             TOKENROUTER_JOBS (all cores): parallel build and test jobs",
    ]
    return "\n".join(lines)


def _flag_text(flag: Flag) -> str:
    text = flag.name if flag.value is None else f"{flag.name}={flag.value}"
    return f"{flag.short}, {text}" if flag.short else text


def _find_flag(verb: Verb, name: str) -> Flag:
    for flag in verb.flags:
        if name in (flag.name, flag.short):
            return flag
    if not verb.flags:
        raise UsageError(f"{verb.name} takes no flags, got {name}")
    raise UsageError(
        f"unknown flag {name} of {verb.name}; {nearest(name, [flag.name for flag in verb.flags])}"
    )


def _value_of(flag: Flag, equals: str, value: str, rest: list[str]) -> str:
    if not equals:
        if not rest:
            raise UsageError(f"{flag.name} needs a value: {flag.name}={flag.value}")
        value = rest.pop(0)
    if flag.choices and value not in flag.choices:
        raise UsageError(f"{flag.name}={value}; {nearest(value, list(flag.choices))}")
    return value
