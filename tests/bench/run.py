#!/usr/bin/env python3
"""kiln against `go tool pprof`, on the same files, in turns, in one run.

  tests/bench/run.py --kiln build/kiln --tools build/release/tests/bench --data build/bench [--quick]

Prints wall time, CPU time and peak memory of both, how many times less kiln takes, what is required,
and beside each -top the limit: inflating the file and one read over its bytes (tests/bench/limit.c).

For names of a C++ program the peer is pprof itself with llvm-symbolizer, built from Debian's sources:
`go tool pprof` reads DWARF on its own, and needs a second for each address.
"""
import argparse
import os
import subprocess
import sys

import cxx

# File: arguments of the generator.
PROFILES = {
    "tiny.pb.gz": "samples=5 functions=20 locations=30 depth=4",
    "cpu_10k.pb.gz": "samples=10000",
    "cpu_100k.pb.gz": "samples=100000",
    "cpu_100k_base.pb.gz": "samples=100000 number=99",
    "cpu_100k_labels.pb.gz": "samples=100000 labels=2",
    "heap_100k.pb.gz": "samples=100000 heap=1",
    "cpu_1m.pb.gz": "samples=1000000",
    "cpu_5m.pb.gz": "samples=5000000",
}
MANY = "functions=6000 locations=18000 mappings=6 pool=20000 samples=2000 labels=2"

# Case, arguments, required ratio of wall time, of memory (0: none), limit printed, only without --quick.
CASES = [
    ("top 10k", "-top cpu_10k.pb.gz", 30, 0, True, False),
    ("top 100k", "-top cpu_100k.pb.gz", 30, 8, True, False),
    ("top 100k labels", "-top cpu_100k_labels.pb.gz", 30, 8, True, False),
    ("top 100k heap", "-top -sample_index=alloc_space heap_100k.pb.gz", 30, 8, True, False),
    ("top 1M", "-top cpu_1m.pb.gz", 30, 8, True, False),
    ("top 5M", "-top cpu_5m.pb.gz", 30, 8, True, True),
    ("peek 100k", "-peek=Handle.*1 cpu_100k.pb.gz", 15, 0, False, False),
    ("traces 100k", "-traces cpu_100k.pb.gz", 15, 0, False, False),
    ("raw 100k", "-raw cpu_100k.pb.gz", 15, 0, False, False),
    ("dot 100k", "-dot cpu_100k.pb.gz", 15, 0, False, False),
    ("dot call_tree 100k", "-dot -call_tree cpu_100k.pb.gz", 50, 0, False, False),
    ("base 100k", "-top -base=cpu_100k_base.pb.gz cpu_100k.pb.gz", 15, 0, False, False),
    ("proto 100k", "-proto cpu_100k.pb.gz", 5, 0, False, False),
    ("merge 100", "-proto many:100", 20, 10, False, False),
    ("merge 900", "-proto many:900", 20, 10, False, False),
    ("merge 900 top", "-top many:900", 20, 10, False, False),
    ("symbols top", "-top cxx/big.prof", 5, 2, False, False),
    ("symbols list", "-list=run cxx/big.prof", 5, 2, False, False),
    ("symbols disasm", "-disasm=unit3::run cxx/big.prof", 5, 2, False, False),
    ("merge 5,000", "-proto many:5000", 20, 10, False, True),
]
STARTUP_MS = 3
STARTUP_KB = 8 * 1024
TOP_OVER_LIMIT = 4
DECODE_OVER_LIMIT = 2


def generate(tools, data, quick):
    os.makedirs(data, exist_ok=True)
    gen = os.path.join(tools, "gen")
    for name, args in PROFILES.items():
        path = os.path.join(data, name)
        if not os.path.exists(path) and not (quick and "5m" in name):
            subprocess.run([gen, path + ".part"] + args.split(), check=True)
            os.rename(path + ".part", path)
    count = 900 if quick else 5000
    if not os.path.exists(os.path.join(data, "many", "%05d.pb.gz" % (count - 1))):
        subprocess.run([gen, os.path.join(data, "many"), "count=%d" % count] + MANY.split(), check=True)


def expand(args, data):
    out = []
    for word in args.split():
        if word.startswith("many:"):
            out += [os.path.join(data, "many", "%05d.pb.gz" % i) for i in range(int(word[5:]))]
        elif word.endswith((".pb.gz", ".prof")):
            option, equals, path = word.rpartition("=")
            out.append(option + equals + os.path.join(data, path))
        else:
            out.append(word)
    return out


class Runner:
    def __init__(self, options):
        self.tools, self.data = options.tools, options.data
        self.kiln, self.peer = os.path.abspath(options.kiln), find_peer()

    def measure(self, program, args, runs=1):
        """Wall seconds, CPU seconds, peak KB."""
        command = [os.path.join(self.tools, "measure"), str(runs), program] + args
        wall, cpu, rss, status = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
        if status != "0":
            sys.exit("%s %s: status %s" % (program, " ".join(args[:6]), status))
        return float(wall), float(cpu), int(rss)

    def compare(self, args, heavy):
        """Figures of both programs, each the best of a few runs, taken in turns."""
        program = self.peer
        if "cxx/" in args:
            program, args = build_pprof(self.data), expand(args, self.data)
        else:
            args = ["-symbolize=none"] + expand(args, self.data)
        peer, kiln = [], []
        for _ in range(1 if heavy else 2):
            peer.append(self.measure(program, args))
            kiln.append(self.measure(self.kiln, args, 3))
        return min(peer), min(kiln)

    def limits(self, args, runs):
        """Wall seconds of inflating, of decoding, and of kiln: the least of some runs each, in turns, since on a
        shared machine they differ more between two minutes than among themselves."""
        args = ["-symbolize=none"] + expand(args, self.data)
        files = [a for a in args if a.endswith(".gz")]
        takes = [[self.seconds_of("limit", files), self.seconds_of("decode", files), self.measure(self.kiln, args)[0]]
                 for _ in range(runs)]
        return [min(column) for column in zip(*takes)]

    def seconds_of(self, tool, files):
        """What one of our own programs says that it took."""
        return float(subprocess.run([os.path.join(self.tools, tool)] + files, check=True, capture_output=True, text=True).stdout.split()[0])


