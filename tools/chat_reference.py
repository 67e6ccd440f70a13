#!/usr/bin/env python3
"""Renders the chat templates of GGUF files with Jinja2 itself, to check libs/text against.

chat_reference.py MODEL.gguf ... > chat.golden    one JSON object a line
"""

import json
import pathlib
import sys

from jinja2.ext import loopcontrols  # pip install jinja2
from jinja2.sandbox import ImmutableSandboxedEnvironment

from bpe_reference import read_metadata

WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Looks up the <weather> & more",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
            "required": ["city"],
        },
    },
}
CALL = {
    "type": "function",
    "function": {"name": "get_weather", "arguments": {"city": "Zürich", "days": 2}},
}
CASES = [
    ([{"role": "user", "content": "Hello"}], None, True),
    ([{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi."}], None, False),
    (
        [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Hi"},
            {"role": "assistant", "content": "Yes?"},
            {"role": "user", "content": "Go\n 佛 🙂"},
        ],
        None,
        True,
    ),
    (
        [
            {"role": "user", "content": "Weather in Zürich?"},
            {"role": "assistant", "content": "", "tool_calls": [CALL]},
            {"role": "tool", "content": '{"t": 21.5}'},
            {"role": "tool", "content": "sun <&>"},
        ],
        [WEATHER],
        True,
    ),
]


def to_json(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(
        value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys
    )


def main():
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols]
    )
    environment.filters["tojson"] = to_json
    for path in sys.argv[1:]:
        template = environment.from_string(read_metadata(path)["tokenizer.chat_template"])
        for messages, tools, prompt in CASES:
            text = template.render(messages=messages, tools=tools, add_generation_prompt=prompt)
            print(
                json.dumps(
                    {
                        "model": pathlib.Path(path).name,
                        "messages": json.dumps(messages),
                        "tools": json.dumps(tools) if tools else "",
                        "add_generation_prompt": prompt,
                        "text": text,
                    },
                    ensure_ascii=False,
                )
            )


if __name__ == "__main__":
    main()
