"""Finds retired words in code, protos and documents: words of this project alone where the field has one.

retired_words.txt has one word a line, `PATTERN -> WORD TO USE INSTEAD`. A pattern is a regular expression
that ignores case and matches whole words; the parts of an identifier count as words that an underscore joins
(`RowFlowTest` is searched as `Row_Flow_Test`), so `row_?flow` finds every spelling of a name, while a
pattern with a space finds prose only, across line breaks too. Three forms of a line:

    PATTERN -> WORD          searched everywhere: names of files, code, comments, documents
    prose: PATTERN -> WORD   only in comments and documents, without what stands between backticks
    docs: PATTERN -> WORD    only in documents, without what stands between backticks

Empty lines and comments (#) are skipped, and so is everything after the line `# pending`.
"""

import bisect
import os
import re

LIST = 'tests/limits/retired_words.txt'
PENDING = '# pending'
SLASHES = ('.h', '.cc', '.inc', '.cu', '.proto', '.rs')  # Comments begin with //.
HASHES = ('.py', '.sh', '.cmake', '.toml', '.yaml', 'CMakeLists.txt')  # With #.
DOCUMENTS = ('.md',)
SEARCHED = SLASHES + HASHES + DOCUMENTS
OWN_FILES = ('tests/limits/words.py', 'tests/limits/limits_selftest.py')  # They name what they plant.
SCOPES = ('prose', 'docs')

HUMP = re.compile(r'(?<=[a-z0-9])(?=[A-Z])')
LEADING = re.compile(r'^[\s/#*>|-]+')  # Indentation and what begins a comment, quote or table row.
LITERAL = re.compile(r'"(?:\\.|[^"\\])*"')
CODE_SPAN = re.compile(r'`[^`\n]*`')
FENCE = re.compile(r'^( *)```.*?^ *```', re.MULTILINE | re.DOTALL)


def read_list(text):
    """(scope, pattern, replacement) of every line before the pending ones. ValueError names a bad line."""
    words = []
    for number, line in enumerate(text.split('\n'), 1):
        line = line.strip()
        if line == PENDING:
            break
        if not line or line.startswith('#'):
            continue
        scope, _, rest = line.partition(': ')
        scope, rest = (scope, rest) if scope in SCOPES else ('', line)
        pattern, arrow, replacement = rest.partition(' -> ')
        if not arrow or not pattern or not replacement:
            raise ValueError(f'line {number}: expected PATTERN -> WORD')
        try:
            compiled = re.compile(f'(?<![A-Za-z])(?:{pattern})(?![A-Za-z])', re.IGNORECASE)
        except re.error as error:
            raise ValueError(f'line {number}: {error}') from error
        words.append((scope, compiled, replacement))
    return words


def _blank(match):
    return re.sub(r'[^\n]', ' ', match.group())


def _without_code(text):
    """A document without fenced code and code spans; line breaks stay."""
    return CODE_SPAN.sub(_blank, FENCE.sub(_blank, text))


def _comments(path, text):
    """Line by line what stands behind the mark of a comment; '' where there is none."""
    mark = '//' if path.endswith(SLASHES) else '#'
    return '\n'.join(LITERAL.sub('""', line).partition(mark)[2] for line in text.split('\n'))


def _joined(text):
    """The lines as one, identifiers split at their humps, and where each line begins in it."""
    pieces, starts, length = [], [], 0
    for line in text.split('\n'):
        piece = HUMP.sub('_', LEADING.sub('', line).rstrip()) + ' '
        starts.append(length)
        pieces.append(piece)
        length += len(piece)
    return ''.join(pieces), starts


def _as_written(found, line):
    """The match without the underscores of humps, where it stands on one line."""
    spelling = '_?'.join(map(re.escape, found.replace('_', '')))
    written = re.search(spelling, line)
    return written.group() if written else found


def _found(path, text, words):
    joined, starts = _joined(text)
    lines = text.split('\n')
    for pattern, replacement in words:
        for match in pattern.finditer(joined):
            number = bisect.bisect_right(starts, match.start())
            word = _as_written(match.group(), lines[number - 1])
            yield number, f'{path}:{number}: "{word}" is retired: use {replacement}'


def _messages(path, text, words):
    """In the order of their lines."""
    everywhere = [word[1:] for word in words if word[0] == '']
    prose = [word[1:] for word in words if word[0] == 'prose']
    documents = [word[1:] for word in words if word[0] == 'docs']
    found = list(_found(path, text, everywhere))
    if path.endswith(DOCUMENTS):
        found += _found(path, _without_code(text), prose + documents)
    else:
        found += _found(path, _comments(path, text), prose)
    return [message for _, message in sorted(set(found))]


def retired_words(tree):
    if LIST not in tree.paths:
        return
    try:
        words = read_list(tree.text(LIST))
    except ValueError as error:
        yield f'{LIST}: {error}'
        return
    everywhere = [word[1:] for word in words if word[0] == '']
    for path in tree.having(*SEARCHED):
        for _, message in _found(path, os.path.splitext(path)[0], everywhere):
            yield message
        if path not in OWN_FILES:
            yield from _messages(path, tree.text(path), words)
