"""Streams one chat completion from the gateway and shows the author of each token."""

import http.client
import json
import re
from dataclasses import dataclass

from console import LARGE_COLOUR, SMALL_COLOUR, Console
from failure import Failure
from process_plan import Plan, split_address

CONNECT_TIMEOUT_S = 5.0
TOKEN_TIMEOUT_S = 120.0  # a long prompt on a slow machine is prefilled before the first token
# All but tab and line feed.
CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
ROUTING = {"algorithm": "entropy", "threshold": 0.45}


@dataclass
class Answer:
    small_tokens: int = 0
    large_tokens: int = 0
    finish_reason: str = ""


def stream_answer(
    plan: Plan, prompt: str, max_tokens: int, authors: bool, console: Console
) -> Answer:
    """Writes the answer as it comes; with `authors` each token is marked by its author."""
    request = {
        "model": plan.model_name,
        "stream": True,
        "stream_options": {"include_usage": True},
        "max_tokens": max_tokens,
        "temperature": 0,
        "messages": [{"role": "user", "content": prompt}],
        "routing": ROUTING,
        "return_routing": True,
    }
    answer = Answer()
    for event in _events(plan, request):
        _take_event(event, answer, authors, console)
    console.write("\n")
    return answer


def legend(console: Console) -> str:
    if not console.colours:
        return "tokens of the large model stand between « and »"
    return (
        f"{console.paint('small model', SMALL_COLOUR)} {console.paint('large model', LARGE_COLOUR)}"
    )


def authors_line(answer: Answer) -> str:
    return (
        f"{answer.small_tokens} tokens by the small model, {answer.large_tokens} by the large one"
    )


def mark(text: str, author: str, console: Console) -> str:
    if console.colours:
        return console.paint(text, LARGE_COLOUR if author == "large" else SMALL_COLOUR)
    return f"«{text}»" if author == "large" else text


def printable(text: str) -> str:
    """Control characters would drive the terminal; each is shown as one mark."""
    return CONTROLS.sub("\N{MIDDLE DOT}", text)


def _marked(tokens: list[dict], console: Console) -> str:
    return "".join(mark(printable(token["text"]), token["author"], console) for token in tokens)


def _take_event(event: dict, answer: Answer, authors: bool, console: Console) -> None:
    if "error" in event:
        raise Failure(f"the gateway says: {event['error'].get('message', event['error'])}")
    for choice in event.get("choices", []):
        tokens = (choice.get("routing") or {}).get("tokens", [])
        content = (choice.get("delta") or {}).get("content") or ""
        if authors and tokens:
            console.write(_marked(tokens, console))
        elif content:
            console.write(printable(content))
        answer.finish_reason = choice.get("finish_reason") or answer.finish_reason
    routing = (event.get("usage") or {}).get("routing") or {}
    answer.small_tokens = routing.get("small_tokens", answer.small_tokens)
    answer.large_tokens = routing.get("large_tokens", answer.large_tokens)


def _events(plan: Plan, request: dict):
    host, port = split_address("http", plan.addresses["gateway http"])
    connection = http.client.HTTPConnection(host.strip("[]"), port, timeout=CONNECT_TIMEOUT_S)
    try:
        connection.connect()
        connection.sock.settimeout(TOKEN_TIMEOUT_S)
        connection.request(
            "POST",
            "/v1/chat/completions",
            json.dumps(request),
            {"Content-Type": "application/json", "Accept": "text/event-stream"},
        )
        response = connection.getresponse()
        if response.status != 200:
            raise Failure(
                f"the gateway answered {response.status}: {_error_message(response.read())}"
            )
        for line in response:
            data = line.decode().strip()
            if data.startswith("data:") and data != "data: [DONE]":
                yield json.loads(data.removeprefix("data:"))
    except (OSError, http.client.HTTPException) as error:
        raise Failure(
            f"the gateway on {host}:{port} does not answer ({error}); is it running? "
            "./tokenrouter status"
        ) from error
    finally:
        connection.close()


def _error_message(body: bytes) -> str:
    try:
        return json.loads(body)["error"]["message"]
    except (ValueError, KeyError, TypeError):
        return body.decode(errors="replace")[:400]
