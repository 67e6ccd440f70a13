"""The limits test must find what is planted and stay silent about a clean tree."""

import os
import tempfile
import unittest

import cpp_scan
import header_check
import limits_test
import rules
import words

CLEAN = {
    'tests/limits/layers.txt': '# bottom first\nlibs/low\nlibs/left libs/right\nlibs/torch_engine\n'
                               'tests\n',
    'libs/low/CMakeLists.txt': 'tr_library(low SRCS low.cc)\ntr_test(low_test SRCS low_test.cc)\n',
    'libs/low/low.h': '#pragma once\nint Low();\n',
    'libs/low/low.cc': '#include "libs/low/low.h"\n\nint Low() { return 1; }\n',
    'libs/low/low_test.cc': '#include "libs/low/low.h"\n',
    'libs/left/left.h': '#pragma once\n#include "libs/low/low.h"\n',
    'libs/right/right.h': '#pragma once\n',
    'tests/t.h': '#pragma once\n',
    'libs/torch_engine/a.h': '#pragma once\n#include <torch/torch.h>\n#include "libs/left/left.h"\n',
}
LONG_BODY = '  int x = 0;\n' * 70


class RulesTest(unittest.TestCase):
    def found(self, rule, changes):
        """Messages of one rule on the clean tree with some files replaced."""
        files = {**CLEAN, **changes}
        with tempfile.TemporaryDirectory() as root:
            for path, text in files.items():
                os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
                with open(os.path.join(root, path), 'w', encoding='utf-8') as file:
                    file.write(text)
            tree = rules.Tree(root, limits_test.list_files(root))
            return list(rule(tree)) if rule else limits_test.check_rules(tree)

    def assert_found(self, rule, path, text):
        messages = self.found(rule, {path: text})
        self.assertEqual(len(messages), 1, messages)
        self.assertTrue(messages[0].startswith(path), messages)

    def test_clean_tree_has_no_violation(self):
        self.assertEqual(self.found(None, {}), [])

    def test_long_files(self):
        self.assertEqual(self.found(rules.file_length, {'libs/low/x.h': '\n' * 400}), [])
        for name in ('x.h', 'x.cc', 'x.py', 'x.rs'):
            self.assert_found(rules.file_length, 'libs/low/' + name, '\n' * 401)

    def test_long_functions(self):
        for head in ('void F()', 'TEST_F(Name, Case)', 'auto f = [](int x)', 'class A {\n void F()',
                     'A::A() : a_{1}, b_(2)', 'template <typename T>\nauto F(T x) -> int'):
            text = f'namespace x {{\n{head} {{\n{LONG_BODY}}}\n}}\n'
            self.assert_found(rules.function_length, 'libs/low/x.cc', text)
        self.assert_found(rules.function_length, 'libs/low/x.py', 'def f():\n' + '    x = 1\n' * 70)
        self.assert_found(rules.function_length, 'libs/low/x.rs',
                          "fn f<'a>(x: &'a str) {\n" + "    let c = '{';\n" * 70 + '}\n')

    def test_long_tables_and_classes_are_no_functions(self):
        for head in ('const int kTable[] =', 'class A', 'enum class E : int', 'namespace y'):
            text = f'{head} {{\n' + '  // entry\n' * 90 + '};\n'
            self.assertEqual(self.found(rules.function_length, {'libs/low/x.cc': text}), [])

    def test_long_lines(self):
        self.assert_found(rules.line_length, 'libs/low/x.h', '// ' + 'x' * 98 + '\n')

    def test_includes_against_the_layers(self):
        for path, included in (('libs/low/x.h', 'libs/left/left.h'),
                               ('libs/left/x.h', 'libs/right/right.h')):
            self.assert_found(rules.layer_order, path, f'#include "{included}"\n')
        self.assert_found(rules.layer_order, 'libs/nowhere/x.h', '')
        self.assertEqual(self.found(rules.layer_order,
                                    {'tests/x.cc': '#include "libs/left/left.h"\n'}), [])

    def test_doubles_are_for_tests_only(self):
        included = '#include "libs/low/testing/double.h"\n'
        double = {'libs/low/testing/double.h': '#pragma once\n#include "libs/left/left.h"\n'}
        self.assert_found(rules.layer_order, 'libs/left/x.h', included)
        self.assertEqual(self.found(rules.layer_order, {'libs/left/x_test.cc': included}), [])
        self.assertEqual(len(self.found(rules.layer_order, double)), 1)  # Above its own unit.

    def test_a_service_that_includes_another(self):
        layers = CLEAN['tests/limits/layers.txt'] + 'services/a\nservices/b\n'
        messages = self.found(rules.layer_order, {
            'tests/limits/layers.txt': layers, 'services/a/a.h': '',
            'services/b/b_test.cc': '#include "services/a/a.h"\n'})
        self.assertEqual(messages, ['services/b/b_test.cc: includes services/a/a.h, but a service '
                                    'never includes another service'])

    def test_rooms_need_a_layer_and_layers_a_room(self):
        self.assertEqual(len(self.found(rules.rooms_in_order, {'libs/low/room/x.h': ''})), 1)
        self.assertEqual(self.found(rules.rooms_in_order, {'libs/low/testing/x.h': ''}), [])
        layers = CLEAN['tests/limits/layers.txt'] + 'libs/gone\n'
        self.assertEqual(len(self.found(rules.rooms_in_order,
                                        {'tests/limits/layers.txt': layers})), 1)

    def test_crowded_folders(self):
        pairs = {f'libs/right/a{i}.{end}': '' for i in range(19) for end in ('h', 'cc')}
        tests = {f'libs/right/a{i}_test.cc': '' for i in range(19)}
        self.assertEqual(self.found(rules.crowded_folders, {**pairs, **tests}), [])
        more = {'libs/right/more.cc': ''}
        messages = self.found(rules.crowded_folders, {**pairs, **more})
        self.assertEqual(messages, ['libs/right: 21 sources, the limit is 20: make rooms'])

    def test_headers_with_many_public_methods(self):
        few = ''.join(f'  int M{i}(int x) const;\n' for i in range(15))
        ignored = ('  A();\n  ~A();\n  A(const A&) = delete;\n  A& operator=(const A&) = delete;\n'
                   '  void F() override;\n  using B = int (*)(int);\n  friend void G(A a);\n'
                   '  std::function<void(int)> done;\n  int x ABSL_GUARDED_BY(m) = f(1);\n')
        private = ' private:\n  int Hidden(int);\n'
        for head in ('class A {\n public:\n', 'struct A {\n',
                     'class A final : public B<int> {\n public:\n'):
            text = '#pragma once\nnamespace x {\n' + head + few + ignored + private + '};\n}\n'
            self.assertEqual(self.found(rules.public_methods, {'libs/low/x.h': text}), [])
            inline = text.replace('  A();\n', '  static int More() { return F(2); }\n  A() {}\n')
            self.assert_found(rules.public_methods, 'libs/low/x.h', inline)
        nested = 'struct A {\n struct B {\n' + few + '};\n int One();\n};\n'
        self.assert_found(rules.public_methods, 'libs/low/x.h', nested)

    def test_device_headers_outside_their_folder(self):
        for header in ('<torch/torch.h>', '<xnnpack.h>', '<cuda_runtime.h>', '"nccl.h"'):
            self.assert_found(rules.device_headers, 'libs/low/x.h', f'#include {header}\n')
        self.assert_found(rules.device_headers, 'libs/right/x.h',
                          '#include "libs/torch_engine/a.h"\n')

    def test_forms_of_headers(self):
        self.assert_found(rules.include_form, 'libs/low/x.cc', '#include "low.h"\n')
        self.assert_found(rules.include_form, 'libs/low/x.h', 'int x;\n')

    def test_vague_names(self):
        for name in ('string_util.h', 'manager.cc', 'test_helpers.py', 'common/x.h'):
            self.assert_found(rules.vague_names, 'libs/low/' + name, '')

    def test_sources_without_a_target(self):
        self.assert_found(rules.sources_in_targets, 'libs/low/x.cc', '')
        self.assert_found(rules.sources_in_targets, 'libs/low/x_test.cc', '')
        only_library = {'libs/low/x_test.cc': '',
                        'libs/low/CMakeLists.txt': CLEAN['libs/low/CMakeLists.txt'] +
                                                   '# x_test.cc\ntr_library(x SRCS x_test.cc)\n'}
        self.assertEqual(len(self.found(rules.sources_in_targets, only_library)), 1)
        by_stem = {'libs/low/x_test.cc': '',
                   'libs/low/CMakeLists.txt': CLEAN['libs/low/CMakeLists.txt'] +
                                              'tr_process_test(x_test)\n'}
        self.assertEqual(self.found(rules.sources_in_targets, by_stem), [])

    def test_unfinished_work(self):
        for word in ('TO' + 'DO', 'FIX' + 'ME'):
            self.assert_found(rules.unfinished, 'libs/low/x.h', f'// {word}: later\n')

    def test_paths_of_one_machine(self):
        for path in ('/wo' + 'rk/main', '/ro' + 'ot/.cache'):
            self.assert_found(rules.machine_paths, 'libs/low/x.sh', f'cd {path}\n')
        self.assertEqual(self.found(rules.machine_paths, {'libs/low/x.sh': 'cd net/work/a\n'}), [])


