"""Stands in for one of the four binaries: takes their flags, serves /readyz on its admin port, can
misbehave.

usage: fake_process.py --admin=HOST:PORT [--ready_after=S] [--exit_after=S --exit_code=N]
       [--ignore_sigterm=1]
"""

import http.server
import json
import os
import signal
import sys
import threading
import time


def flags() -> dict[str, str]:
    pairs = (word.removeprefix("--").partition("=") for word in sys.argv[1:])
    return {name: value for name, _, value in pairs}


def answer_chat() -> bytes:
    """Two tokens, the second by the large model."""
    events = []
    for text, author in (("def", "small"), (" f", "large")):
        tokens = [{"id": 1, "text": text, "author": author, "entropy": 0.1}]
        events.append({"choices": [{"delta": {"content": text}, "routing": {"tokens": tokens}}]})
    events.append({"choices": [], "usage": {"routing": {"small_tokens": 1, "large_tokens": 1}}})
    lines = [json.dumps(event) for event in events] + ["[DONE]"]
    return "".join(f"data: {line}\n\n" for line in lines).encode()


class Handler(http.server.BaseHTTPRequestHandler):
    ready_at = 0.0

    def do_GET(self):
        ready = time.monotonic() >= self.ready_at
        body = b"ok\n" if ready else b"loading 42 %\n"
        self.send_response(200 if ready else 503)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        body = answer_chat()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def main() -> None:
    given = flags()
    if given.get("ignore_sigterm"):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    else:
        signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    print(f"fake process says hello, session {os.getsid(0)}", flush=True)
    if "exit_after" in given:
        code = int(given["exit_code"])
        threading.Timer(
            float(given["exit_after"]),
            lambda: (print("the disk is on fire", flush=True), os._exit(code)),
        ).start()
    Handler.ready_at = time.monotonic() + float(given.get("ready_after", 0))
    for name in ("http", "admin"):
        if name in given:
            host, _, port = given[name].partition(":")
            server = http.server.ThreadingHTTPServer((host, int(port)), Handler)
            threading.Thread(target=server.serve_forever).start()


if __name__ == "__main__":
    main()
