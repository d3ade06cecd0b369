"""benchmarks/paired_gate.py: its arithmetic, and whole runs with scripts in the place
of llama-bench, llama-batched-bench, roofline_probe and fucina.

  paired_gate_test.py PATH/paired_gate.py
"""

import contextlib
import importlib.util
import io
import json
import os
import stat
import sys
import tempfile
import unittest

GATE = os.path.abspath(sys.argv.pop(1))
spec = importlib.util.spec_from_file_location("paired_gate", GATE)
gate = importlib.util.module_from_spec(spec)
spec.loader.exec_module(gate)

# Rows as two builds of llama-bench print them: one has its own column for the depth,
# the other counts it as a prompt. The speed is the first argument it does not know.
LLAMA_BENCH = '''
import json, sys
args = sys.argv[1:]
if "--help" in args:
    print({help!r})
    sys.exit()
def value(name, default="0"):
    return args[args.index(name) + 1] if name in args else default
row = {{"n_prompt": int(value("-p")), "n_gen": int(value("-n")),
       "avg_ts": {speed} * (2 if "-rtr" in args else 1)}}
if "-gp" in args:
    row["n_prompt"], row["n_gen"] = map(int, value("-gp").split(","))
if "-d" in args:
    row["n_depth"] = int(value("-d"))
print("some words first")
print(json.dumps([row]))
'''
BATCHED = '''
import sys
args = sys.argv[1:]
n = args[args.index("-npl") + 1]
print("main: n_kv_max = 512")
print("|    PP |     TG |    B |   N_KV |   T_PP s | S_PP t/s |   T_TG s | S_TG t/s |")
print("|-------|--------|------|--------|----------|----------|----------|----------|")
print(f"|    32 |     32 | {n:>4} |    128 |    1.000 |    32.00 |    1.000 |    40.00 | 9 | 9 |")
'''
FUCINA = '''
import sys
args = sys.argv[1:]
def value(name):
    return args[args.index(name) + 1]
ids = open(value("--ids-file")).read().split()
assert len(ids) in (1, 16, 32), ids
if "--streams" in args:
    print("decode-batch: 80.00 ± 0.10 tok/s  (min 79, max 81)")
elif value("--gen") == "1" and "--bench" in args:
    print("prefill: 300.00 ± 1.00 tok/s  (min 299, max 301)")
elif "--bench" in args:
    depth = int(value("--bench-depth"))
    print(f"decode : {30 if depth == 0 else 20}.00 ± 1.00 tok/s  (min 1, max 99)")
'''
PROBE = '''
import os, sys
count = int(open(sys.argv[0] + ".count").read() or 0) + 1 if \\
    os.path.exists(sys.argv[0] + ".count") else 1
open(sys.argv[0] + ".count", "w").write(str(count))
print('{"threads": 2, "dram_gb_s": %d, "int8_gop_s": 1000}' % (20 if count != 2 else 5))
'''


class Arithmetic(unittest.TestCase):
    def test_verdicts(self):
        self.assertEqual(gate.judge(1.5, 1.0, 0.01, 0.08, False), "PASS")
        self.assertEqual(gate.judge(0.99, 1.0, 0.5, 0.08, True), "FAIL")
        self.assertEqual(gate.judge(1.5, 1.0, 0.09, 0.08, False), "NOISY")
        self.assertEqual(gate.judge(1.5, 1.0, 0.09, 0.08, True), "PASS")
        self.assertEqual(gate.judge(1.5, 1.0, 0, 0.08, False, probes_low=True), "NOISY")

    def test_variation_is_the_sample_deviation(self):
        self.assertAlmostEqual(gate.variation([9, 10, 11]), 0.1)
        self.assertEqual(gate.variation([5]), 0)

    def test_ratios_are_of_one_round(self):
        self.assertEqual(gate.ratios_of([20, 30], [10, 20], False), [2, 1.5])
        self.assertEqual(gate.ratios_of([2, 4], [4, 2], True), [2, 0.5])

    def test_interval_covers_the_median(self):
        low, high = gate.bootstrap([1.9, 2.0, 2.1, 2.0, 2.05])
        self.assertTrue(1.9 <= low <= 2.0 <= high <= 2.1)
        self.assertEqual(gate.bootstrap([2, 2, 2]), (2, 2))

    def test_better_peer_is_picked_by_cell(self):
        args = gate.parse_arguments(
            ["--fucina", "f", "--peer", "p", "--model", "m"])
        samples = {"fucina": [10, 10], "a": [5, 5], "b": [8, 8]}
        row = gate.Row(gate.Cell("pp", 16, minimum=1.3), samples, args)
        self.assertEqual((row.peer, row.ratio, row.verdict), ("b", 1.25, "FAIL"))
        row = gate.Row(gate.Cell("load"), samples, args)
        self.assertEqual((row.peer, row.ratio, row.verdict), ("a", 0.5, "FAIL"))

    def test_ids_do_not_repeat_soon(self):
        ids = gate.token_ids(512, None)
        self.assertGreater(len(set(ids)), 450)
        self.assertTrue(all(0 <= i < 4096 for i in ids))
        self.assertEqual(gate.token_ids(2, [7, 8, 9]), [7, 8])
        with self.assertRaisesRegex(gate.GateError, "has 3 ids, a cell needs 4"):
            gate.token_ids(4, [7, 8, 9])

    def test_names_of_programs(self):
        program = gate.Program("ik repacked=x/llama-bench -rtr 1 -thp 1")
        self.assertEqual((program.name, program.path, program.arguments),
                         ("ik repacked", "x/llama-bench", ["-rtr", "1", "-thp", "1"]))
        self.assertEqual(gate.Program("x/llama-bench -fa 1").name, "llama-bench -fa 1")
        self.assertEqual(gate.Program("llama-bench --a=b").path, "llama-bench")