class WordsTest(unittest.TestCase):
    LISTED = """# a comment

row_?flow -> Handler
large alone -> large-only
prose: hops? -> latency
docs: nobody -> no worker
# pending
pens? -> grant
"""

    def found(self, path, text, listed=LISTED):
        with tempfile.TemporaryDirectory() as root:
            for name, content in ((words.LIST, listed), (path, text)):
                os.makedirs(os.path.dirname(os.path.join(root, name)), exist_ok=True)
                with open(os.path.join(root, name), 'w', encoding='utf-8') as file:
                    file.write(content)
            return list(words.retired_words(rules.Tree(root, limits_test.list_files(root))))

    def test_finds_every_spelling_of_a_name(self):
        for path in ('libs/a/a.cc', 'proto/a.proto', 'docs/a.md', 'tools/a.py', 'libs/CMakeLists.txt'):
            for word in ('RowFlow', 'row_flow', 'kRowFlow', 'rowflow'):
                messages = self.found(path, f'\nx {word}_test y\n')
                self.assertEqual(len(messages), 1, messages)
                self.assertTrue(messages[0].startswith(f'{path}:2: "'), messages)
        self.assertEqual(self.found('libs/a/a.cc', 'TEST(RowFlowTest, Empty)'),
                         ['libs/a/a.cc:1: "RowFlow" is retired: use Handler'])
        self.assertEqual(self.found('libs/a/a.cc', 'int overflow, arrow_flows, narrow_flow;'), [])

    def test_finds_words_in_names_of_files(self):
        self.assertEqual(self.found('libs/row_flow/x.h', ''),
                         ['libs/row_flow/x.h:1: "row_flow" is retired: use Handler'])

    def test_finds_phrases_across_lines_but_not_in_values(self):
        self.assertEqual(self.found('libs/a/a.h', '// The large\n  // alone writes.\n'),
                         ['libs/a/a.h:1: "large alone" is retired: use large-only'])
        self.assertEqual(len(self.found('docs/a.md', 'served large\nalone')), 1)
        self.assertEqual(self.found('libs/a/a.cc', 'large_alone = kLargeAlone; // LARGE_ALONE'), [])

    def test_prose_is_comments_and_documents_without_code(self):
        self.assertEqual(self.found('libs/a/a.cc', 'auto hop = "a // hop";\n'), [])
        for path, text in (('libs/a/a.cc', 'int x;  // A hop.'), ('proto/a.proto', '// A hop.'),
                           ('tools/a.py', 'x = 1  # A hop.'), ('docs/a.md', 'A hop.')):
            self.assertEqual(self.found(path, text), [f'{path}:1: "hop" is retired: use latency'])
        self.assertEqual(self.found('docs/a.md', 'See `hop`.\n\n```sh\nhop\n```\n'), [])

    def test_words_for_documents_only(self):
        self.assertEqual(self.found('libs/a/a.cc', '// nobody'), [])
        self.assertEqual(len(self.found('docs/a.md', 'Nobody')), 1)

    def test_pending_words_are_skipped(self):
        self.assertEqual(self.found('docs/a.md', 'the pen'), [])
        active = self.LISTED.replace(words.PENDING, '')
        self.assertEqual(len(self.found('docs/a.md', 'the pen', active)), 1)

    def test_a_line_that_cannot_be_read(self):
        for line in ('pen', 'pen -> ', '(pen -> grant'):
            messages = self.found('docs/a.md', '', line + '\n')
            self.assertEqual(len(messages), 1, messages)
            self.assertTrue(messages[0].startswith(words.LIST + ': line 1: '), messages)


