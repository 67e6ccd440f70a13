"""Plants one change at a time in a copy of proto/; the check must name each that breaks it."""

import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2] / "launcher"))

from contract_check import Buf, baseline_of, findings_of
from places import find_places

TOOL = Path(__file__).resolve().parents[1] / "contract"
PROTOS = Path(__file__).resolve().parents[3] / "proto"
GENERATION = "tokenrouter/generation/v1/generation.proto"
TYPES = "tokenrouter/generation/v1/types.proto"
WORKER = "tokenrouter/internal/v1/worker.proto"
REQUEST = "tokenrouter/internal/v1/request.proto"
SCHEDULER = "tokenrouter/internal/v1/scheduler.proto"

# (file, text that must be there, its replacement, what the check must say)
BREAKING = (
    (
        GENERATION,
        "  bool ignore_eos = 11;\n",
        "",
        '"ignore_eos" on message "GenerateRequest" was deleted',
    ),
    (
        GENERATION,
        "  bool ignore_eos = 11;\n",
        "  reserved 11;\n",
        '"ignore_eos" on message "GenerateRequest" was deleted',
    ),
    (GENERATION, "bool degraded = 6;", "string note = 6;", 'Field "6" with name "note"'),
    (GENERATION, "int32 ttft_slo_ms = 16;", "int64 ttft_slo_ms = 16;", 'from "int32" to "int64"'),
    (GENERATION, "int32 large_tokens = 4;", "int32 tokens_of_large = 4;", "changed name"),
    (
        GENERATION,
        "rpc ListModels(",
        "rpc Models(",
        'RPC "ListModels" on service "Generation" was deleted',
    ),
    (GENERATION, "(stream GenerateReply)", "(GenerateReply)", "server streaming"),
    (TYPES, "  ROLE_LARGE = 2;\n", "", 'enum value "2" on enum "Role" was deleted'),
    (TYPES, "ROLE_LARGE = 2;", "ROLE_BIG = 2;", 'changed name from "ROLE_LARGE"'),
    (WORKER, "  bool draining = 9; ", "", '"draining" on message "WorkerFrame" was deleted'),
    (
        WORKER,
        "bool draining = 9;",
        "bool draining = 10;",
        '"draining" on message "WorkerFrame" was deleted',
    ),
    (WORKER, "bool drain = 10;", "string drain = 10;", 'from "bool" to "string"'),
    (
        WORKER,
        "uint64 seq = 1;\n  int32 rows",
        "int64 seq = 1;\n  int32 rows",
        'from "uint64" to "int64"',
    ),
    (WORKER, "repeated Open opens = 3;", "Open opens = 3;", "cardinality"),
    (REQUEST, "    KIND_OWN_RULE = 4;\n", "", 'enum value "4" on enum "Kind" was deleted'),
    (
        SCHEDULER,
        "rpc Attach(stream WorkerFrame)",
        "rpc Attach(stream GatewayFrame)",
        "request type",
    ),
)

# Allowed changes: additions everywhere, and between our own processes other names and fields that go.
ALLOWED = (
    (GENERATION, "bool ignore_eos = 11;", "bool ignore_eos = 11;\n  bool added = 18;"),
    (TYPES, "ROLE_LARGE = 2;", "ROLE_LARGE = 2;\n  ROLE_THIRD = 3;"),
    (WORKER, "bool draining = 9;", "bool leaving = 9;"),
    (WORKER, "bool draining = 9;", "bool draining = 9;\n  int32 added = 10;"),
    (WORKER, "  bool draining = 9; ", "  reserved 9; "),
)


class ContractTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = Path(scratch.name) / "proto"
        shutil.copytree(PROTOS, self.folder)
        self.buf = Buf(find_places().buf / "buf")

    def plant(self, file: str, old: str, new: str) -> None:
        shutil.copy(PROTOS / file, self.folder / file)
        text = (self.folder / file).read_text()
        self.assertEqual(text.count(old), 1, old)
        (self.folder / file).write_text(text.replace(old, new))

    def tool(self, verb: str) -> subprocess.CompletedProcess:
        return subprocess.run(
            [str(TOOL), verb, str(self.folder)], capture_output=True, text=True, check=False
        )

    def check(self, file: str, old: str, new: str) -> str:
        self.plant(file, old, new)
        findings = "\n".join(findings_of(self.buf, self.folder))
        shutil.copy(PROTOS / file, self.folder / file)
        return findings

    def test_names_every_broken_promise(self):
        for file, old, new, expected in BREAKING:
            with self.subTest(file=file, new=new):
                self.assertIn(expected, self.check(file, old, new))

    def test_accepts_additions_and_names_between_our_processes(self):
        for file, old, new in ALLOWED:
            with self.subTest(file=file, new=new):
                self.assertEqual(self.check(file, old, new), "")

    def test_names_a_package_that_is_not_its_folder(self):
        found = self.check(
            GENERATION,
            "package tokenrouter.generation.v1;",
            "package tokenrouter.generation.v1.api;",
        )
        self.assertIn("must be within a directory", found)

    def test_the_program_fails_on_a_finding_and_keeps_the_released_contract(self):
        self.plant(GENERATION, "  bool ignore_eos = 11;\n", "")
        released = baseline_of(self.folder).read_bytes()
        for verb in ("check", "release"):
            with self.subTest(verb=verb):
                done = self.tool(verb)
                self.assertEqual(done.returncode, 1, done.stderr)
                self.assertIn("ignore_eos", done.stdout)
        self.assertEqual(baseline_of(self.folder).read_bytes(), released)

    def test_a_released_addition_is_a_promise_from_then_on(self):
        self.plant(WORKER, "bool draining = 9;", "bool draining = 9;\n  int32 added = 10;")
        self.assertEqual(self.tool("release").returncode, 0)
        shutil.copy(PROTOS / WORKER, self.folder / WORKER)
        found = "\n".join(findings_of(self.buf, self.folder))
        self.assertIn('field "10" with name "added" on message "WorkerFrame" was deleted', found)

    def test_a_missing_baseline_is_an_error_and_not_a_pass(self):
        baseline_of(self.folder).unlink()
        done = self.tool("check")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("released.binpb is missing", done.stderr)


if __name__ == "__main__":
    unittest.main()
