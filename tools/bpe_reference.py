#!/usr/bin/env python3
"""Byte-level BPE written a second time, to check libs/text against: makes golden ids.

It shares no code with the tokenizers crate: plain merging by rank, the `regex` package for cutting.
  bpe_reference.py MODEL.gguf TEXTS > GOLDEN    TEXTS: one JSON string a line; GOLDEN: text TAB ids
"""

import json
import struct
import sys
import unicodedata

import regex  # pip install regex

GPT2 = (
    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\p{White_Space}\p{L}\p{N}]+"
    r"|\p{White_Space}+(?!\P{White_Space})|\p{White_Space}+"
)
QWEN2 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}"
    r"| ?[^\p{White_Space}\p{L}\p{N}]+[\r\n]*|\p{White_Space}*[\r\n]+"
    r"|\p{White_Space}+(?!\P{White_Space})|\p{White_Space}+"
)
CUTS = {"smollm": [r"\p{N}", GPT2], "qwen2": [QWEN2]}
COMPOSES = {"qwen2"}
SCALARS = {
    0: "B",
    1: "b",
    2: "H",
    3: "h",
    4: "I",
    5: "i",
    6: "f",
    7: "?",
    10: "Q",
    11: "q",
    12: "d",
}
CONTROL, USER_DEFINED = 3, 4


def read_metadata(path):
    with open(path, "rb") as file:

        def number(code):
            return struct.unpack("<" + code, file.read(struct.calcsize("<" + code)))[0]

        def text():
            return file.read(number("Q")).decode("utf-8")

        def value(kind):
            if kind == 8:
                return text()
            if kind == 9:
                item, count = number("I"), number("Q")
                return [value(item) for _ in range(count)]
            return number(SCALARS[kind])

        assert file.read(4) == b"GGUF", path
        number("I"), number("Q")
        pairs = number("Q")
        return {text(): value(number("I")) for _ in range(pairs)}


def byte_spelling():
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [b for b in range(256) if b not in printable]
    return {**{b: chr(b) for b in printable}, **{b: chr(256 + i) for i, b in enumerate(others)}}


class Bpe:
    def __init__(self, metadata):
        self.pre = metadata["tokenizer.ggml.pre"]
        tokens, types = metadata["tokenizer.ggml.tokens"], metadata["tokenizer.ggml.token_type"]
        self.ids = {token: i for i, token in enumerate(tokens)}
        self.ranks = {
            tuple(m.split(" ")): i for i, m in enumerate(metadata["tokenizer.ggml.merges"])
        }
        self.named = [t for t, kind in zip(tokens, types) if kind in (CONTROL, USER_DEFINED)]
        self.spelling = byte_spelling()

    def merge(self, word):
        while len(word) > 1:
            rank, at = min(
                (self.ranks.get(pair, 1 << 60), i) for i, pair in enumerate(zip(word, word[1:]))
            )
            if rank == 1 << 60:
                break
            word[at : at + 2] = [word[at] + word[at + 1]]
        return word

    def encode_plain(self, text):
        pieces = [unicodedata.normalize("NFC", text) if self.pre in COMPOSES else text]
        for pattern in CUTS[self.pre]:
            pieces = [part for piece in pieces for part in cut(pattern, piece)]
        for piece in pieces:
            word = [self.spelling[b] for b in piece.encode("utf-8")]
            yield from (self.ids[token] for token in self.merge(word) if token in self.ids)

    def encode(self, text):
        """Names of special tokens in the text become their ids."""
        pattern = "(" + "|".join(map(regex.escape, sorted(self.named, key=len, reverse=True))) + ")"
        for part in regex.split(pattern, text):
            if part in self.named:
                yield self.ids[part]
            elif part:
                yield from self.encode_plain(part)


def cut(pattern, text):
    at = 0
    for match in regex.finditer(pattern, text):
        if match.start() > at:
            yield text[at : match.start()]
        yield match.group()
        at = match.end()
    if at < len(text):
        yield text[at:]


def main():
    bpe = Bpe(read_metadata(sys.argv[1]))
    with open(sys.argv[2], encoding="utf-8") as texts:
        for line in texts:
            text = json.loads(line)
            print(json.dumps(text), *bpe.encode(text), sep="\t")


if __name__ == "__main__":
    main()