class FormatTest(unittest.TestCase):
    def test_finds_the_file_that_would_change(self):
        with tempfile.TemporaryDirectory() as root:
            for name, text in (('a.cc', 'int  x;\n'), ('b.cc', 'int x;\n')):
                with open(os.path.join(root, name), 'w', encoding='utf-8') as file:
                    file.write(text)
            tree = rules.Tree(root, limits_test.list_files(root))
            self.assertEqual(limits_test.check_format(tree), ['a.cc: run clang-format on it'])


class HeaderTest(unittest.TestCase):
    def test_finds_the_header_that_needs_another_first(self):
        files = {'a/a.cc': '#include "a/proven.h"\n#include "a/bad.h"\n#include "a/good.h"\n',
                 'a/proven.h': '#include <string>\n', 'a/bad.h': 'std::string Bad();\n',
                 'a/good.h': 'int Good();\n', 'b/alone.h': ''}
        with tempfile.TemporaryDirectory() as root:
            for path, text in files.items():
                os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
                with open(os.path.join(root, path), 'w', encoding='utf-8') as file:
                    file.write(text)
            with open(os.path.join(root, 'compile_commands.json'), 'w', encoding='utf-8') as file:
                file.write(f'[{{"directory": "{root}", "file": "{root}/a/a.cc", "command": '
                           f'"cmake -E env ccache c++ -I{root} -MD -o x.o -c {root}/a/a.cc"}}]')
            tree = rules.Tree(root, limits_test.list_files(root))
            messages, proven, compiled, skipped = header_check.check(tree, root)
        self.assertEqual(len(messages), 1, messages)
        self.assertTrue(messages[0].startswith('a/bad.h'), messages)
        self.assertEqual((proven, compiled, skipped), (1, 2, ['b/alone.h']))


