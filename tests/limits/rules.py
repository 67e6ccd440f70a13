"""The limits of this repository, one function each. Every rule takes a Tree and yields messages."""

import ast
import os
import re

import cpp_scan
from words import retired_words

MAX_FILE_LINES = 400
MAX_FUNCTION_LINES = 70
MAX_COLUMNS = 100
MAX_SOURCES = 20  # In one folder; a source is a .h/.cc pair, tests apart.
MAX_PUBLIC_METHODS = 15  # Of all classes of a header: what a reader has to know of it.

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
DEVICE_PEERS = ('tests/bench/engine/fbgemm_linear.cc',)  # Measured against, never used.
# Everyone else reaches the device through libs/inference/engine.h.
DEVICE_USERS = (DEVICE_FOLDER, 'libs/worker/engines/torch_setup', 'tests/', 'tools/')

# Headers with more public methods, each with its reason.
MANY_METHODS = {
    'libs/routing/algorithm.h': 'the whole contract of an algorithm on one page',
    'libs/torch_engine/model/ops.h': 'one method per operation of a decoder',
    'services/scheduler/core/scheduler_core.h': 'the whole scheduler, as its shell sees it',
    'services/scheduler/workers/worker_directory.h': 'still one place for all that is known of a worker',
    'libs/weights/gguf/gguf_file.h': 'one typed getter per kind of metadata value',
    'services/scheduler/testing/scripted_scheduler.h': 'a double: one method per kind of frame',
}


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


def unit_of(path):
    """The library, service or kind of test that a path belongs to."""
    return '/'.join(path.split('/')[:2])


def is_testing(path):
    """Tests and test doubles: they may look into every room of their own unit."""
    return path.endswith('_test.cc') or '/testing/' in path or path.startswith('tests/')


def _wrong_include(path, included, layers):
    """Why `path` may not include `included`; None when it may."""
    own, other = folder_of(path, layers), folder_of(included, layers)
    if other is None:
        return None
    if '/testing/' in included and not is_testing(path):
        return 'a double is for tests only'
    same_unit = unit_of(path) == unit_of(included)
    if path.startswith('services/') and included.startswith('services/') and not same_unit:
        return 'a service never includes another service'
    if own == other or (same_unit and is_testing(path)) or layers[other] < layers[own]:
        return None
    return f'{other} is not below {own}'


def layer_order(tree):
    layers = read_layers(tree.text('tests/limits/layers.txt'))
    for path in tree.having(*CPP):
        if folder_of(path, layers) is None:
            yield f'{path}: its folder is not in tests/limits/layers.txt'
            continue
        for included in INCLUDE.findall(tree.text(path)):
            reason = _wrong_include(path, included, layers)
            if reason:
                yield f'{path}: includes {included}, but {reason}'


def rooms_in_order(tree):
    """A folder with code inside a service or library is a room: it has a layer of its own."""
    layers = read_layers(tree.text('tests/limits/layers.txt'))
    folders = {os.path.dirname(path) for path in tree.having(*CPP)}
    for folder in sorted(folders):
        product = folder.startswith(('libs/', 'services/')) and not folder.endswith('/testing')
        if product and folder not in layers:
            yield f'{folder}: a room without a line in tests/limits/layers.txt'
    for folder in layers:
        if not any(path.startswith(folder + '/') for path in tree.having(*CPP, '.proto')):
            yield f'tests/limits/layers.txt: {folder} holds no source'


def crowded_folders(tree):
    sources = {}
    for path in tree.having(*CPP, '.cu'):
        stem = os.path.splitext(path)[0]
        if not stem.endswith('_test'):
            sources.setdefault(os.path.dirname(path), set()).add(stem)
    for folder, stems in sorted(sources.items()):
        if len(stems) > MAX_SOURCES:
            yield f'{folder}: {len(stems)} sources, the limit is {MAX_SOURCES}: make rooms'


def public_methods(tree):
    for path in tree.having('.h'):
        classes = dict(cpp_scan.public_methods(tree.text(path)))
        count = sum(len(names) for names in classes.values())
        if count > MAX_PUBLIC_METHODS and path not in MANY_METHODS:
            yield (f'{path}: {count} public methods ({", ".join(classes)}), the limit is '
                   f'{MAX_PUBLIC_METHODS}: split it by idea')
    for path in sorted(set(MANY_METHODS) - set(tree.paths)):
        if 'tests/limits/rules.py' in tree.paths:
            yield f'{path}: is excepted from the limit of methods, but does not exist'


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


RULES = [file_length, function_length, line_length, layer_order, rooms_in_order,
         crowded_folders, public_methods, include_form, device_headers,
         vague_names, sources_in_targets, unfinished, machine_paths, retired_words]
