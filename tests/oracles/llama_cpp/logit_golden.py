"""The text format of recorded logits, and the arithmetic of comparing them.

A golden holds what is needed to judge another engine's logits without the
whole vocabulary: the highest logits, a fixed sample spread over all ids, the
mean and the norm. Small vocabularies are kept whole.

  # comment lines
  model NAME                 file name; begins a new golden
  file BYTES CRC32           of the model file, so that the same one is used
  reference TEXT             program, revision, options
  ids I I I ...              the prompt
  count V                    logits of the last row
  mean X
  norm X                     sqrt(sum of (logit - mean)^2)
  top ID:X ID:X ...          highest first, ties by id
  sample X X X ...           n logits, of the ids floor(i * V / n)
"""
import array
import math
import zlib

TOP = 64
SAMPLE = 1024


def file_identity(path):
    crc, size = 0, 0
    with open(path, "rb") as f:
        while chunk := f.read(1 << 24):
            crc = zlib.crc32(chunk, crc)
            size += len(chunk)
    return size, "%08x" % crc


def read_dump(path):
    """Raw little-endian f32."""
    values = array.array("f")
    with open(path, "rb") as f:
        values.frombytes(f.read())
    return values


def summary(logits):
    mean = math.fsum(logits) / len(logits)
    norm = math.sqrt(math.fsum((x - mean) ** 2 for x in logits))
    return mean, norm


def ranked(logits, n):
    return sorted(range(len(logits)), key=lambda i: (-logits[i], i))[:n]


def write(f, model_path, reference, ids, logits):
    n = min(SAMPLE, len(logits))
    mean, norm = summary(logits)
    size, crc = file_identity(model_path)
    f.write("model %s\n" % model_path.replace("\\", "/").split("/")[-1])
    f.write("file %d %s\n" % (size, crc))
    f.write("reference %s\n" % reference)
    f.write("ids %s\n" % " ".join(map(str, ids)))
    f.write("count %d\n" % len(logits))
    f.write("mean %.9g\nnorm %.9g\n" % (mean, norm))
    if n < len(logits):
        f.write("top %s\n" % " ".join(
            "%d:%.7g" % (i, logits[i]) for i in ranked(logits, TOP)))
    f.write("sample %s\n" % " ".join(
        "%.7g" % logits[k * len(logits) // n] for k in range(n)))


class Golden:
    def __init__(self, model):
        self.model = model
        self.ids, self.top, self.sample = [], [], []
        self.mean = self.norm = 0.0
        self.count = self.size = 0
        self.crc = self.reference = ""


def read(path):
    """The goldens of a file, by model name."""
    goldens, golden = {}, None
    with open(path) as f:
        for line in f:
            key, _, rest = line.strip().partition(" ")
            words = rest.split()
            if key == "model":
                golden = goldens[rest] = Golden(rest)
            elif key == "file":
                golden.size, golden.crc = int(words[0]), words[1]
            elif key == "reference":
                golden.reference = rest
            elif key == "ids":
                golden.ids = [int(w) for w in words]
            elif key == "count":
                golden.count = int(rest)
            elif key in ("mean", "norm"):
                setattr(golden, key, float(rest))
            elif key == "top":
                golden.top = [(int(i), float(x)) for i, x in
                              (w.split(":") for w in words)]
            elif key == "sample":
                golden.sample = [(k * golden.count // len(words), float(w))
                                 for k, w in enumerate(words)]
    for golden in goldens.values():
        if not golden.top:
            golden.top = sorted(golden.sample, key=lambda p: (-p[1], p[0]))
    return goldens


# weights: cosine at least, relative RMS at most, largest difference at most
THRESHOLDS = {
    "f32": (0.9999999, 1e-4, 1e-3),
    "bf16": (0.9999, 1e-2, 0.1),
    "f16": (0.9999, 1e-2, 0.2),
    "q8_0": (0.9995, 3e-2, 0.5),
    "q6_k": (0.999, 5e-2, 1.0),
    "q5_k_m": (0.999, 5e-2, 1.0),
    "q4_k_m": (0.999, 5e-2, 1.0),
    "iq4_xs": (0.999, 5e-2, 1.0),
    "q4_0": (0.999, 5e-2, 1.0),
}


def compare(ours, pairs, mean):
    """Figures of `ours` (all logits) against (id, logit) pairs of a reference
    with that mean. Returns cosine, relative RMS, max-abs."""
    dot = aa = bb = dd = cc = worst = 0.0
    for i, b in pairs:
        a = ours[i]
        dot += a * b
        aa += a * a
        bb += b * b
        dd += (a - b) ** 2
        cc += (b - mean) ** 2
        worst = max(worst, abs(a - b))
    return dot / math.sqrt(aa * bb), math.sqrt(dd / cc), worst
