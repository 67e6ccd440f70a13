import contextlib
import http.server
import io
import json
import tempfile
import threading
import unittest
import unittest.mock
from pathlib import Path

import full_test
import verb_bench
import verb_simulate
import verb_status
import verb_test
from build import _is_configured, _short, run_ninja
from command_line import parse
from console import Console
from failure import Failure
from places import Places
from process_plan import Plan
from routed_answer import stream_answer
from tiny_tokenizer import spelling, write_tokenizer


def chunk(text: str, author: str) -> dict:
    token = {"id": 1, "text": text, "author": author, "entropy": 0.5}
    return {"choices": [{"index": 0, "delta": {"content": text}, "routing": {"tokens": [token]}}]}


class Gateway(http.server.BaseHTTPRequestHandler):
    status = 200
    body = b""
    requests: list[dict] = []

    def do_POST(self):
        self.requests.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(self.status)
        self.send_header("Content-Length", str(len(self.body)))
        self.end_headers()
        self.wfile.write(self.body)

    def log_message(self, *_):
        pass


class StatusTest(unittest.TestCase):
    model = {"pair": "p", "service_mode": "large_alone", "policy": "model m=7"}

    def test_says_what_the_scheduler_makes_of_a_pair(self):
        plan = {"requests": 16, "routed_per_s": 130.4, "large_alone_per_s": 160.0}
        line = verb_status.describe_model(self.model | {"routed": {"mean": 0.1}, "plan": plan})
        self.assertEqual(
            line,
            "pair p: large-only; model m=7; 10 % routed; at 16 requests 130 tokens/s routed, "
            "160 by the large model alone (predicted)",
        )

    def test_one_request_is_not_plural(self):
        plan = {"requests": 1, "routed_per_s": 25.0, "large_alone_per_s": 18.0}
        line = verb_status.describe_model(self.model | {"routed": {"mean": 0.1}, "plan": plan})
        self.assertIn("at 1 request 25 tokens/s", line)

    def test_does_without_a_plan(self):
        line = verb_status.describe_model(self.model | {"routed": {"mean": 0}})
        self.assertEqual(line, "pair p: large-only; model m=7; 0 % routed")


class RoutedAnswerTest(unittest.TestCase):
    def ask(self, status: int, body: str, authors: bool = True) -> tuple[str, object, dict]:
        handler = type("G", (Gateway,), {"status": status, "body": body.encode(), "requests": []})
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        plan = Plan([], {"gateway http": f"127.0.0.1:{server.server_port}"}, "pair-a")
        out = io.StringIO()
        answer = stream_answer(plan, "hello", 8, authors, Console(out=out))
        return out.getvalue(), answer, handler.requests[0]

    def events(self) -> str:
        usage = {"choices": [], "usage": {"routing": {"small_tokens": 2, "large_tokens": 1}}}
        entries = [chunk("de", "small"), chunk("f", "large"), chunk(" x", "small"), usage]
        return "".join(f"data: {json.dumps(entry)}\n\n" for entry in entries) + "data: [DONE]\n\n"

    def test_marks_the_large_models_tokens_and_counts_both(self):
        text, answer, request = self.ask(200, self.events())
        self.assertEqual(text, "de«f» x\n")
        self.assertEqual((answer.small_tokens, answer.large_tokens), (2, 1))
        self.assertEqual(request["routing"], {"algorithm": "entropy", "threshold": 0.45})
        self.assertEqual((request["model"], request["return_routing"]), ("pair-a", True))

    def test_without_authors_it_is_plain_text(self):
        self.assertEqual(self.ask(200, self.events(), authors=False)[0], "def x\n")

    def test_control_characters_do_not_reach_the_terminal(self):
        entry = json.dumps(chunk("a\x1b[2Jb", "small"))
        self.assertEqual(self.ask(200, f"data: {entry}\n\n")[0], "a\N{MIDDLE DOT}[2Jb\n")

    def test_says_what_the_gateway_refused(self):
        with self.assertRaisesRegex(Failure, "answered 400: max_tokens is too large"):
            self.ask(400, '{"error": {"message": "max_tokens is too large"}}')

    def test_says_what_failed_in_the_middle_of_a_stream(self):
        events = 'data: {"error": {"message": "no large worker"}}\n\n'
        with self.assertRaisesRegex(Failure, "no large worker"):
            self.ask(200, events)

    def test_a_gateway_that_is_not_there_is_a_failure(self):
        plan = Plan([], {"gateway http": "127.0.0.1:1"}, "m")
        with self.assertRaisesRegex(Failure, "127.0.0.1:1 does not answer"):
            stream_answer(plan, "hello", 8, False, Console(out=io.StringIO()))


