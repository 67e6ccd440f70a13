"""Reads model weights with numpy alone: Hugging Face folders and GGUF files.

Written from the format descriptions, independently of libs/weights, so that the golden files made
with it check that library. Both readers return (config, tensors): config has Hugging Face field
names, tensors are float32 arrays under Hugging Face names with half-split rotary row order.
"""
import json
import math
import os
import struct

import numpy as np

SCALARS = dict(enumerate("BbHhIif?")) | {10: "Q", 11: "q", 12: "d"}
STRING, ARRAY = 8, 9

GGUF_TO_HF = {
    "token_embd.weight": "model.embed_tokens.weight",
    "output_norm.weight": "model.norm.weight",
    "output.weight": "lm_head.weight",
    "attn_norm.weight": "input_layernorm.weight",
    "attn_q.weight": "self_attn.q_proj.weight",
    "attn_k.weight": "self_attn.k_proj.weight",
    "attn_v.weight": "self_attn.v_proj.weight",
    "attn_q.bias": "self_attn.q_proj.bias",
    "attn_k.bias": "self_attn.k_proj.bias",
    "attn_v.bias": "self_attn.v_proj.bias",
    "attn_output.weight": "self_attn.o_proj.weight",
    "attn_q_norm.weight": "self_attn.q_norm.weight",
    "attn_k_norm.weight": "self_attn.k_norm.weight",
    "ffn_norm.weight": "post_attention_layernorm.weight",
    "ffn_gate.weight": "mlp.gate_proj.weight",
    "ffn_up.weight": "mlp.up_proj.weight",
    "ffn_down.weight": "mlp.down_proj.weight",
}


def read_folder(folder):
    with open(os.path.join(folder, "config.json"), encoding="utf-8") as file:
        config = json.load(file)
    with open(os.path.join(folder, "model.safetensors"), "rb") as file:
        data = file.read()
    (length,) = struct.unpack_from("<Q", data)
    header = json.loads(data[8 : 8 + length])
    tensors = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        begin, end = (8 + length + offset for offset in entry["data_offsets"])
        raw = np.frombuffer(data[begin:end], dtype=np.uint8)
        if entry["dtype"] == "BF16":
            values = (raw.view("<u2").astype(np.uint32) << 16).view(np.float32)
        else:
            values = raw.view({"F32": "<f4", "F16": "<f2"}[entry["dtype"]]).astype(np.float32)
        tensors[name] = values.reshape(entry["shape"])
    return config, tensors


def halves(blocks, at):
    """Column vector of the half-precision numbers at byte `at` of every block."""
    return blocks[:, at : at + 2].copy().view("<f2").astype(np.float32)


def nibbles(quants):
    return np.concatenate([quants & 15, quants >> 4], axis=1)


def fifth_bits(packed):
    return np.unpackbits(packed.copy(), axis=1, bitorder="little")


def k_scales(packed):
    """Twelve bytes per block -> eight six-bit scales and eight six-bit minimums."""
    low, high, mixed = packed[:, 0:4], packed[:, 4:8], packed[:, 8:12]
    scales = np.concatenate([low & 63, (mixed & 15) | (low >> 6 << 4)], axis=1)
    minimums = np.concatenate([high & 63, (mixed >> 4) | (high >> 6 << 4)], axis=1)
    return scales.astype(np.float32), minimums.astype(np.float32)


def q4_k(b):
    scales, minimums = k_scales(b[:, 4:16])
    quants = b[:, 16:144].reshape(-1, 4, 32)
    quants = np.stack([quants & 15, quants >> 4], axis=2).reshape(-1, 8, 32)
    return (halves(b, 0) * scales)[:, :, None] * quants - (halves(b, 2) * minimums)[:, :, None]


def q5_k(b):
    scales, minimums = k_scales(b[:, 4:16])
    quants = b[:, 48:176].reshape(-1, 4, 32)
    quants = np.stack([quants & 15, quants >> 4], axis=2).reshape(-1, 8, 32)
    high = (b[:, 16:48, None] >> np.arange(8, dtype=np.uint8)) & 1
    quants = quants + 16 * high.transpose(0, 2, 1)
    return (halves(b, 0) * scales)[:, :, None] * quants - (halves(b, 2) * minimums)[:, :, None]


def q6_k(b):
    low = b[:, 0:128].reshape(-1, 2, 1, 64)
    low = np.concatenate([low & 15, low >> 4], axis=2).reshape(-1, 2, 4, 32)
    high = b[:, 128:192].reshape(-1, 2, 1, 32) >> np.array([0, 2, 4, 6], np.uint8)[:, None] & 3
    quants = (low | high << 4).astype(np.int32).reshape(-1, 16, 16) - 32
    scales = b[:, 192:208].view(np.int8).astype(np.float32)
    return (halves(b, 208) * scales)[:, :, None] * quants


def q4_0(b):
    return halves(b, 0) * (nibbles(b[:, 2:]).astype(np.float32) - 8)


