"""The openai Python SDK, unmodified, against the four real binaries on timed engines.

    openai_sdk_test.py BIN_FOLDER VERSIONS_LOCK

The SDK's version is [python] openai of versions.lock; it is installed once, into
TOKENROUTER_HOME/python. Exit code 77 (ctest: skipped) says that the package cannot be had, and why.
"""

import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import tomllib
import unittest
import urllib.request
from pathlib import Path

SKIPPED = 77
INSTALL_LIMIT_S = 120
START_LIMIT_S = 30
MESSAGES = [{"role": "user", "content": "hi"}]


def install_sdk(lock: Path) -> Path:
    version = tomllib.loads(lock.read_text())["python"]["openai"]
    home = Path(os.environ.get("TOKENROUTER_HOME", Path.home() / ".cache" / "tokenrouter"))
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    folder = home / "python" / f"openai-{version}-py{python}"
    if folder.exists():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    unpacked = Path(tempfile.mkdtemp(dir=folder.parent))
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
               "--target", str(unpacked), f"openai=={version}"]
    try:
        subprocess.run(command, check=True, capture_output=True, text=True, timeout=INSTALL_LIMIT_S)
    except (subprocess.SubprocessError, OSError) as error:
        shutil.rmtree(unpacked, ignore_errors=True)
        print(f"SKIPPED: openai {version} cannot be had: {getattr(error, 'stderr', '') or error}")
        sys.exit(SKIPPED)
    try:
        unpacked.rename(folder)  # When another run was faster, its copy serves both.
    except OSError:
        shutil.rmtree(unpacked, ignore_errors=True)
    return folder


class Process:
    """One binary; its log lines are JSON on stderr."""

    def __init__(self, program: Path, *flags: str):
        self.name = program.name
        self.events: list[dict] = []
        self.changed = threading.Condition()
        self.process = subprocess.Popen([str(program), *flags], stderr=subprocess.PIPE, text=True)
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.process.stderr:
            with self.changed:
                self.events.append(json.loads(line) if line.startswith("{") else {"text": line})
                self.changed.notify_all()

    def wait_for(self, event: str, **fields) -> dict:
        def find():
            wanted = {"event": event, **fields}
            return next((e for e in self.events if wanted.items() <= e.items()), None)

        with self.changed:
            if not self.changed.wait_for(find, START_LIMIT_S):
                raise RuntimeError(f"{self.name} never logged {event} {fields}: {self.events}")
            return find()

    def port(self, name: str) -> int:
        return self.wait_for("listening", name=name)["port"]

    def stop(self):
        self.process.terminate()
        self.process.wait(START_LIMIT_S)