class ScanTest(unittest.TestCase):
    def test_finds_functions_by_their_lines(self):
        text = '''#define X {
namespace a {
struct B : C<int> {
  B() : x_{1}, y_{2} {}
  int F() const override {
    return 'x' + 1'000 + R"(}}}{)"[0];  // }
  }
  int x_ = {1};
};

template <typename T, int N = f(2)>
[[nodiscard]] int operator==(const T& t)
    noexcept {
  if (t) { return "}"; }
}
int table[] = {1, 2};
INSTANTIATE(A, [](int x) { return x; });
const auto lambda = [](int x) {
  return x;
};
}  // namespace a
'''
        self.assertEqual(cpp_scan.functions(text), [(4, 4), (5, 7), (11, 15), (18, 20)])

    def test_access_specifiers_do_not_count(self):
        text = 'class A {\n public:\n\n  // Why.\n  int F() {\n  }\n};\n'
        self.assertEqual(cpp_scan.functions(text), [(5, 6)])

    def test_rust_lifetimes_are_no_characters(self):
        text = "impl<'a> X<'a> {\n  fn f(&'a self) -> char {\n    '}'\n  }\n}\n"
        self.assertEqual(cpp_scan.rust_functions(text), [(2, 4)])


if __name__ == '__main__':
    unittest.main()