def find_peer():
    """The program behind `go tool pprof`, without the go command's own start-up."""
    directory = subprocess.run(["go", "env", "GOTOOLDIR"], check=True, capture_output=True, text=True).stdout.strip()
    return os.path.join(directory, "pprof")


def build_pprof(data):
    """pprof as its authors build it, which names addresses with llvm-symbolizer."""
    cxx.generate(data)
    path = os.path.join(os.path.abspath(data), "pprof")
    if not os.path.exists(path):
        environment = dict(os.environ, GO111MODULE="off", GOPATH="/usr/share/gocode")
        subprocess.run(["go", "build", "-o", path, "github.com/google/pprof"], check=True, env=environment)
    return path


def seconds(s):
    return "%.1f ms" % (s * 1000) if s < 1 else "%.2f s" % s


def memory(kb):
    return "%.1f MB" % (kb / 1024) if kb < 1 << 20 else "%.2f GB" % (kb / (1 << 20))


ROW = "%-20s %9s %9s %9s  %9s %9s %9s  %7s %7s  %-22s %s"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--kiln", required=True)
    parser.add_argument("--tools", default="build/release/tests/bench")
    parser.add_argument("--data", default="build/bench")
    parser.add_argument("--quick", action="store_true", help="without 5M samples and 5,000 profiles")
    parser.add_argument("--case", action="append", help="only cases with this in their name")
    options = parser.parse_args()
    generate(options.tools, options.data, options.quick)
    runner, failures, walls = Runner(options), 0, {}

    print(ROW % ("", "pprof", "cpu", "memory", "kiln", "cpu", "memory", "faster", "leaner", "required", ""))
    for name, args, faster, leaner, has_limit, long in CASES:
        if (options.quick and long) or (options.case and not any(c in name for c in options.case)):
            continue
        heavy = any(x in name for x in ("1M", "5M", "900", "5,000", "call_tree"))
        peer, kiln = runner.compare(args, heavy)
        walls[name] = kiln[0]
        ok = peer[0] >= faster * kiln[0] and (not leaner or peer[2] >= leaner * kiln[2])
        required = "%dx" % faster + (", %dx leaner" % leaner if leaner else "")
        failures += not ok
        print(ROW % (name, seconds(peer[0]), seconds(peer[1]), memory(peer[2]), seconds(kiln[0]), seconds(kiln[1]), memory(kiln[2]),
                     "%.1fx" % (peer[0] / kiln[0]), "%.1fx" % (peer[2] / kiln[2]), required, "ok" if ok else "FAILS"), flush=True)
        if has_limit:
            failures += not print_limit(name, *runner.limits(args, 5 if heavy else 15))
    failures += not print_startup(runner)
    if "top 5M" in walls and "top 1M" in walls:
        growth = walls["top 5M"] / walls["top 1M"]
        failures += growth > 5.5
        print("5M samples take %.2f times what 1M take, at most 5.5: %s" % (growth, "ok" if growth <= 5.5 else "FAILS"))
    print("%d requirements not met" % failures)
    return 1 if failures else 0


def print_limit(name, limit, decode, kiln):
    """Below 100k samples start-up and the report itself are most of it: printed, not judged."""
    ok = True
    print("%-20s limit %s" % ("", seconds(limit)), end="")
    for what, took, most in (("decoding", decode, DECODE_OVER_LIMIT), ("all", kiln, TOP_OVER_LIMIT)):
        print("; %s %.2f times that" % (what, took / limit), end="")
        if "10k" not in name:
            met = took <= most * limit
            print(", at most %d: %s" % (most, "ok" if met else "FAILS"), end="")
            ok = ok and met
    print(flush=True)
    return ok


def print_startup(runner):
    args = ["-top", "-symbolize=none", os.path.join(runner.data, "tiny.pb.gz")]
    peer, kiln = runner.measure(runner.peer, args, 21), runner.measure(runner.kiln, args, 101)
    ok = kiln[0] * 1000 <= STARTUP_MS and kiln[2] <= STARTUP_KB
    print(ROW % ("start-up", seconds(peer[0]), seconds(peer[1]), memory(peer[2]), seconds(kiln[0]), seconds(kiln[1]), memory(kiln[2]),
                 "%.1fx" % (peer[0] / kiln[0]), "%.1fx" % (peer[2] / kiln[2]), "%d ms, %s" % (STARTUP_MS, memory(STARTUP_KB)), "ok" if ok else "FAILS"))
    return ok


if __name__ == "__main__":
    sys.exit(main())