class OpenAiSdkTest(unittest.TestCase):
    binaries: Path

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp()
        cls.processes = []
        model = f"{cls.folder}/model"
        writer = cls.binaries / "write_tiny_model"
        subprocess.run([writer, model, "llama", "1", "small"], check=True)
        scheduler = cls.start("scheduler", "--listen=127.0.0.1:0", "--service_mode=routed")
        target = f"--scheduler=127.0.0.1:{scheduler.port('grpc')}"
        for role in ("small_worker", "large_worker"):
            cls.start(role, target, "--engine=timed", "--timed_curve=fast", f"--tokenizer={model}")
        gateway = cls.start("gateway", target, "--http=127.0.0.1:0", "--grpc=127.0.0.1:0",
                            f"--tokenizer={model}")
        cls.port = gateway.port("http")
        cls.admin = gateway.port("admin")
        cls.wait_until(lambda: cls.get(cls.port, "/health") == 200)
        options = {"base_url": f"http://127.0.0.1:{cls.port}/v1", "api_key": "unused",
                   "max_retries": 0, "timeout": 60}
        cls.client = openai.OpenAI(**options)
        cls.async_options = options

    @classmethod
    def tearDownClass(cls):
        cls.client.close()
        for process in reversed(cls.processes):
            process.stop()
        shutil.rmtree(cls.folder)

    @classmethod
    def start(cls, name: str, *flags: str) -> Process:
        cls.processes.append(Process(cls.binaries / name, "--admin=127.0.0.1:0", *flags))
        return cls.processes[-1]

    @staticmethod
    def get(port: int, path: str) -> int:
        try:
            return urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10).status
        except OSError:
            return 0

    @staticmethod
    def wait_until(condition):
        deadline = time.monotonic() + START_LIMIT_S
        while not condition():
            if time.monotonic() > deadline:
                raise RuntimeError("waited too long")
            time.sleep(0.02)

    @classmethod
    def metric(cls, name: str) -> float:
        url = f"http://127.0.0.1:{cls.admin}/metrics"
        text = urllib.request.urlopen(url, timeout=10).read().decode()
        lines = (line for line in text.splitlines() if line.startswith(name))
        return sum(float(line.rsplit(" ", 1)[1]) for line in lines)

    def chat(self, **fields):
        return self.client.chat.completions.create(
            model="tokenrouter", messages=MESSAGES, **{"max_tokens": 12, "seed": 7, **fields})

    def test_a_whole_reply_and_a_stream_say_the_same(self):
        whole = self.chat()
        self.assertEqual(whole.choices[0].finish_reason, "length")
        self.assertEqual(whole.usage.completion_tokens, 12)
        self.assertTrue(whole.system_fingerprint)
        chunks = list(self.chat(stream=True, stream_options={"include_usage": True}))
        text = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
        self.assertEqual(text, whole.choices[0].message.content)
        self.assertEqual(chunks[-1].usage.completion_tokens, 12)
        self.assertEqual(chunks[0].choices[0].delta.role, "assistant")

    def test_routing_is_asked_for_and_shown(self):
        reply = self.chat(max_tokens=60, extra_body={
            "routing": {"algorithm": "random", "p": 0.5}, "return_routing": True})
        tokens = reply.choices[0].routing["tokens"]
        large = sum(token["author"] == "large" for token in tokens)
        self.assertEqual(len(tokens), 60)
        self.assertEqual(reply.usage.routing["large_tokens"], large)
        self.assertTrue(10 <= large <= 50, large)

    def test_logprobs_have_the_shape_the_sdk_expects(self):
        content = self.chat(logprobs=True).choices[0].logprobs.content
        self.assertEqual(len(content), 12)
        self.assertTrue(all(token.logprob <= 0 and token.bytes for token in content))

    def test_completions_of_text_and_ids(self):
        def complete(prompt):
            return self.client.completions.create(model="tokenrouter", prompt=prompt, max_tokens=4,
                                                  seed=1)

        text, ids = complete("abc"), complete([97, 98, 99])
        self.assertEqual(text.choices[0].text, ids.choices[0].text)
        self.assertEqual(text.usage.prompt_tokens, 3)

    def test_choices_differ_and_the_first_is_the_answer_alone(self):
        sampled = {"temperature": 1, "max_tokens": 20}
        alone = self.chat(**sampled).choices[0].message.content
        whole = self.chat(n=3, logprobs=True, **sampled)
        self.assertEqual([choice.index for choice in whole.choices], [0, 1, 2])
        texts = [choice.message.content for choice in whole.choices]
        self.assertEqual(texts[0], alone)
        self.assertEqual(len(set(texts)), 3)
        self.assertEqual({choice.finish_reason for choice in whole.choices}, {"length"})
        self.assertEqual([len(c.logprobs.content) for c in whole.choices], [20, 20, 20])
        self.assertEqual(whole.usage.completion_tokens, 60)
        self.assertEqual(whole.usage.prompt_tokens, self.chat().usage.prompt_tokens)

        chunks = list(self.chat(n=3, stream=True, stream_options={"include_usage": True}, **sampled))
        self.assertEqual(chunks[-1].usage, whole.usage)
        streamed, ends, roles = ["", "", ""], [0, 0, 0], [0, 0, 0]
        for choice in (choice for chunk in chunks for choice in chunk.choices):
            streamed[choice.index] += choice.delta.content or ""
            ends[choice.index] += choice.finish_reason == "length"
            roles[choice.index] += choice.delta.role == "assistant"
        self.assertEqual(streamed, texts)
        self.assertEqual((ends, roles), ([1, 1, 1], [1, 1, 1]))

        greedy = self.chat(n=2, temperature=0).choices
        self.assertEqual(greedy[0].message.content, greedy[1].message.content)

    def test_choices_of_completions(self):
        reply = self.client.completions.create(model="tokenrouter", prompt="abc", max_tokens=8, n=3,
                                               seed=1)
        self.assertEqual([choice.index for choice in reply.choices], [0, 1, 2])
        self.assertEqual((reply.usage.prompt_tokens, reply.usage.completion_tokens), (3, 24))

    def test_models(self):
        self.assertEqual([model.id for model in self.client.models.list()], ["tokenrouter"])
        self.assertEqual(self.client.models.retrieve("tokenrouter").id, "tokenrouter")

    def test_errors_become_the_sdks_own(self):
        with self.assertRaises(openai.NotFoundError) as unknown:
            self.client.chat.completions.create(model="gpt-x", messages=MESSAGES)
        self.assertEqual(unknown.exception.code, "model_not_found")
        with self.assertRaises(openai.BadRequestError) as bad:
            self.chat(temperature=9)
        self.assertEqual(bad.exception.param, "temperature")
        with self.assertRaises(openai.BadRequestError) as many:
            self.chat(n=17)
        self.assertEqual(many.exception.param, "n")
        with self.assertRaises(openai.BadRequestError) as long:
            self.chat(max_tokens=10**6)
        self.assertEqual(long.exception.code, "context_length_exceeded")

    def test_request_ids_are_echoed(self):
        raw = self.client.chat.completions.with_raw_response.create(
            model="tokenrouter", messages=MESSAGES, max_tokens=2,
            extra_headers={"X-Request-Id": "me-1"})
        self.assertEqual(raw.headers["x-request-id"], "me-1")
        self.assertEqual(raw.parse().id, "chatcmpl-me-1")

    def test_closing_a_stream_cancels_all_choices(self):
        stream = self.chat(max_tokens=20000, stream=True, n=3)
        next(iter(stream))
        stream.close()
        self.wait_until(lambda: self.metric("tokenrouter_gateway_requests_in_flight") == 0)
        self.assertEqual(self.metric("tokenrouter_gateway_cancelled_total"), 3)

    def test_many_async_streams_at_once(self):
        async def one(client, seed):
            stream = await client.chat.completions.create(
                model="tokenrouter", messages=MESSAGES, max_tokens=30, seed=seed, stream=True)
            return "".join([c.choices[0].delta.content or "" async for c in stream if c.choices])

        async def run():
            async with openai.AsyncOpenAI(**self.async_options) as client:
                return await asyncio.gather(*(one(client, seed % 4) for seed in range(16)))

        texts = asyncio.run(run())
        for seed in range(4):
            self.assertEqual(len(set(texts[seed::4])), 1, "the same seed alone and among 16")


if __name__ == "__main__":
    OpenAiSdkTest.binaries = Path(sys.argv[1]).resolve()
    sys.path.insert(0, str(install_sdk(Path(sys.argv[2]))))
    import openai

    unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=2)
