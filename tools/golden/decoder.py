"""The llama / qwen2 / qwen3 decoder in plain numpy, float32 weights, float32 or float64 arithmetic.

Written from the papers (RMSNorm, rotary embedding, grouped-query attention, SwiGLU) and the
semantics of the published models, independently of libs/torch_engine. It recomputes the whole
prompt for every token: slow and without any cache, so that nothing can hide in one.
"""
import numpy as np


def rms_norm(x, weight, epsilon):
    return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + x.dtype.type(epsilon)) * weight


def llama3_frequencies(plain, scaling):
    """Waves longer than the original context are slowed down, short ones kept, the rest blended."""
    turns = scaling["original_max_position_embeddings"] * plain / (2 * np.pi)
    low, high = scaling["low_freq_factor"], scaling["high_freq_factor"]
    kept = np.clip((turns - low) / (high - low), 0, 1)
    return plain * kept + plain / scaling["factor"] * (1 - kept)


def yarn_frequencies(plain, theta, scaling):
    """By parts (YaRN, section 3.2): the pairs between beta_fast and beta_slow turns are blended."""
    context, dim = scaling["original_max_position_embeddings"], 2 * len(plain)

    def pair_with(turns):
        return dim * np.log(context / (turns * 2 * np.pi)) / (2 * np.log(theta))

    first = max(np.floor(pair_with(scaling.get("beta_fast", 32))), 0)
    last = min(np.ceil(pair_with(scaling.get("beta_slow", 1))), dim - 1)
    slowed = np.clip((np.arange(len(plain)) - first) / max(last - first, 0.001), 0, 1)
    return plain / scaling["factor"] * slowed + plain * (1 - slowed)


def rotary_tables(length, dim, config, dtype):
    theta, scaling = config["rope_theta"], config.get("rope_scaling") or {}
    frequencies = theta ** (-np.arange(0, dim, 2, dtype=np.float64) / dim)
    kind, size = scaling.get("rope_type"), 1.0
    if kind == "llama3":
        frequencies = llama3_frequencies(frequencies, scaling)
    elif kind == "yarn":
        frequencies = yarn_frequencies(frequencies, theta, scaling)
        size = scaling.get("attention_factor") or 0.1 * np.log(scaling["factor"]) + 1
    else:
        assert kind is None, kind
    angles = np.arange(length, dtype=np.float64)[:, None] * frequencies[None, :]
    return (size * np.cos(angles)).astype(dtype), (size * np.sin(angles)).astype(dtype)


def rotate(x, cos, sin):
    """x [heads, positions, dim]: channel i rotates with channel i + dim/2."""
    first, second = np.split(x, 2, axis=-1)
    return np.concatenate([first * cos - second * sin, second * cos + first * sin], axis=-1)


class Decoder:
    def __init__(self, config, tensors, dtype=np.float64):
        self.config = config
        self.dtype = dtype
        self.tensors = {name: values.astype(dtype) for name, values in tensors.items()}
        self.heads = config["num_attention_heads"]
        self.kv_heads = config.get("num_key_value_heads", self.heads)
        self.dim = config.get("head_dim") or config["hidden_size"] // self.heads

    def multiply(self, x, name):
        return x @ self.tensors[name + ".weight"].T

    def project(self, x, name):
        y = self.multiply(x, name)
        bias = self.tensors.get(name + ".bias")
        return y if bias is None else y + bias

    def split_heads(self, x, heads):
        return x.reshape(x.shape[0], heads, self.dim).swapaxes(0, 1)

    def head_norm(self, x, name):
        """Qwen3 norms every query and key head before the rotation."""
        weight = self.tensors.get(name + ".weight")
        return x if weight is None else rms_norm(x, weight, self.config["rms_norm_eps"])

    def turned(self, x, prefix, which, heads, tables):
        projected = self.split_heads(self.project(x, prefix + which + "_proj"), heads)
        return rotate(self.head_norm(projected, prefix + which + "_norm"), *tables)

    def visible(self, length):
        """[query, key]: a query sees itself and what is before it, within the window if any."""
        age = np.arange(length)[:, None] - np.arange(length)[None, :]
        return (age >= 0) & (age < (self.config.get("sliding_window") or length))

    def attention(self, x, layer):
        prefix = "model.layers.%d.self_attn." % layer
        length = x.shape[0]
        tables = rotary_tables(length, self.dim, self.config, self.dtype)
        query = self.turned(x, prefix, "q", self.heads, tables)
        key = self.turned(x, prefix, "k", self.kv_heads, tables)
        value = self.split_heads(self.project(x, prefix + "v_proj"), self.kv_heads)
        group = self.heads // self.kv_heads
        key, value = np.repeat(key, group, axis=0), np.repeat(value, group, axis=0)
        scores = query @ key.swapaxes(1, 2) / self.dtype(np.sqrt(self.dim))
        scores = np.where(self.visible(length), scores, -np.inf)
        weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
        weights /= weights.sum(axis=-1, keepdims=True)
        mixed = (weights @ value).swapaxes(0, 1).reshape(length, self.heads * self.dim)
        return self.project(mixed, prefix + "o_proj")

    def feed_forward(self, x, layer):
        prefix = "model.layers.%d.mlp." % layer
        gate = self.project(x, prefix + "gate_proj")
        up = self.project(x, prefix + "up_proj")
        return self.project(gate / (1 + np.exp(-gate)) * up, prefix + "down_proj")

    def logits(self, ids):
        """Logits of every position, [positions, vocabulary rows]."""
        epsilon = self.config["rms_norm_eps"]
        x = self.tensors["model.embed_tokens.weight"][ids]
        for layer in range(self.config["num_hidden_layers"]):
            prefix = "model.layers.%d." % layer
            norm = self.tensors[prefix + "input_layernorm.weight"]
            x = x + self.attention(rms_norm(x, norm, epsilon), layer)
            norm = self.tensors[prefix + "post_attention_layernorm.weight"]
            x = x + self.feed_forward(rms_norm(x, norm, epsilon), layer)
        x = rms_norm(x, self.tensors["model.norm.weight"], epsilon)
        tied = self.config.get("tie_word_embeddings", False)
        output = "model.embed_tokens" if tied else "lm_head"
        return self.multiply(x, output)

    def greedy(self, ids, count, usable_ids):
        """Appends `count` tokens, each the first largest among the usable ids; returns them."""
        ids = list(ids)
        start = len(ids)
        for _ in range(count):
            ids.append(int(np.argmax(self.logits(ids)[-1, :usable_ids])))
        return ids[start:]


def int8_rows(weights):
    """Every row in steps of a 127th of its largest magnitude."""
    steps = np.abs(weights).max(axis=1, keepdims=True) / 127
    return np.rint(weights / np.where(steps == 0, 1, steps)) * steps


def uint8_rows(x):
    """Every row in 255 steps between its lowest and highest value, 0 being one of the steps."""
    low = np.minimum(x.min(axis=1, keepdims=True), 0)
    high = np.maximum(x.max(axis=1, keepdims=True), 0)
    step = np.where(high == low, 1, (high - low) / 255)
    zero = np.rint(-low / step)
    return (np.clip(np.rint(x / step) + zero, 0, 255) - zero) * step


class Int8Decoder(Decoder):
    """Weights and what they are multiplied with in eight bits, as an int8 engine has them."""

    def __init__(self, config, tensors, dtype=np.float64):
        super().__init__(config, tensors, dtype)
        self.rounded = {
            name: int8_rows(values) for name, values in self.tensors.items() if values.ndim == 2
        }

    def multiply(self, x, name):
        return uint8_rows(x) @ self.rounded[name + ".weight"].T