class WholeRuns(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.mainline = self.script("mainline", LLAMA_BENCH.format(
            help="  -d, --n-depth <n>\n  -ngl, --n-gpu-layers <n>\n  --no-warmup", speed=100))
        self.ik = self.script("ik", LLAMA_BENCH.format(help="  -gp <pp,tg>\n  -w <0|1>", speed=90))
        self.batched = self.script("batched", BATCHED)
        self.fucina = self.script("fucina", FUCINA)
        self.probe = self.script("probe", PROBE)
        self.model = os.path.join(self.folder.name, "m.gguf")
        with open(self.model, "w") as file:
            file.write("x")

    def script(self, name, text):
        path = os.path.join(self.folder.name, name)
        with open(path, "w") as file:
            file.write(f"#!{sys.executable}\n{text}")
        os.chmod(path, os.stat(path).st_mode | stat.S_IXUSR)
        return path

    def run_gate(self, *arguments):
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = gate.main(["--fucina", self.fucina, "--model", self.model,
                              "--threads", "2", *arguments])
        return code, out.getvalue(), err.getvalue()

    def test_every_kind_of_cell(self):
        path = os.path.join(self.folder.name, "r.json")
        code, out, err = self.run_gate(
            "--peer", f"main={self.mainline}", "--peer", f"ik={self.ik}",
            "--peer", f"ik repacked={self.ik} -rtr 1", "--peer-batched",
            f"ik={self.batched}", "--pp", "16:1.6", "--tg", "8:0.1,8@64:0.1",
            "--streams", "4:1.9", "--load", "0.001", "--memory", "0.001", "--rounds",
            "2", "--max-cv", "9", "--json", path)
        self.assertEqual(code, 0, out + err)
        self.assertIn("| m.gguf | pp16 | ik repacked | 180.0 [180.0..180.0] tok/s | "
                      "300.0 [300.0..300.0] tok/s | 1.67 [1.67..1.67] | 1.67..1.67 | "
                      "1.60 | 0% | PASS |", out)
        self.assertIn("| tg8@64 | ik repacked | 180.0", out)
        self.assertIn("| streams4 | ik | 40.0 [40.0..40.0] tok/s | 80.0", out)
        self.assertIn("streams4 of main is left out: no --peer-batched", out)
        with open(path) as file:
            report = json.load(file)
        rows = {row["cell"]: row for row in report["rows"]}
        self.assertEqual(set(rows), {"pp16", "tg8", "tg8@64", "streams4", "load",
                                     "memory"})
        self.assertEqual(rows["tg8"]["samples"],
                         {"main": [100, 100], "ik": [90, 90], "ik repacked": [180, 180],
                          "fucina": [30, 30]})
        self.assertGreater(rows["memory"]["samples"]["fucina"][0], 1)
        self.assertGreater(rows["load"]["samples"]["ik"][0], 0)
        # Both orders.
        order = [line.split()[4] for line in err.splitlines() if "pp16" in line]
        self.assertEqual(order, ["main", "ik", "ik", "fucina", "fucina", "ik", "ik",
                                 "main"])

    def test_a_slow_cell_fails(self):
        code, out, _ = self.run_gate("--peer", f"main={self.mainline}", "--pp", "16:9")
        self.assertEqual(code, 1)
        self.assertIn("| FAIL |", out)

    def test_cells_nobody_can_measure_are_said_to_be_left_out(self):
        code, out, err = self.run_gate("--peer", f"main={self.mainline}", "--streams",
                                       "4", "--pp", "16")
        self.assertEqual(code, 0)
        self.assertIn("streams4 is left out: no peer can measure it", out + err)

    def test_a_low_probe_takes_the_sample_again(self):
        code, out, err = self.run_gate(
            "--peer", f"main={self.mainline}", "--pp", "16", "--rounds", "1", "--probe",
            self.probe)
        self.assertEqual(code, 0, err)
        self.assertIn("the probe is low, once more", err)
        self.assertIn("Probes: dram_gb_s 20.0 [5.0..20.0]", out)

    def test_what_cannot_run_ends_with_2(self):
        broken = self.script("broken", "import sys; sys.exit('out of luck')")
        for arguments, message in [
                (["--peer", f"x={broken}", "--pp", "16"],
                 "ended with 1: out of luck"),
                (["--peer", "absent", "--pp", "16"], "absent: no such file"),
                (["--peer", f"main={self.mainline}"], "name at least one cell"),
                (["--peer", f"main={self.mainline}", "--pp", "16", "--ids-file",
                  self.model], "invalid literal")]:
            code, _, err = self.run_gate(*arguments)
            self.assertEqual(code, 2, arguments)
            self.assertIn(message, err)
        for arguments in (["--pp", "16"], ["--peer", "a", "--peer", "a"],
                          ["--peer", "a", "--pp", "0"], ["--peer", "a", "--pp", "4@3"]):
            with self.assertRaises(SystemExit) as ended:
                self.run_gate(*arguments)
            self.assertEqual(ended.exception.code, 2)


if __name__ == "__main__":
    unittest.main()
