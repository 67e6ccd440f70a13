import contextlib
import io
import unittest

import main
from command_line import Arguments, Flag, Verb, find_verb, parse, usage, verb_help
from failure import UsageError

VERB = Verb(
    name="up",
    about="starts",
    run=lambda _: 0,
    words="[WORD]",
    most_words=1,
    flags=(
        Flag("--yes", "agree"),
        Flag("--json", "write", value="FILE"),
        Flag("--mode", "how", value="MODE", choices=("fast", "slow")),
        Flag("-f", "follow"),
    ),
)


class CommandLineTest(unittest.TestCase):
    def test_takes_values_with_and_without_equals(self):
        self.assertEqual(
            parse(VERB, ["--json=a", "word"]), Arguments(["word"], {"--json": "a"}, set())
        )
        self.assertEqual(parse(VERB, ["--json", "a", "-f"]), Arguments([], {"--json": "a"}, {"-f"}))

    def test_takes_words_that_look_like_flags_after_two_dashes(self):
        self.assertEqual(parse(VERB, ["--", "--yes"]).words, ["--yes"])

    def refusal(self, argv):
        with self.assertRaises(UsageError) as caught:
            parse(VERB, argv)
        return str(caught.exception)

    def test_names_the_nearest_flag(self):
        self.assertIn("did you mean --yes?", self.refusal(["--yess"]))

    def test_names_all_flags_when_none_is_near(self):
        self.assertIn("known: --yes, --json", self.refusal(["--qqqqqq"]))
        self.assertIn("known: --yes, --json", self.refusal(["--nonsense"]))

    def test_refuses_a_switch_with_value_a_value_flag_without_and_extra_words(self):
        self.assertIn("takes no value", self.refusal(["--yes=1"]))
        self.assertIn("needs a value", self.refusal(["--json"]))
        self.assertIn("does not take 'b'", self.refusal(["a", "b"]))

    def test_names_the_nearest_choice(self):
        self.assertIn("did you mean fast?", self.refusal(["--mode=fsat"]))

    def test_names_the_nearest_verb(self):
        with self.assertRaisesRegex(UsageError, "did you mean up?"):
            find_verb("uo", (VERB,))

    def test_help_shows_every_flag(self):
        for flag in VERB.flags:
            self.assertIn(flag.name, verb_help(VERB))
            self.assertIn(flag.name, usage(VERB))


class MainTest(unittest.TestCase):
    def call(self, *argv):
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main.main(list(argv))
        return code, out.getvalue(), err.getvalue()

    def test_unknown_verb_is_one_line_and_exit_code_2(self):
        code, out, err = self.call("stauts")
        self.assertEqual((code, out), (2, ""))
        self.assertEqual(err, "tokenrouter: unknown command stauts; did you mean status?\n")

    def test_unknown_flag_is_one_line_and_exit_code_2(self):
        code, _, err = self.call("up", "--detahc")
        self.assertEqual(code, 2)
        self.assertEqual(err, "tokenrouter: unknown flag --detahc of up; did you mean --detach?\n")

    def test_every_verb_has_help(self):
        for verb in main.VERBS:
            code, out, _ = self.call(verb.name, "--help")
            self.assertEqual(code, 0)
            self.assertIn(f"./tokenrouter {verb.name}", out)

    def test_help_after_two_dashes_is_the_benchmarks(self):
        code, _, err = self.call("bench", "no_such", "--", "--help")
        self.assertEqual(code, 2)
        self.assertIn("unknown benchmark no_such", err)

    def test_bad_values_are_usage_errors(self):
        for argv in (
            ["up", "--port-offset=-1"],
            ["up", "--port-offset=99999"],
            ["up", "--config=/no/such"],
            ["chat"],
            ["chat", "x", "--max-tokens=0"],
            ["logs", "gatewya"],
            ["models", "pull", "smal"],
            ["test", "ful"],
            ["bench", "no_such"],
        ):
            self.assertEqual(self.call(*argv)[0], 2, argv)


if __name__ == "__main__":
    unittest.main()
