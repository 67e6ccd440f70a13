import tempfile
import unittest
from pathlib import Path

from failure import Failure, UsageError
from launch_settings import LaunchSettings, read_config
from places import Places
from process_names import PROCESSES, STOP_ORDER
from process_plan import (
    EngineChoice,
    Plan,
    default_threads,
    make_plan,
    models_needed,
    read_plan,
    split_address,
    tiny_tokenizer_path,
    write_plan,
)
from versions import read_versions

LOCK = Path(__file__).resolve().parents[3] / "tools" / "versions.lock"
PLACES = Places(checkout=Path("/checkout"), home=Path("/home"))


def plan(file=None, environment=None, engine=EngineChoice(), offset=0, config=None) -> Plan:
    settings = LaunchSettings(file or {}, environment or {})
    return make_plan(PLACES, read_versions(LOCK), settings, engine, offset, config)


def flags(made: Plan, name: str) -> dict[str, str]:
    process = next(process for process in made.processes if process.name == name)
    pairs = (word.removeprefix("--").partition("=") for word in process.argv[1:])
    return {key: value for key, _, value in pairs}


class ProcessPlanTest(unittest.TestCase):
    def test_default_command_lines(self):
        made = plan()
        self.assertEqual([process.name for process in made.processes], list(PROCESSES))
        self.assertEqual(
            flags(made, "scheduler"), {"listen": "127.0.0.1:8002", "admin": "127.0.0.1:9101"}
        )
        self.assertEqual(
            flags(made, "small_worker"),
            {
                "admin": "127.0.0.1:9102",
                "scheduler": "127.0.0.1:8002",
                "pair": "default",
                "engine": "torch",
                "threads": default_threads(),
                "weight_cache": "/home/packed",
                "device_key": "cpu",
                "model": "/home/models/qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
            },
        )
        self.assertEqual(
            flags(made, "gateway"),
            {
                "http": "127.0.0.1:8000",
                "grpc": "127.0.0.1:8001",
                "admin": "127.0.0.1:9100",
                "scheduler": "127.0.0.1:8002",
                "pair": "default",
                "model_name": "tokenrouter",
                "tokenizer": "/home/models/qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
            },
        )
        self.assertEqual(made.processes[0].argv[0], "/checkout/build/release/bin/scheduler")

    def test_both_workers_share_one_device_key(self):
        made = plan()
        self.assertEqual(
            flags(made, "small_worker")["device_key"], flags(made, "large_worker")["device_key"]
        )

    def test_an_offset_shifts_every_port(self):
        before, after = plan(), plan(offset=100)
        for name in before.addresses:
            self.assertEqual(after.port(name), before.port(name) + 100)
        self.assertEqual(flags(after, "gateway")["scheduler"], "127.0.0.1:8102")

    def test_the_environment_beats_the_file_and_the_file_beats_defaults(self):
        file = {
            "pair": "common",
            "small_worker": {"threads": 3, "pair": "own"},
            "large_worker": {"threads": 4},
            "scheduler": {"listen": "0.0.0.0:7000"},
        }
        made = plan(file=file, config="/c.toml")
        self.assertEqual(flags(made, "small_worker")["threads"], "3")
        self.assertEqual(flags(made, "large_worker")["threads"], "4")
        self.assertEqual(flags(made, "small_worker")["pair"], "own")
        self.assertEqual(flags(made, "large_worker")["pair"], "common")
        self.assertEqual(flags(made, "scheduler")["config"], "/c.toml")
        self.assertEqual(made.port("scheduler listen"), 7000)
        made = plan(file=file, environment={"TOKENROUTER_THREADS": "8"})
        self.assertEqual(flags(made, "large_worker")["threads"], "8")

    def test_the_timed_engine_gets_its_curve_and_no_device_key(self):
        made = plan(engine=EngineChoice(timed="h200"))
        worker = flags(made, "large_worker")
        self.assertEqual((worker["engine"], worker["timed_curve"]), ("timed", "h200"))
        self.assertNotIn("device_key", worker)
        self.assertNotIn("model", worker)
        self.assertEqual(models_needed(made, PLACES, read_versions(LOCK)), ())

    def test_timed_workers_and_gateway_share_the_tiny_tokenizer(self):
        made = plan(engine=EngineChoice(timed="h200"))
        paths = {
            flags(made, name)["tokenizer"] for name in ("small_worker", "large_worker", "gateway")
        }
        self.assertEqual(paths, {str(tiny_tokenizer_path(PLACES))})

    def test_models_that_a_config_replaces_are_not_needed(self):
        versions = read_versions(LOCK)
        self.assertEqual(models_needed(plan(), PLACES, versions), ("small", "large"))
        other = plan(file={"large_worker": {"model": "/other.gguf"}})
        self.assertEqual(models_needed(other, PLACES, versions), ("small",))

    def test_is_read_as_written(self):
        with tempfile.TemporaryDirectory() as folder:
            write_plan(Path(folder), plan())
            self.assertEqual(read_plan(Path(folder)), plan())

    def test_without_a_start_there_is_no_plan(self):
        with tempfile.TemporaryDirectory() as folder, self.assertRaisesRegex(
            Failure, "./tokenrouter up"
        ):
            read_plan(Path(folder))

    def test_addresses_are_checked(self):
        self.assertEqual(split_address("x", "0.0.0.0:80"), ("127.0.0.1", 80))
        self.assertEqual(split_address("x", "[::1]:80"), ("[::1]", 80))
        for bad in ("80x", "host:", "host:0", "host:70000", "host:x"):
            with self.assertRaises(UsageError):
                split_address("x", bad)

    def test_every_process_has_its_turn_to_stop(self):
        self.assertEqual(sorted(STOP_ORDER), sorted(PROCESSES))


class ReadConfigTest(unittest.TestCase):
    def read(self, text: str) -> dict:
        with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
            file.write(text)
            file.flush()
            return read_config(file.name)

    def test_reads_common_keys_and_sections(self):
        self.assertEqual(
            self.read("pair = 'a'\n[gateway]\nhttp = '127.0.0.1:1'\n"),
            {"pair": "a", "gateway": {"http": "127.0.0.1:1"}},
        )

    def test_names_what_is_wrong(self):
        for text, expected in (
            ("[gatewya]\n", r"\[gatewya\] is no process"),
            ("a = \n", "not TOML"),
        ):
            with self.assertRaisesRegex(UsageError, expected):
                self.read(text)
        with self.assertRaisesRegex(UsageError, "No such file"):
            read_config("/no/such/file")


if __name__ == "__main__":
    unittest.main()
