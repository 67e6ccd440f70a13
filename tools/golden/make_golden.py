#!/usr/bin/env python3
"""Writes the golden files of tests/engine/golden with the independent decoder beside this script.

Needs numpy, the write_tiny_model binary, and, for the real model, SmolLM2-135M-Instruct Q4_1 GGUF:
  make_golden.py --writer build/release/bin/write_tiny_model --smollm2 MODEL.gguf \\
                 --out tests/engine/golden
Weights are those of the file, exactly dequantized; arithmetic is float64, so that a file is the
reference with which float32 engines are compared. A file holds:
  model           with sizes and seed of a tiny model, or sha256 of the real file
  usable_ids      tokenizer size: rows above it are padding
  prompt          token ids
  logits          for some positions every row's value, or the `ids` and values of the largest 64
  int8_logits     the same with weights and activations in int8, of a tied tiny model
  greedy          the tokens that follow the prompt
  greedy_margin   smallest gap between the first and the second logit among them
"""
import argparse
import hashlib
import json
import os
import subprocess
import tempfile

import numpy as np

import decoder
import weight_files

TINY_SEED = 11
TINY_USABLE_IDS = 259  # 256 bytes and three special tokens; ids are byte values
TINY_PROMPT = [257, *b"user\nSay something, please: \xe4\xbd\xa0\xe5\xa5\xbd!", 258, 10]
TINY_LONG_PROMPT = [
    257,
    *b"user\nTell me, in some detail, how a river finds its way from the mountains to the sea, and ",
    *b"why it bends.",
    258,
    10,
]
TINY_MODELS = [
    ("llama", "small", TINY_PROMPT),
    ("llama", "large", TINY_PROMPT),
    ("qwen2", "small", TINY_PROMPT),
    ("qwen2", "large", TINY_PROMPT),
    ("qwen3", "small", TINY_LONG_PROMPT),
    ("qwen3", "large", TINY_LONG_PROMPT),
    ("qwen3_tied", "small", TINY_LONG_PROMPT),
    ("mistral", "small", TINY_LONG_PROMPT),
    ("mistral", "large", TINY_LONG_PROMPT),
    ("llama3", "small", TINY_LONG_PROMPT),
    ("yarn", "small", TINY_LONG_PROMPT),
    ("yarn_stated", "small", TINY_LONG_PROMPT),
]
REAL_PIECES = (
    "<|im_start|> user Ċ What Ġis Ġthe Ġcapital Ġof ĠFrance ? Ġ Why Ġis Ġit Ġfamous ? "
    "<|im_end|> Ċ <|im_start|> ass istant Ċ"
).split(" ")
TOP = 64
GREEDY_TOKENS = 32


def number(value):
    return float("%.7g" % value)


def positions_of(prompt):
    return [0, 1, len(prompt) // 2, len(prompt) - 1]


def logit_rows(model, prompt, top):
    """Logits at some positions."""
    logits = model.logits(prompt)
    rows = []
    for position in positions_of(prompt):
        values = logits[position]
        row = {"position": position}
        if top:
            order = np.argsort(-values, kind="stable")[:top]
            row["ids"] = [int(i) for i in order]
            values = values[order]
        row["values"] = [number(v) for v in values]
        rows.append(row)
    return rows


def describe(model, prompt, usable_ids, top):
    """Logits at some positions, the greedy continuation and its smallest margin."""
    rows = logit_rows(model, prompt, top)
    greedy = model.greedy(prompt, GREEDY_TOKENS, usable_ids)
    last = model.logits(prompt + greedy)[len(prompt) - 1 : -1, :usable_ids]
    best = np.sort(last, axis=-1)
    margin = float(np.min(best[:, -1] - best[:, -2]))
    return {"usable_ids": usable_ids, "prompt": prompt, "logits": rows, "greedy": greedy,
            "greedy_margin": number(margin)}


def write(out, name, content):
    path = os.path.join(out, name)
    with open(path, "w", encoding="utf-8") as file:
        json.dump(content, file, separators=(",", ":"))
        file.write("\n")
    size = os.path.getsize(path)
    print("%s: %d bytes, greedy margin %g" % (path, size, content["greedy_margin"]))


def make_tiny(writer, out):
    for family, size, prompt in TINY_MODELS:
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([writer, folder, family, str(TINY_SEED), size], check=True)
            config, tensors = weight_files.read(folder)
        head = {"model": "tiny", "family": family, "size": size, "seed": TINY_SEED}
        body = describe(decoder.Decoder(config, tensors), prompt, TINY_USABLE_IDS, top=0)
        if config.get("tie_word_embeddings"):
            body["int8_logits"] = logit_rows(decoder.Int8Decoder(config, tensors), prompt, top=0)
        write(out, "tiny_%s_%s.json" % (family, size), {**head, **body})


def make_real(path, out):
    with open(path, "rb") as file:
        digest = hashlib.sha256(file.read()).hexdigest()
    tokens = weight_files.read_gguf_metadata(path)["tokenizer.ggml.tokens"]
    index = {token: i for i, token in enumerate(tokens)}
    prompt = [index[piece] for piece in REAL_PIECES if piece in index]
    model = decoder.Decoder(*weight_files.read(path))
    body = describe(model, prompt, len(tokens), top=TOP)
    print("continuation:", "".join(tokens[i] for i in body["greedy"]))
    head = {"model": "smollm2-135m-instruct-q4_1", "sha256": digest}
    write(out, "smollm2_135m.json", {**head, **body})


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--writer", help="write_tiny_model binary; without it no tiny files")
    parser.add_argument("--smollm2", help="path of the GGUF; without it no file of the real model")
    parser.add_argument("--out", required=True)
    arguments = parser.parse_args()
    os.makedirs(arguments.out, exist_ok=True)
    if arguments.writer:
        make_tiny(arguments.writer, arguments.out)
    if arguments.smollm2:
        make_real(arguments.smollm2, arguments.out)


if __name__ == "__main__":
    main()
