"""Checks that every header compiles alone.

A header that some compiled .cc includes first is proven by the build itself. Only the others are
compiled here, each as a file of one line, with the flags that the build uses in its folder.
"""

import concurrent.futures
import json
import os
import re
import shlex
import subprocess

INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)
JOBS = 2


def load_commands(build):
    """Path of a source relative to the root -> (folder, arguments without input and output)."""
    with open(os.path.join(build, 'compile_commands.json'), encoding='utf-8') as file:
        entries = json.load(file)
    commands = {}
    for entry in entries:
        arguments = shlex.split(entry['command'])
        # Compiler launchers (ccache behind cmake -E env) come before the compiler.
        first = next(i for i, a in enumerate(arguments)
                     if re.search(r'(^|/)(c\+\+|g\+\+|clang\+\+)[-\d.]*$', a))
        kept = []
        skip = False
        for argument in arguments[first:]:
            if skip:
                skip = False
            elif argument in ('-o', '-c', '-MF', '-MT', '-MQ'):
                skip = True
            elif argument not in ('-MD', '-MMD'):
                kept.append(argument)
        commands[os.path.realpath(entry['file'])] = (entry['directory'], kept)
    return commands


def proven_headers(tree, commands):
    """Headers that are the first include of a source of this build."""
    proven = set()
    for path in tree.having('.cc'):
        if os.path.realpath(os.path.join(tree.root, path)) in commands:
            proven.update(re.findall(r'#\s*include\s*[<"]([^">]+)', tree.text(path))[:1])
    return proven


def flags_for(header, tree, commands):
    """The command of a source that includes the header, else of one in the same folder."""
    near = None
    for path in tree.having('.cc'):
        source = os.path.realpath(os.path.join(tree.root, path))
        if source not in commands:
            continue
        if header in INCLUDE.findall(tree.text(path)):
            return commands[source]
        if os.path.dirname(path) == os.path.dirname(header):
            near = commands[source]
    return near


def compile_alone(header, command):
    directory, arguments = command
    result = subprocess.run(
        arguments + ['-w', '-fsyntax-only', '-x', 'c++', '-'], cwd=directory, text=True,
        input=f'#include "{header}"\n', capture_output=True, check=False)
    if result.returncode == 0:
        return None
    lines = [line for line in result.stderr.split('\n') if 'error' in line]
    return f'{header}: does not compile alone: {lines[0] if lines else result.stderr[:200]}'


def check(tree, build):
    """Returns (messages, headers proven by the build, compiled here, skipped)."""
    commands = load_commands(build)
    proven = proven_headers(tree, commands)
    work, skipped = [], []
    for header in tree.having('.h'):
        if header in proven:
            continue
        command = flags_for(header, tree, commands)
        if command is None:
            skipped.append(header)
        else:
            work.append((header, command))
    with concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
        messages = [m for m in pool.map(lambda item: compile_alone(*item), work) if m]
    return messages, len(proven), len(work), skipped
