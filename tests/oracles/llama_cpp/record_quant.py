#!/usr/bin/env python3
"""Records what ggml makes of pseudo-random rows: tests/goldens/quant/ggml.txt.

For every block format: CRC-32 of each decoded block of random bytes, and of
each block that the reference encoder makes of random values. The test program
draws the same rows from the same generator and compares block by block.

Usage:  record_quant.py --ggml .../libggml-base.so --revision TEXT > ggml.txt

The committed file was recorded with ggml 0.25.3 as found in llama.cpp
0c1e57098, built by GCC 12.2 for x86-64. Needs Python 3.9 or later, nothing
else. The library is the reader's own; nothing here builds or ships it.
"""
import argparse
import ctypes
import struct
import sys
import zlib

MASK = (1 << 64) - 1

# name: ggml type id, elements and bytes of a block, offsets of f16 fields
FORMATS = {
    "f16": (1, 1, 2, [0]),
    "q4_0": (2, 32, 18, [0]),
    "q4_1": (3, 32, 20, [0, 2]),
    "q5_0": (6, 32, 22, [0]),
    "q5_1": (7, 32, 24, [0, 2]),
    "q8_0": (8, 32, 34, [0]),
    "q2_k": (10, 256, 84, [80, 82]),
    "q3_k": (11, 256, 110, [108]),
    "q4_k": (12, 256, 144, [0, 2]),
    "q5_k": (13, 256, 176, [0, 2]),
    "q6_k": (14, 256, 210, [208]),
    "iq2_xxs": (16, 256, 66, [0]),
    "iq2_xs": (17, 256, 74, [0]),
    "iq3_xxs": (18, 256, 98, [0]),
    "iq1_s": (19, 256, 50, [0]),
    "iq4_nl": (20, 32, 18, [0]),
    "iq3_s": (21, 256, 110, [0]),
    "iq2_s": (22, 256, 82, [0]),
    "iq4_xs": (23, 256, 136, [0]),
    "iq1_m": (29, 256, 56, []),
    "bf16": (30, 1, 2, []),
    "tq1_0": (34, 256, 54, [52]),
    "tq2_0": (35, 256, 66, [64]),
    "mxfp4": (39, 32, 17, []),
}
ENCODABLE = ["f16", "bf16", "q4_0", "q4_1", "q5_0", "q5_1", "q8_0", "q2_k",
             "q3_k", "q4_k", "q5_k", "q6_k", "iq4_nl", "iq4_xs", "tq1_0",
             "tq2_0", "mxfp4"]
CHUNK = 256     # elements per checksum, whatever the block size
DECODED = 16    # chunks of each format
KINDS = 6       # of input rows, see input_row
ROUNDS = 4      # rows of each kind


class SplitMix64:
    """Steele, Lea and Flood, 2014: the same in ten lines of any language."""

    def __init__(self, seed):
        self.state = seed

    def next(self):
        self.state = (self.state + 0x9E3779B97F4A7C15) & MASK
        z = self.state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        return z ^ (z >> 31)


def random_chunk(name, rng):
    """Blocks of 256 elements in all, random but for scales: those are finite."""
    _, elements, size, fields = FORMATS[name]
    blocks = CHUNK // elements
    row = bytearray()
    while len(row) < blocks * size:
        row += struct.pack("<Q", rng.next())
    del row[blocks * size:]
    for at in range(0, len(row), size):
        for field in fields:
            if row[at + field + 1] & 0x7C == 0x7C:
                row[at + field + 1] &= 0xBF
        if name == "mxfp4" and row[at] == 255:
            row[at] = 254
        if name == "bf16" and row[at + 1] & 0x7F == 0x7F:
            row[at + 1] &= 0xBF
        # The exponent of an IQ1_M scale is in the top nibbles of two words.
        if name == "iq1_m" and row[at + 55] & 0x70 == 0x70:
            row[at + 55] &= 0xBF
    return bytes(row)


def input_row(kind, round_, rng):
    """256 values, every one exact in f32, so that Python's doubles agree."""
    out = []
    for i in range(CHUNK):
        z = rng.next()
        total = sum((z >> s) & 0xFFFF for s in (0, 16, 32, 48)) - 2 * 65535
        v = total / 65536.0                       # bell-shaped, within +-2
        if kind == 1:                             # scales far apart
            v *= 2.0 ** ((i // 16 * 5) % 13 - 6)
        elif kind == 2:                           # groups of zeros
            v = 0.0 if i // 16 % 3 == round_ % 3 else v
        elif kind == 3:                           # ties, equal values
            v = ((z & 15) - 8) * 0.5
        elif kind == 4:                           # one sign only
            v = abs(v) * (1 if round_ % 2 == 0 else -1)
        elif kind == 5:                           # tiny and large rows
            v *= 2.0 ** (round_ * 12 - 20)
        out.append(v)
    return out


class TypeTraits(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("block", ctypes.c_int64),
                ("interleave", ctypes.c_int64), ("size", ctypes.c_size_t),
                ("quantized", ctypes.c_bool), ("to_float", ctypes.c_void_p),
                ("from_float_ref", ctypes.c_void_p)]


def main():
    ap = argparse.ArgumentParser(description=__doc__,
                                 formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--ggml", required=True, help="path of libggml-base")
    ap.add_argument("--revision", required=True, help="written into the file")
    args = ap.parse_args()
    lib = ctypes.CDLL(args.ggml)
    lib.ggml_get_type_traits.restype = ctypes.POINTER(TypeTraits)
    lib.ggml_get_type_traits.argtypes = [ctypes.c_int]
    convert = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p,
                               ctypes.c_int64)

    print("# Made by tests/oracles/llama_cpp/record_quant.py with " +
          args.revision)
    for name, (type_id, elements, size, _) in FORMATS.items():
        traits = lib.ggml_get_type_traits(type_id).contents
        assert (traits.block, traits.size) == (elements, size), name
        decode = convert(traits.to_float)
        rng = SplitMix64(1000 + type_id)
        sums = []
        for _ in range(DECODED):
            row = random_chunk(name, rng)
            out = (ctypes.c_float * CHUNK)()
            # An aligned copy with room to spare.
            src = ctypes.create_string_buffer(row, len(row) + 64)
            decode(ctypes.addressof(src), ctypes.addressof(out), CHUNK)
            sums.append("%08x" % zlib.crc32(bytes(out)))
        print("decode", name, *sums)
    for name in ENCODABLE:
        type_id, elements, size, _ = FORMATS[name]
        encode = convert(lib.ggml_get_type_traits(type_id).contents.from_float_ref)
        rng = SplitMix64(2000 + type_id)
        sums = []
        for kind in range(KINDS):
            for round_ in range(ROUNDS):
                values = input_row(kind, round_, rng)
                src = (ctypes.c_float * CHUNK)(*values)
                out = ctypes.create_string_buffer(CHUNK // elements * size)
                encode(ctypes.addressof(src), ctypes.addressof(out), CHUNK)
                sums.append("%08x" % zlib.crc32(out.raw))
        print("encode", name, *sums)
    return 0


if __name__ == "__main__":
    sys.exit(main())
