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


CLASS_HEAD = re.compile(r'\b(class|struct)\s+(?:alignas\([^)]*\)\s*)?(?:[A-Z_]+\([^)]*\)\s*)?(\w+)\b'
                        r'(?!\s*<)[^;{}()]*$')
ACCESS = re.compile(r'\s*(public|private|protected)\s*:(?!:)')
ATTRIBUTE = re.compile(r'\b(?:[A-Z]+_[A-Z0-9_]+|alignas|decltype|noexcept)\s*\([^()]*(?:\([^()]*\)[^()]*)*\)')
NO_METHOD = re.compile(r'^\s*(using|friend|typedef|static_assert|enum)\b|\boperator\b|\boverride\b')


def _without_angles(text):
    """The text without template arguments."""
    before = None
    while before != text:
        before = text
        text = re.sub(r'<[^<>;{}]*>', ' ', text)
    return text


def _method_name(declaration):
    """The name that a member declaration gives a function; None when it declares none."""
    text = _without_angles(ATTRIBUTE.sub(' ', _without_template(declaration)))
    text = re.sub(r'\[\[.*?\]\]', ' ', text)
    if NO_METHOD.search(text):
        return None
    match = re.match(r'[^=(]*?(~?\w+)\s*\(', text)
    return match[1] if match else None


def _members(code, at, name, public):
    """Public method names of the class body that begins after the brace at `at`, those of nested
    classes included, and the index after its closing brace."""
    found = []
    start = at = at + 1
    while at < len(code):
        access = ACCESS.match(code, start) if at == start else None
        if access:
            public = access[1] == 'public'
            start = at = access.end()
            continue
        c = code[at]
        if c == '}':
            return found, at + 1
        if c in ';{':
            declaration = code[start:at]
            head = CLASS_HEAD.search(_without_template(declaration)) if c == '{' else None
            if head:
                nested, at = _members(code, at, head[2], head[1] == 'struct')
                found += nested if public else []
            else:
                method = _method_name(declaration)
                if public and method and method.lstrip('~') != name:
                    found.append(method)
                at = _matching_brace(code, at) + 1 if c == '{' else at + 1
            while at < len(code) and code[at] in ' \n;':
                at += 1
            start = at
            continue
        if c in '([':
            depth = 0
            while at < len(code):
                depth += (code[at] in '([') - (code[at] in ')]')
                at += 1
                if depth == 0:
                    break
            continue
        at += 1
    return found, at


def public_methods(text):
    """Yields (class, names of its public methods) of every class outside of other classes:
    constructors, destructors and operators apart."""
    code = blank(text)
    at = 0
    while True:
        brace = code.find('{', at)
        if brace < 0:
            return
        start = max(code.rfind(c, 0, brace) for c in ';{}') + 1
        head = CLASS_HEAD.search(_without_template(code[start:brace]))
        if head and not re.search(r'\benum\s+(class|struct)', code[start:brace]):
            names, at = _members(code, brace, head[2], head[1] == 'struct')
            yield head[2], names
        else:
            at = brace + 1