class BuildTest(unittest.TestCase):
    def test_a_changed_definition_or_preset_configures_again(self):
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch)
            presets = folder / "CMakePresets.json"
            presets.write_text("{}")
            self.assertFalse(_is_configured(folder, presets, {}))
            (folder / "CMakeCache.txt").write_text("TOKENROUTER_HOME:PATH=/a\n")
            (folder / "build.ninja").write_text("")
            self.assertTrue(_is_configured(folder, presets, {"TOKENROUTER_HOME": "/a"}))
            self.assertFalse(_is_configured(folder, presets, {"TOKENROUTER_HOME": "/b"}))

    def run_steps(self, *lines: str) -> str:
        """What is said of a build whose ninja prints `lines`."""
        with tempfile.TemporaryDirectory() as scratch:
            ninja = Path(scratch) / "ninja"
            ninja.write_text("#!/bin/sh\n" + "".join(f"echo '{line}'\n" for line in lines))
            ninja.chmod(0o755)
            out = io.StringIO()
            with unittest.mock.patch.dict("os.environ", {"PATH": f"{scratch}:/usr/bin:/bin"}):
                run_ninja(Path(scratch), [], "release", Console(out))
            return out.getvalue()

    def test_nothing_is_said_of_a_build_without_work(self):
        looking = "[0/2] Re-checking globbed directories..."
        self.assertEqual(self.run_steps(looking, "ninja: no work to do."), "")
        self.assertIn("built release: 7 steps", self.run_steps(looking, "[7/7] Linking a"))

    def test_progress_names_files_without_their_folders(self):
        self.assertEqual(_short("Building CXX object a/b/c.cc.o"), "Building CXX object c.cc.o")


class CtestTest(unittest.TestCase):
    """Runs the real ctest on a folder with one test."""

    def run_ctest(self, command: str) -> dict[str, str]:
        closing: dict[str, str] = {}
        with tempfile.TemporaryDirectory() as scratch:
            places = Places(checkout=Path(scratch), home=Path(scratch))
            folder = places.build("release")
            folder.mkdir(parents=True)
            (folder / "CTestTestfile.cmake").write_text(f"add_test(one {command})\n")
            with contextlib.redirect_stdout(io.StringIO()):
                verb_test._ctest(places, "release", [], closing)
        return closing

    def test_keeps_the_closing_line(self):
        self.assertEqual(
            self.run_ctest("true"), {"release": "100% tests passed, 0 tests failed out of 1"}
        )

    def test_a_failed_test_fails_the_stage(self):
        with self.assertRaisesRegex(Failure, "0% tests passed, 1 tests failed out of 1"):
            self.run_ctest("false")


class TargetsTest(unittest.TestCase):
    def test_benchmarks_are_the_targets_of_their_folder(self):
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch) / "tests" / "bench"
            folder.mkdir(parents=True)
            text = "tr_binary(serve_bench SRCS x)\ntr_binary(text_bench SRCS y)\n"
            (folder / "CMakeLists.txt").write_text(text)
            places = Places(checkout=Path(scratch), home=Path(scratch))
            self.assertEqual(verb_bench.known_benches(places), ["serve", "text"])

    def test_only_the_engine_without_a_chosen_peer_wants_llama_cpp(self):
        self.assertTrue(verb_bench.wants_peer("engine", ["--part=decode"]))
        self.assertFalse(verb_bench.wants_peer("engine", ["--peer=none"]))
        self.assertFalse(verb_bench.wants_peer("serve", []))

    def test_fuzzers_are_the_declared_ones(self):
        self.assertEqual(
            full_test.fuzz_targets("function(tr_fuzz name)\ntr_fuzz(gguf_fuzz SRCS a)\n"),
            ["gguf_fuzz"],
        )
        with self.assertRaisesRegex(Failure, "declares no fuzzer"):
            full_test.fuzz_targets("")


class SimulateTest(unittest.TestCase):
    def test_flags_are_passed_on_as_the_program_takes_them(self):
        arguments = parse(verb_simulate.VERB, ["--n=1,4", "--set", "8b", "--json"])
        self.assertEqual(
            verb_simulate.program_flags(arguments), ["--n=1,4", "--set=8b", "--json=true"]
        )


class TinyTokenizerTest(unittest.TestCase):
    def test_spells_every_byte_by_one_character_of_its_own(self):
        characters = spelling()
        self.assertEqual(len(set(characters)), 256)
        self.assertEqual(characters[ord("a")], "a")
        self.assertEqual(characters[ord(" ")], "\u0120")  # as in every byte-level vocabulary

    def test_writes_a_folder_of_three_files(self):
        with tempfile.TemporaryDirectory() as scratch:
            write_tokenizer(Path(scratch))
            entry = json.loads((Path(scratch) / "tokenizer.json").read_text())
            self.assertEqual(len(entry["model"]["vocab"]), 256)
            self.assertEqual([mark["id"] for mark in entry["added_tokens"]], [256, 257, 258])


if __name__ == "__main__":
    unittest.main()
