"""Writes a byte-level tokenizer of 256 tokens and three marks, for engines that only keep time.

`up --timed` then needs no model file at all. The files are those of a Hugging Face folder.
"""

import json
from pathlib import Path

MARKS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
TEMPLATE = (
    "{%- for message in messages %}\n"
    "{{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}\n"
    "{%- endfor %}\n"
    "{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}"
)


def spelling() -> list[str]:
    """The character that spells each byte in a byte-level vocabulary: itself when it prints, else
    from U+0100 on.
    """
    printing = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    characters, spare = [], 256
    for byte in range(256):
        characters.append(chr(byte) if byte in printing else chr(spare))
        spare += byte not in printing
    return characters


def write_tokenizer(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    byte_level = {
        "type": "ByteLevel",
        "add_prefix_space": False,
        "trim_offsets": False,
        "use_regex": False,
    }
    vocabulary = {character: byte for byte, character in enumerate(spelling())}
    added = [
        {
            "id": 256 + n,
            "content": mark,
            "single_word": False,
            "lstrip": False,
            "rstrip": False,
            "normalized": False,
            "special": True,
        }
        for n, mark in enumerate(MARKS)
    ]
    _write(
        folder / "tokenizer.json",
        {
            "version": "1.0",
            "truncation": None,
            "padding": None,
            "added_tokens": added,
            "normalizer": None,
            "pre_tokenizer": byte_level,
            "post_processor": None,
            "decoder": byte_level,
            "model": {"type": "BPE", "vocab": vocabulary, "merges": []},
        },
    )
    _write(
        folder / "tokenizer_config.json",
        {"bos_token": None, "eos_token": {"content": "<|im_end|>"}, "chat_template": TEMPLATE},
    )
    _write(folder / "generation_config.json", {"eos_token_id": [256 + MARKS.index("<|im_end|>")]})


def _write(path: Path, entry: dict) -> None:
    path.write_text(json.dumps(entry, ensure_ascii=False))
