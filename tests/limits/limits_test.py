"""Enforces the limits of the code base; prints every violation and fails when there is one.

usage: limits_test.py ROOT               the rules of rules.py
       limits_test.py ROOT --format      clang-format changes nothing
       limits_test.py ROOT --headers B   every header compiles alone, with the flags of build B
"""

import concurrent.futures
import os
import subprocess
import sys

import header_check
import rules

SKIPPED_FOLDERS = {'.git', 'build', 'node_modules', 'target', '__pycache__'}
FORMAT_JOBS = 2
FORMAT_BATCH = 50  # Files per process: starting one costs more than formatting a file.


def list_files(root):
    """Tracked and new files; without git, all files outside build folders."""
    if os.path.exists(os.path.join(root, '.git')):
        listed = subprocess.run(
            ['git', '-c', 'safe.directory=*', 'ls-files', '-z', '--cached', '--others',
             '--exclude-standard'], cwd=root, capture_output=True, text=True, check=True).stdout
        paths = set(filter(None, listed.split('\0')))
    else:
        paths = set()
        for folder, folders, files in os.walk(root):
            folders[:] = [name for name in folders if name not in SKIPPED_FOLDERS]
            paths.update(os.path.relpath(os.path.join(folder, name), root) for name in files)
    return [path for path in paths if os.path.isfile(os.path.join(root, path))]


def check_rules(tree):
    return [message for rule in rules.RULES for message in rule(tree)]


def check_format(tree):
    """One message per file that clang-format would change."""
    def run(batch):
        output = subprocess.run(['clang-format', '--dry-run', *batch], cwd=tree.root,
                                capture_output=True, text=True, check=True).stderr
        changed = {line.split(':')[0] for line in output.split('\n') if 'warning:' in line}
        return [f'{path}: run clang-format on it' for path in batch if path in changed]

    paths = tree.having('.h', '.cc')
    batches = [paths[i:i + FORMAT_BATCH] for i in range(0, len(paths), FORMAT_BATCH)]
    with concurrent.futures.ThreadPoolExecutor(FORMAT_JOBS) as pool:
        return [message for messages in pool.map(run, batches) for message in messages]


def main(arguments):
    root = arguments[0]
    tree = rules.Tree(root, list_files(root))
    if arguments[1:] == ['--format']:
        messages = check_format(tree)
    elif arguments[1:2] == ['--headers']:
        messages, proven, compiled, skipped = header_check.check(tree, arguments[2])
        print(f'{proven} headers proven by the build, {compiled} compiled alone, '
              f'{len(skipped)} skipped: not part of this build')
    else:
        messages = check_rules(tree)
    for message in messages:
        print(message)
    print(f'{len(tree.paths)} files, {len(messages)} violations')
    return 1 if messages else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