def q4_1(b):
    return halves(b, 0) * nibbles(b[:, 4:]) + halves(b, 2)


def q5_0(b):
    return halves(b, 0) * (nibbles(b[:, 6:]) + 16.0 * fifth_bits(b[:, 2:6]) - 16)


def q5_1(b):
    return halves(b, 0) * (nibbles(b[:, 8:]) + 16 * fifth_bits(b[:, 4:8])) + halves(b, 2)


def q8_0(b):
    return halves(b, 0) * b[:, 2:].view(np.int8)


# GGML type -> (values per block, bytes per block, function of the blocks).
BLOCKS = {
    2: (32, 18, q4_0),
    3: (32, 20, q4_1),
    6: (32, 22, q5_0),
    7: (32, 24, q5_1),
    8: (32, 34, q8_0),
    12: (256, 144, q4_k),
    13: (256, 176, q5_k),
    14: (256, 210, q6_k),
}


def dequantize(kind, raw, count):
    if kind in (0, 1):
        width, kind_name = (4, "<f4") if kind == 0 else (2, "<f2")
        return np.frombuffer(raw[: count * width], kind_name).astype(np.float32)
    if kind == 30:
        return (np.frombuffer(raw[: count * 2], "<u2").astype(np.uint32) << 16).view(np.float32)
    values, width, function = BLOCKS[kind]
    blocks = np.frombuffer(raw[: count // values * width], np.uint8).reshape(-1, width)
    return function(blocks).astype(np.float32).reshape(-1)


class GgufCursor:
    def __init__(self, data):
        self.data, self.at = data, 0

    def scalar(self, code):
        (value,) = struct.unpack_from("<" + code, self.data, self.at)
        self.at += struct.calcsize("<" + code)
        return value

    def string(self):
        length = self.scalar("Q")
        self.at += length
        return self.data[self.at - length : self.at].decode("utf-8", "replace")

    def value(self, kind):
        if kind == STRING:
            return self.string()
        if kind == ARRAY:
            element, count = self.scalar("I"), self.scalar("Q")
            return [self.value(element) for _ in range(count)]
        return self.scalar(SCALARS[kind])


def half_split(weight, heads):
    """GGUF llama files alternate the two halves of each head's rows; puts the halves together."""
    rows = weight.shape[0] // heads
    return weight.reshape(heads, rows // 2, 2, -1).swapaxes(1, 2).reshape(weight.shape)


def read_gguf_directory(path):
    """(metadata, [(name, shape, type, offset in the file)], bytes of the file)"""
    with open(path, "rb") as file:
        cursor = GgufCursor(file.read())
    assert cursor.data[:4] == b"GGUF"
    cursor.at = 8
    tensor_count, key_count = cursor.scalar("Q"), cursor.scalar("Q")
    meta = {}
    for _ in range(key_count):
        key = cursor.string()
        meta[key] = cursor.value(cursor.scalar("I"))
    directory = []
    for _ in range(tensor_count):
        name = cursor.string()
        shape = [cursor.scalar("Q") for _ in range(cursor.scalar("I"))][::-1]
        directory.append((name, shape, cursor.scalar("I"), cursor.scalar("Q")))
    alignment = meta.get("general.alignment", 32)
    start = -(-cursor.at // alignment) * alignment
    return meta, [(n, shape, kind, start + at) for n, shape, kind, at in directory], cursor.data


def read_gguf_metadata(path):
    return read_gguf_directory(path)[0]


def read_gguf(path):
    meta, directory, data = read_gguf_directory(path)
    architecture = meta["general.architecture"]

    def field(name, default=None):
        return meta.get(architecture + "." + name, default)

    config = {
        "model_type": architecture,
        "hidden_size": field("embedding_length"),
        "num_hidden_layers": field("block_count"),
        "num_attention_heads": field("attention.head_count"),
        "num_key_value_heads": field("attention.head_count_kv"),
        "head_dim": field("attention.key_length"),
        "sliding_window": field("attention.sliding_window"),
        "rms_norm_eps": field("attention.layer_norm_rms_epsilon"),
        "rope_theta": field("rope.freq_base", 10000.0),
        "tie_word_embeddings": all(entry[0] != "output.weight" for entry in directory),
    }
    tensors = {}
    for name, shape, kind, offset in directory:
        values = dequantize(kind, memoryview(data)[offset:], math.prod(shape)).reshape(shape)
        if name.startswith("blk."):
            _, layer, rest = name.split(".", 2)
            hf_name = "model.layers.%s.%s" % (layer, GGUF_TO_HF[rest])
        else:
            hf_name = GGUF_TO_HF[name]
        if architecture == "llama" and ".q_proj." in hf_name:
            values = half_split(values, config["num_attention_heads"])
        if architecture == "llama" and ".k_proj." in hf_name:
            values = half_split(values, config["num_key_value_heads"])
        tensors[hf_name] = values
    return config, tensors


def read(path):
    return read_folder(path) if os.path.isdir(path) else read_gguf(path)
