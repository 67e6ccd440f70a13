"""Finds the function bodies of a C++ or Rust file without a compiler.

blank() replaces comments, literals and preprocessor lines by spaces, so that every brace that is
left is code. functions() then walks the declarations of namespaces and classes; whatever a
declaration puts in braces is a nested scope, an initializer or a body, told apart by what stands
before the brace. A function reaches from the first line of its declaration to its closing brace;
lambdas count as part of the function around them.
"""

import re

RAW_STRING = re.compile(r'R"([^()\\\s]{0,16})\(')
CHARACTER = re.compile(r"'(\\[^\n']+|\\'|[^'\\\n])'")
SCOPE = re.compile(r'^(inline\s+)?(namespace|class|struct|union|enum)\b|^extern\s*$')
TEMPLATE = re.compile(r'^template\s*')


def _skip_string(text, at):
    """Index after the closing quote of the string that begins at `at`."""
    end = at + 1
    while end < len(text) and text[end] not in '"\n':
        end += 2 if text[end] == '\\' else 1
    return min(end + 1, len(text))


def _skip_preprocessor(text, at):
    end = text.find('\n', at)
    while end > 0 and text[end - 1] == '\\':
        end = text.find('\n', end + 1)
    return len(text) if end < 0 else end


def _token_end(text, at):
    """End of the comment, literal or preprocessor line at `at`; `at` when code stands there."""
    if text.startswith('//', at):
        end = text.find('\n', at)
        return len(text) if end < 0 else end
    if text.startswith('/*', at):
        end = text.find('*/', at + 2)
        return len(text) if end < 0 else end + 2
    if text[at] == '#' and text[text.rfind('\n', 0, at) + 1:at].strip() == '':
        return _skip_preprocessor(text, at)
    raw = RAW_STRING.match(text, at)
    if raw and not (at and (text[at - 1].isalnum() or text[at - 1] == '_')):
        end = text.find(')' + raw.group(1) + '"', raw.end())
        return len(text) if end < 0 else end + len(raw.group(1)) + 2
    if text[at] == '"':
        return _skip_string(text, at)
    if text[at] == "'" and not (at and text[at - 1].isalnum()):
        character = CHARACTER.match(text, at)
        return character.end() if character else at
    return at


def blank(text):
    """The text with everything that is not code replaced by spaces; line breaks stay."""
    out = []
    at = 0
    while at < len(text):
        end = _token_end(text, at)
        if end == at:
            out.append(text[at])
            at += 1
        else:
            out.append(re.sub(r'[^\n]', ' ', text[at:end]))
            at = end
    return ''.join(out)


def _matching_brace(code, at):
    depth = 0
    for i in range(at, len(code)):
        if code[i] == '{':
            depth += 1
        elif code[i] == '}':
            depth -= 1
            if depth == 0:
                return i
    return len(code) - 1


def _without_template(declaration):
    """The declaration without leading template<...>, attributes and access specifiers."""
    text = declaration.strip()
    while True:
        before = text
        text = re.sub(r'^(public|private|protected)\s*:', '', text).strip()
        text = re.sub(r'^\[\[.*?\]\]', '', text).strip()
        if TEMPLATE.match(text) and '<' in text:
            depth = 0
            for i, c in enumerate(text):
                depth += (c == '<') - (c == '>' and text[i - 1] != '-')
                if c == '>' and depth == 0:
                    text = text[i + 1:].strip()
                    break
            else:
                return text
        if text == before:
            return text


def _top_level(text):
    """The text with the contents of parentheses and square brackets removed."""
    out = []
    depth = 0
    for c in text:
        if c in '([':
            depth += 1
            out.append(c if depth == 1 else '')
        elif c in ')]':
            depth -= 1
            out.append(c if depth == 0 else '')
        elif depth == 0:
            out.append(c)
    return ''.join(out)


def _kind(declaration):
    """What a brace after `declaration` opens: 'scope', 'body' or 'initializer'."""
    text = _without_template(declaration)
    if SCOPE.match(text):
        return 'scope'
    top = _top_level(text)
    assigned = re.search(r'(?<![=!<>])=(?!=)', re.sub(r'\boperator\s*[^\s\w(]+', 'operator', top))
    if assigned:
        return 'body' if re.search(r'\[\]\s*(\(\))?[^{]*$', top[assigned.end():]) else 'initializer'
    if '()' not in top:
        return 'initializer'
    # After the parameters a single colon begins the list of member initializers: there a brace
    # that follows a name is an initializer, one that follows an initializer is the body.
    after = top[top.index('()') + 2:]
    if re.search(r'(?<!:):(?!:)', after):
        return 'body' if re.search(r'[)}]\s*$', text) else 'initializer'
    return 'body'


def _first_line(code, start, end):
    """Line of the first code of a declaration; access specifiers before it do not count."""
    while True:
        match = re.compile(r'\s*((public|private|protected)\s*:)?').match(code, start, end)
        if match.group(1) is None:
            return code.count('\n', 0, match.end()) + 1
        start = match.end()


def functions(text):
    """Yields (first line, last line) of every C++ function outside of other functions."""
    code = blank(text)
    found = []
    start = at = 0
    parentheses = 0
    while at < len(code):
        c = code[at]
        if c in '([':
            parentheses += 1
        elif c in ')]':
            parentheses = max(0, parentheses - 1)
        elif c == '{' and parentheses > 0:
            at = _matching_brace(code, at)
        elif c == '{':
            kind = _kind(code[start:at])
            if kind == 'scope':
                start = at + 1
            else:
                end = _matching_brace(code, at)
                if kind == 'body':
                    found.append((_first_line(code, start, at), code.count('\n', 0, end) + 1))
                    start = end + 1
                at = end
        elif c in ';}' and parentheses == 0:
            start = at + 1
        at += 1
    return found


def rust_functions(text):
    """Yields (first line, last line) of every Rust function."""
    code = blank(re.sub(r"'(?=[a-z_]+\b(?!'))", ' ', re.sub(r'#!?\[', ' [', text)))
    found = []
    for match in re.finditer(r'\bfn\s+\w+', code):
        brace = re.compile(r'[{;]').search(code, match.end())
        if brace and brace.group() == '{':
            end = _matching_brace(code, brace.start())
            found.append((code.count('\n', 0, match.start()) + 1, code.count('\n', 0, end) + 1))
    return found
