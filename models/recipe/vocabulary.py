"""The two vocabularies of the atlas models: the same bytes and merges, and the special tokens of
Qwen3 or of GLM-4.5 behind them.

Ids 0 to 255 are bytes, 256 to 4055 merges; 4096 rows in all, the last ones unused. No merge
joins digits, so splitting numbers after one digit (qwen2) or after three (glm4) gives the same
ids.
"""
from bpe import Tokenizer

ROWS, FIRST_SPECIAL = 4096, 4056
NORMAL, CONTROL, USER_DEFINED, UNUSED = 1, 3, 4, 5

# In the order of GLM-4.5's vocabulary, with its classes. What the family marks as media is left
# out: nothing here uses it.
GLM_SPECIALS = [
    ("<|endoftext|>", CONTROL), ("[MASK]", CONTROL), ("[gMASK]", CONTROL), ("[sMASK]", CONTROL),
    ("<sop>", CONTROL), ("<eop>", CONTROL), ("<|system|>", CONTROL), ("<|user|>", CONTROL),
    ("<|assistant|>", CONTROL), ("<|observation|>", CONTROL), ("<think>", USER_DEFINED),
    ("</think>", USER_DEFINED), ("<tool_call>", USER_DEFINED), ("</tool_call>", USER_DEFINED),
    ("<tool_response>", USER_DEFINED), ("</tool_response>", USER_DEFINED),
    ("<arg_key>", USER_DEFINED), ("</arg_key>", USER_DEFINED), ("<arg_value>", USER_DEFINED),
    ("</arg_value>", USER_DEFINED), ("/nothink", USER_DEFINED)]

# Which row of the Qwen3 vocabulary a new token starts from.
GLM_STARTS_FROM = {
    "<|endoftext|>": "<|endoftext|>", "<|user|>": "<|im_end|>", "<|system|>": "<|im_start|>",
    "<|assistant|>": "<|im_start|>", "<think>": "<think>", "</think>": "</think>",
    "<tool_call>": "<tool_call>", "</tool_call>": "</tool_call>",
    "<tool_response>": "<tool_response>", "</tool_response>": "</tool_response>"}


class Vocabulary(Tokenizer):
    """Tokens, types and merges from the metadata of a GGUF file."""

    def __init__(self, keys, specials=None):
        tokens = list(keys["tokenizer.ggml.tokens"])
        types = list(keys["tokenizer.ggml.token_type"])
        if specials is not None:
            tokens = tokens[:FIRST_SPECIAL] + [t for t, _ in specials]
            types = types[:FIRST_SPECIAL] + [k for _, k in specials]
            tokens += [f"[PAD{i}]" for i in range(len(tokens), ROWS)]
            types += [UNUSED] * (ROWS - len(types))
        merges = [tuple(m.split(" ")) for m in keys["tokenizer.ggml.merges"]]
        self.set(tokens, types, merges)
