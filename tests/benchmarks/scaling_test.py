"""benchmarks/scaling.py: its arithmetic, and whole runs with a script in the place of
fucina.

  scaling_test.py PATH/scaling.py
"""

import contextlib
import importlib.util
import io
import os
import stat
import sys
import tempfile
import unittest

SCALING = os.path.abspath(sys.argv.pop(1))
spec = importlib.util.spec_from_file_location("scaling", SCALING)
scaling = importlib.util.module_from_spec(spec)
spec.loader.exec_module(scaling)

# Reads N tokens in 1e-3 N + {square} N^2 seconds, writes one in 1e-2 + 1e-6 D.
FUCINA = '''#!{python}
import json, sys
args = sys.argv[1:]
def value(name, default):
    return args[args.index(name) + 1] if name in args else default
tokens = len(open(value("--ids-file", "")).read().split())
depth = int(value("--bench-depth", "0"))
read = 1e-3 * tokens + {square} * tokens ** {power}
write = 1e-2 + 1e-6 * depth
json.dump({{"prefill": {{"tok_per_s": {{"median": tokens / read}}}},
           "decode": {{"tok_per_s": {{"median": 1 / write}}}}}},
          open(value("--bench-json", ""), "w"))
'''


def run(script, *flags):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "fucina")
        with open(path, "w", encoding="utf-8") as file:
            file.write(script)
        os.chmod(path, stat.S_IRWXU)
        sys.argv = ["scaling.py", "--fucina", path, "--model", "m", *flags]
        out, error = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(error):
            code = scaling.main()
    return code, out.getvalue(), error.getvalue()


def fake(square, power):
    return FUCINA.format(python=sys.executable, square=square, power=power)


class Scaling(unittest.TestCase):
    def test_exponents(self):
        found = scaling.exponents([(0, 1.0), (10, 2.0), (20, 8.0), (40, 16.0)])
        self.assertEqual(found[:2], [None, None])
        self.assertAlmostEqual(found[2], 2.0)
        self.assertAlmostEqual(found[3], 1.0)

    def test_attention_passes(self):
        code, out, _ = run(fake(1e-6, 2), "--lengths", "128,8192", "--depths", "0,64,128")
        self.assertEqual(code, 0)
        self.assertIn("| 8192 | 75300.86 | 1.50 |", out)
        self.assertIn("| 128 | 10.13 | 0.01 |", out)

    def test_faster_growth_fails(self):
        code, out, _ = run(fake(1e-6, 3), "--lengths", "4096,8192", "--depths", "64,128")
        self.assertEqual(code, 1)
        self.assertIn("above 2", out)

    def test_errors_are_told(self):
        code, _, error = run(f"#!{sys.executable}\nimport sys\nsys.exit('no such model')")
        self.assertEqual(code, 2)
        self.assertIn("no such model", error)


if __name__ == "__main__":
    unittest.main()
