"""The limits of this repository, one function each. Every rule takes a Tree and yields messages."""

import ast
import os
import re

import cpp_scan

MAX_FILE_LINES = 400
MAX_FUNCTION_LINES = 70
MAX_COLUMNS = 100

CPP = ('.h', '.cc', '.inc')
CODE = CPP + ('.py', '.rs', '.cu', '.cmake', '.proto')
VAGUE_NAMES = {'util', 'utils', 'helper', 'helpers', 'common', 'misc', 'manager', 'managers'}
UNFINISHED = re.compile(r'\b(' + '|'.join(['TO' + 'DO', 'FIX' + 'ME', 'XX' + 'X', 'HA' + 'CK']) +
                        r')\b')
MACHINE_PATH = re.compile(r'(?<![\w.$}/*-])/(work|ro' + r'ot)/')
DEVICE_HEADER = re.compile(
    r'#\s*include\s*[<"](torch/|ATen/|c10/|xnnpack|cuda|cublas|cudnn|nccl|tensorrt)', re.IGNORECASE)
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)
DEVICE_FOLDER = 'libs/torch_engine/'
DEVICE_PEERS = ('tests/bench/fbgemm_linear.cc',)  # Measured against, never used.
# Everyone else reaches the device through libs/inference/engine.h.
DEVICE_USERS = (DEVICE_FOLDER, 'libs/worker_engine/', 'tests/', 'tools/')


class Tree:
    """The files of a repository by path, read once."""

    def __init__(self, root, paths):
        self.root = root
        self.paths = sorted(paths)
        self._texts = {}

    def text(self, path):
        if path not in self._texts:
            with open(os.path.join(self.root, path), 'rb') as file:
                self._texts[path] = file.read().decode('utf-8', 'replace')
        return self._texts[path]

    def having(self, *suffixes):
        return [path for path in self.paths if path.endswith(suffixes)]


def file_length(tree):
    for path in tree.having(*CODE):
        lines = tree.text(path).count('\n')
        if lines > MAX_FILE_LINES:
            yield f'{path}: {lines} lines, the limit is {MAX_FILE_LINES}: split it by idea'


def python_functions(text):
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node.lineno, node.end_lineno


def function_length(tree):
    scanners = {'.py': python_functions, '.rs': cpp_scan.rust_functions}
    for path in tree.having(*CPP, '.py', '.rs', '.cu'):
        scan = scanners.get(os.path.splitext(path)[1], cpp_scan.functions)
        for first, last in scan(tree.text(path)):
            if last - first + 1 > MAX_FUNCTION_LINES:
                yield (f'{path}:{first}: a function of {last - first + 1} lines, the limit is '
                       f'{MAX_FUNCTION_LINES}')


def line_length(tree):
    for path in tree.having(*CPP):
        for number, line in enumerate(tree.text(path).split('\n'), 1):
            if len(line) > MAX_COLUMNS:
                yield f'{path}:{number}: {len(line)} columns, the limit is {MAX_COLUMNS}'


def read_layers(text):
    """Folder -> number of its layer, bottom first."""
    lines = [line.split('#')[0].split() for line in text.split('\n')]
    return {folder: i for i, line in enumerate(filter(None, lines)) for folder in line}


def folder_of(path, layers):
    """The longest folder of `layers` that holds the path; None when there is none."""
    fitting = [folder for folder in layers if path.startswith(folder + '/')]
    return max(fitting, key=len, default=None)


def layer_order(tree):
    layers = read_layers(tree.text('tests/limits/layers.txt'))
    for path in tree.having(*CPP):
        own = folder_of(path, layers)
        if own is None:
            yield f'{path}: its folder is not in tests/limits/layers.txt'
            continue
        for included in INCLUDE.findall(tree.text(path)):
            other = folder_of(included, layers)
            if other is not None and other != own and layers[other] >= layers[own]:
                yield f'{path}: includes {included}, but {other} is not below {own}'


def include_form(tree):
    for path in tree.having(*CPP):
        for included in INCLUDE.findall(tree.text(path)):
            if '/' not in included:
                yield f'{path}: includes "{included}": use the full path from the root'
    for path in tree.having('.h'):
        if not re.search(r'^#pragma once$', tree.text(path), re.MULTILINE):
            yield f'{path}: has no #pragma once'


def device_headers(tree):
    for path in tree.having(*CPP):
        if path.startswith(DEVICE_FOLDER) or path in DEVICE_PEERS:
            continue
        for number, line in enumerate(tree.text(path).split('\n'), 1):
            if DEVICE_HEADER.search(line):
                yield f'{path}:{number}: only {DEVICE_FOLDER} includes torch, XNNPACK or CUDA'
        if not path.startswith(DEVICE_USERS):
            for included in INCLUDE.findall(tree.text(path)):
                if included.startswith(DEVICE_FOLDER):
                    yield f'{path}: includes {included}: use libs/inference/engine.h'


def vague_names(tree):
    for path in tree.paths:
        for part in path.split('/'):
            words = re.split(r'[_.\-]', part.lower())
            for word in words:
                if word in VAGUE_NAMES:
                    yield f'{path}: "{word}" says nothing: name the idea'


def _cmake_code(tree, path):
    return re.sub(r'#[^\n]*', '', tree.text(path))


def _listed(tree, path, pattern, names):
    """True when a CMakeLists.txt at or above the file's folder has one of `names` in `pattern`."""
    parts = path.split('/')
    for depth in range(len(parts) - 1, -1, -1):
        cmake = '/'.join(parts[:depth] + ['CMakeLists.txt'])
        if cmake not in tree.paths:
            continue
        relative = '/'.join(parts[depth:])
        wanted = {name.replace('FILE', relative) for name in names}
        for region in re.findall(pattern, _cmake_code(tree, cmake), re.DOTALL):
            if wanted & set(re.split(r'[\s()"]+', region)):
                return True
    return False


def sources_in_targets(tree):
    """A test may be listed by its stem: some folders have a function that adds the .cc."""
    for path in tree.having('.cc', '.cu'):
        names = ['FILE', '${CMAKE_SOURCE_DIR}/' + path]
        if path.endswith('_test.cc'):
            names.append(os.path.basename(path)[:-len('.cc')])
            if not _listed(tree, path, r'\b(?:tr_\w*test|add_test)\s*\((.*?)\)', names):
                yield f'{path}: is in no tr_test(): a test that does not run is worse than none'
        elif not _listed(tree, path, r'(.*)', names):
            yield f'{path}: no CMakeLists.txt lists it'


def unfinished(tree):
    for path in tree.paths:
        for number, line in enumerate(tree.text(path).split('\n'), 1):
            match = UNFINISHED.search(line)
            if match and '/testdata/' not in path and not path.endswith('.lock'):
                yield f'{path}:{number}: {match.group()}: finish it or file an issue'


def machine_paths(tree):
    for path in tree.paths:
        for number, line in enumerate(tree.text(path).split('\n'), 1):
            if MACHINE_PATH.search(line):
                yield f'{path}:{number}: names a path of one machine'


RULES = [file_length, function_length, line_length, layer_order, include_form, device_headers,
         vague_names, sources_in_targets, unfinished, machine_paths]
