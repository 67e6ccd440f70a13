import tempfile
import unittest
from pathlib import Path

from flag_check import flag_findings


def deployment(*arguments: str, program: str = "scheduler") -> dict:
    container = {"command": [f"/opt/tokenrouter/bin/{program}"], "args": list(arguments)}
    spec = {"template": {"spec": {"containers": [container]}}}
    return {"kind": "Deployment", "metadata": {"name": "d"}, "spec": spec}


class FlagCheckTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.binaries = Path(folder.name)
        program = self.binaries / "scheduler"
        program.write_text("#!/bin/sh\necho '  --listen TEXT  address'\necho '  --pair TEXT'\n")
        program.chmod(0o755)

    def test_accepts_flags_of_the_help(self):
        self.assertEqual(flag_findings([deployment("--listen=0.0.0.0:1")], self.binaries), [])

    def test_names_an_unknown_flag_and_a_missing_program(self):
        self.assertIn(
            "scheduler has no flag --lsten",
            flag_findings([deployment("--lsten=1")], self.binaries)[0],
        )
        self.assertIn("no program", flag_findings([deployment(program="x")], self.binaries)[0])

    def test_names_an_environment_variable_that_no_program_reads(self):
        data = {"TOKENROUTER_PAIR": "a", "TOKENROUTER_PIAR": "b", "OTHER": "c"}
        config = {"kind": "ConfigMap", "metadata": {"name": "c"}, "data": data}
        self.assertEqual(
            flag_findings([deployment(), config], self.binaries),
            ["ConfigMap/c: no program has a flag for TOKENROUTER_PIAR"],
        )


if __name__ == "__main__":
    unittest.main()
