#!/usr/bin/env python3
"""What the agent costs, beside gperftools, jemalloc and tcmalloc, in turns, in one run.

  tests/bench/agent.py --agent build/libkiln.so --suite ../shared/bench/runtime --work build/bench/runtime [--quick]

The programs, and how they are timed, are the suite's (bench.py, perop.py, fixedcost.sh), which is copied to
--work and built there. Ratios are of CPU time to that of the same program without an agent in the same round;
the median counts. A row says between what the median lies with 95 % confidence, what is wanted at most, and what the
nearest peer has. Where that is within the interval, the machine is too noisy to tell: "unsure"; more --rounds help.
Neighbours on the machine only ever make a run slower, so a row says, too, what the ratio is of the fastest fifth of
the runs, and of the peer's: "ok by the fastest" is "unsure", but these hold.
"""
import argparse
import csv
import os
import random
import re
import shlex
import shutil
import socket
import statistics
import subprocess
import sys
import threading
import time

# Name: what the agent is told. %s is the folder for its files.
SETTINGS = {
    "kiln_off": "",
    "kiln_cpu": "KILN_CPU_PROFILE=%s/k.cpu",
    "kiln_heap": "KILN_HEAP_PROFILE=%s/k.heap",
    "kiln_locks": "KILN_MUTEX_PROFILE=%s/k.mutex KILN_MUTEX_FRACTION=1 KILN_BLOCK_PROFILE=%s/k.block KILN_BLOCK_RATE=1",
    "kiln_all": "KILN_CPU_PROFILE=%s/a.cpu KILN_HEAP_PROFILE=%s/a.heap KILN_MUTEX_PROFILE=%s/a.mutex KILN_MUTEX_FRACTION=1"
                " KILN_BLOCK_PROFILE=%s/a.block KILN_BLOCK_RATE=1",
    "kiln_heap1": "KILN_HEAP_PROFILE=%s/k1.heap KILN_HEAP_RATE=1",
    "kiln_cpu1000": "KILN_CPU_PROFILE=%s/k1000.cpu KILN_CPU_RATE=1000",
    "kiln_every1000": "KILN_CPU_PROFILE=%s/e1000.cpu KILN_CPU_RATE=1000 KILN_CPU_BUDGET=0",
    "kiln_timer1000": "KILN_CPU_PROFILE=%s/t1000.cpu KILN_CPU_RATE=1000 KILN_CPU_ENGINE=timer",
    "kiln_trace": "KILN_TRACE=%s/k.trace.json",
}
# Name: a program that runs others, below the folder of such. What real interrupts cost without a profiler is a bound for whoever
# takes every sample; timers tick as often as the kernel does, as gperftools' do, whatever is asked of them.
WRAPPERS = {"interrupts1000": "interrupts 1000"}
# Workload, setting, at most (None: there is no goal, as a machine may not get there), nearest peer and what that is compared
# with ("" for the plain program).
ROWS = [
    ("cpu1", "kiln_off", 1.005, "", ""),
    ("cpu2", "kiln_off", 1.005, "", ""),
    ("cpp", "kiln_off", 1.01, "", ""),
    ("malloc_work", "kiln_off", 1.01, "", ""),
    ("cpu1", "kiln_cpu", 1.005, "gp_cpu100", ""),
    ("cpu2", "kiln_cpu", 1.005, "gp_cpu100", ""),
    ("cpp", "kiln_cpu", 1.01, "gp_cpu100", ""),
    ("cpu2", "kiln_cpu1000", 1.01, "", ""),
    ("cpu2", "kiln_every1000", None, "interrupts1000", ""),
    ("cpu2", "kiln_timer1000", 1.01, "gp_cpu1000", ""),
    ("storm", "kiln_cpu", 1.03, "gp_cpu100", ""),
    ("malloc_work", "kiln_heap", 1.02, "je_prof512k", "jemalloc"),
    ("malloc_tight", "kiln_heap", 1.08, "je_prof512k", "jemalloc"),
    ("malloc_tight", "kiln_heap", 1.08, "tcm_sample512k", "tcmalloc"),
    ("lock_unc", "kiln_locks", 1.4, "", ""),
    ("lock_unc", "kiln_off", 1.4, "", ""),
    ("lock_cont", "kiln_locks", 1.03, "", ""),
    ("lock_cont", "kiln_trace", 1.05, "", ""),
    ("cpu2", "kiln_all", 1.01, "", ""),
    ("cpp", "kiln_all", 1.04, "", ""),
    ("malloc_work", "kiln_all", 1.05, "", ""),
    ("malloc_slow", "kiln_heap1", 3, "heaptrack", ""),
    ("cpp_slow", "kiln_heap1", 5, "heaptrack", ""),
]
# What is much faster with the agent is changed by it, too: other threads win the lock, or later.
LEAST = {("lock_cont", "kiln_locks"): 0.97}
# Nanoseconds that a pair of lock and unlock, or of malloc and free, may take more.
LOCK_PAIRS, LOCK_NS = 100000000, {"kiln_off": 1, "kiln_locks": 5}
PAIR_NS = {"kiln_off": 1.5, "kiln_heap": 6, "kiln_heap1": 1000}
START_MS = 1
GPERFTOOLS = "LD_PRELOAD=/usr/lib/x86_64-linux-gnu/libprofiler.so.0"
MEMORY_KB = {"kiln_off": 512, "kiln_all": 8192}
# What has so many, which profile, milliseconds.
DUMPS = [("stacks", 10000, "heap", 50), ("threads", 1000, "goroutine?debug=2", 60), ("threads", 1000, "threads", 60),
         ("threads", 10000, "threads", 1000)]


def environment(args, name):
    out = os.path.join(args.work, "out")
    return ("LD_PRELOAD=%s " % args.agent + SETTINGS[name].replace("%s", out)).strip()


def prepare(args):
    if not os.path.exists(os.path.join(args.work, "bin", "robust")):
        shutil.copytree(args.suite, args.work, dirs_exist_ok=True)
        subprocess.run(["bash", "build.sh"], cwd=args.work, check=True)
    os.makedirs(os.path.join(args.work, "out"), exist_ok=True)


def median_interval(ratios):
    """The median, and between what it lies with 95 % confidence, by drawing again from what was measured."""
    draw = random.Random(1)
    medians = sorted(statistics.median(draw.choices(ratios, k=len(ratios))) for _ in range(2000))
    return statistics.median(ratios), medians[50], medians[-50]


def fastest(seconds):
    """The mean of the fastest fifth."""
    n = max(1, len(seconds) // 5)
    return sum(sorted(seconds)[:n]) / n


def measure(args, workload, names):
    """By name: the median ratio of CPU time, its interval, and that of the fastest; by name, too, seconds that it takes more."""
    file = os.path.join(args.work, "out", "bench_%s.csv" % workload)
    if os.path.exists(file):
        os.unlink(file)
    peers = [n for n in names if not n.startswith("kiln_") and n not in WRAPPERS]
    command = ["./bench.py", "-r", str(args.rounds), "-w", workload, "-o", file, "-c", ",".join(["base"] + peers)]
    for name in names:
        if name.startswith("kiln_"):
            command += ["--cand", "%s=%s" % (name, environment(args, name))]
        elif name in WRAPPERS:
            command += ["--candwrap", "%s=%s/%s" % (name, args.programs, WRAPPERS[name])]
    subprocess.run(command, cwd=args.work, check=True, stdout=subprocess.DEVNULL)
    rounds = {}
    with open(file) as f:
        for row in csv.DictReader(f):
            if row["rc"] != "0":
                sys.exit("%s with %s failed: %s" % (workload, row["config"], row["rc"]))
            rounds.setdefault(row["round"], {})[row["config"]] = float(row["cpu"])
    quick = {n: fastest([r[n] for r in rounds.values()]) for n in ["base"] + names}
    return {n: (*median_interval([r[n] / r["base"] for r in rounds.values()]), quick[n] / quick["base"]) for n in names}, \
        {n: quick[n] - quick["base"] for n in names}


def verdict(measured, least, most, peer):
    """Does it hold, as far as one can tell?"""
    ratio, low, high, quick = measured
    wanted, quick_wanted = (min(most, p) for p in peer or (most, most))
    if least <= ratio <= wanted:
        return "ok"
    if low > wanted or high < least:
        return "FAILS"
    return "ok by the fastest" if least <= quick <= quick_wanted else "unsure"


def print_row(what, measured, least, most, peer, peer_ratios):
    """Returns whether it may hold."""
    found = verdict(measured, least, most, peer_ratios) if most else ""
    beside = "%-16s %7.3f %7.3f" % (peer, *peer_ratios) if peer else " " * 32
    wanted = "no goal" if not most else "%.3f to %.3f" % (least, most) if least else "at most %7.3f" % most
    print("%-28s %8.3f [%.3f %.3f] %7.3f   %s   %-15s  %s" % (what, *measured, beside, wanted, found), flush=True)
    return found != "FAILS"


def run_ratios(args):
    failed = 0
    for workload in args.only.split(",") if args.only else dict.fromkeys(row[0] for row in ROWS):
        rows = [row for row in ROWS if row[0] == workload]
        names = [n for n in dict.fromkeys(x for row in rows for x in (row[1], row[3], row[4])) if n]
        ratios, seconds = measure(args, workload, names)
        for _, name, most, peer, plain in rows:
            beside = [ratios[peer][i] / (ratios[plain][i] if plain else 1) for i in (0, 3)] if peer else None
            failed += not print_row("%s %s" % (workload, name), ratios[name], LEAST.get((workload, name), 0), most, peer, beside)
        if workload == "lock_unc":
            failed += print_lock_pairs(seconds)
    return failed


def print_lock_pairs(seconds):
    failed = 0
    for name, most in LOCK_NS.items():
        more = seconds[name] * 1e9 / LOCK_PAIRS
        failed += more > most
        print("lock+unlock %-16s %+8.1f ns   at most %+.1f  %s" % (name, more, most, "ok" if more <= most else "FAILS"), flush=True)
    return failed


def run_pairs(args):
    """Nanoseconds that malloc and free take more."""
    failed = 0
    names = list(PAIR_NS)
    text = subprocess.run(["./perop.py", "-n", str(args.rounds)] + ["%s|%s" % (n, environment(args, n)) for n in names],
                          cwd=args.work, check=True, capture_output=True, text=True).stdout
    more = {m[1]: float(m[2]) for m in re.finditer(r"^(\S+) .* ([+-][\d.]+) ns vs base", re.sub(r"([+-]) +", r"\1", text), re.M)}
    peers = {"tcmalloc sampling": more["tcm_sample512k"] - more["tcmalloc"], "jemalloc": more["je_prof512k"] - more["jemalloc"]}
    for name in names:
        is_ok = more[name] <= PAIR_NS[name]
        failed += not is_ok
        beside = ", ".join("%s %+.1f" % p for p in peers.items()) if name == "kiln_heap" else ""
        print("malloc+free %-16s %+8.1f ns   %-40s at most %+.1f  %s" % (name, more[name], beside, PAIR_NS[name], "ok" if is_ok else "FAILS"))
    return failed


def run_start(args):
    text = subprocess.run(["./fixedcost.sh", "kiln_off|" + environment(args, "kiln_off"), "kiln_all|" + environment(args, "kiln_all")],
                          cwd=args.work, check=True, capture_output=True, text=True).stdout
    ms = {m[1]: float(m[2]) for m in re.finditer(r"^(\S+) +median +([\d.]+) ms", text, re.M)}
    more = ms["kiln_off"] - ms["base"]
    print("start and exit, off          %+8.2f ms   gperftools %+.2f, all on %+.2f   at most %+d  %s"
          % (more, ms["gp_cpu"] - ms["base"], ms["kiln_all"] - ms["base"], START_MS, "ok" if more <= START_MS else "FAILS"))
    return more > START_MS


def peak_kb(args, settings):
    """Resident memory of a small C++ program, at the most, after a second."""
    env = dict(os.environ, **dict(s.split("=", 1) for s in settings.split()))
    program = subprocess.Popen(["bin/cpp_mix", "-n", "1000000"], cwd=args.work, env=env)
    time.sleep(1)
    with open("/proc/%d/status" % program.pid) as f:
        peak = next(int(line.split()[1]) for line in f if line.startswith("VmHWM"))
    program.kill()
    program.wait()
    return peak


def run_memory(args):
    failed = 0
    kb = {n: statistics.median(peak_kb(args, environment(args, n) if n else "") for _ in range(5)) for n in ("", *MEMORY_KB)}
    for name, most in MEMORY_KB.items():
        more = kb[name] - kb[""]
        failed += more > most
        print("resident, %-18s %+8d KB   of %d   at most %+d  %s" % (name, more, kb[name], most, "ok" if more <= most else "FAILS"))
    return failed


def dump_ms(args, what, n, profile):
    """The median of some, as a client sees it."""
    address = os.path.join(args.work, "out", "dump.sock")
    env = dict(os.environ, LD_PRELOAD=args.agent, KILN_PPROF_ADDR="unix:" + address, KILN_HEAP_RATE="1")
    program = subprocess.Popen([args.programs + "/agent_dump", what, str(n)], env=env, stdout=subprocess.PIPE, text=True)
    program.stdout.readline()
    times = []
    for _ in range(7):
        start = time.monotonic()
        with socket.socket(socket.AF_UNIX) as s:
            s.connect(address)
            s.sendall(b"GET /debug/pprof/%s HTTP/1.0\r\n\r\n" % profile.encode())
            while s.recv(1 << 20):
                pass
        times.append((time.monotonic() - start) * 1000)
    program.kill()
    program.wait()
    return statistics.median(times)


def run_dumps(args):
    failed = 0
    for what, n, profile, most in DUMPS:
        ms = dump_ms(args, what, n, profile)
        failed += ms > most
        print("%-18s of %5d %-8s %8.1f ms   at most %d  %s" % (profile, n, what, ms, most, "ok" if ms <= most else "FAILS"), flush=True)
    return failed


def cost(args, what, settings=None):
    """What agent_cost prints; without settings there is no agent."""
    env = dict(os.environ)
    if settings is not None:
        env["LD_PRELOAD"] = args.agent
    env.update(x.split("=", 1) for x in shlex.split(settings or ""))
    text = subprocess.run([args.programs + "/agent_cost", *what.split()], env=env, check=True, capture_output=True, text=True).stdout
    return [float(x) for x in text.splitlines()[0].split()]


def more(args, what, settings):
    """What settings add to it, at its best of some tries in turns."""
    tries = [(cost(args, what, settings)[0], cost(args, what)[0]) for _ in range(args.rounds)]
    return min(t[0] for t in tries) - min(t[1] for t in tries)


def stack_bytes(args):
    """Resident memory for each live sample with a stack of its own, at a rate at which all are sampled."""
    kb = {}
    for agent in (args.agent, ""):
        for n in (1000, 20000):
            env = dict(os.environ, LD_PRELOAD=agent, KILN_HEAP_RATE="1", KILN_HEAP_PROFILE=args.work + "/out/s.heap")
            program = subprocess.Popen([args.programs + "/agent_dump", "stacks", str(n)], env=env, stdout=subprocess.PIPE, text=True)
            program.stdout.readline()
            with open("/proc/%d/status" % program.pid) as f:
                kb[agent, n] = next(int(line.split()[1]) for line in f if line.startswith("VmRSS"))
            program.kill()
            program.wait()
    return (kb[args.agent, 20000] - kb[args.agent, 1000] - kb["", 20000] + kb["", 1000]) * 1024 / 19000


class Dumps:
    """Asks the agent of another program for its heap and its threads, some 15 times a second."""

    def __init__(self, args):
        self.address = os.path.join(args.work, "out", "stops.sock")
        self.is_over = threading.Event()
        self.thread = threading.Thread(target=self.ask)

    def ask(self):
        while not self.is_over.wait(0.05):
            for profile in (b"heap", b"goroutine"):
                with socket.socket(socket.AF_UNIX) as s:
                    try:
                        s.connect(self.address)
                        s.sendall(b"GET /debug/pprof/%s HTTP/1.0\r\n\r\n" % profile)
                        while s.recv(1 << 20):
                            pass
                    except OSError:  # between two programs
                        pass

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.is_over.set()
        self.thread.join()


def best(args, what, settings):
    return min(cost(args, what, settings)[0] for _ in range(args.rounds))


def walks_of_prototype(args):
    """By depth: what the suite's prototype takes on this machine, at its best of some runs, in ns."""
    found = {}
    for _ in range(1 + args.rounds // 5):
        text = subprocess.run(["bin/unwind_bench_nofp"], cwd=args.work, check=True, capture_output=True, text=True).stdout
        for depth, ns in re.findall(r"^eh_frame table.* call +(\d+) +\d+ +(\d+)", text, re.M):
            found.setdefault(int(depth), []).append(float(ns))
    return {depth: min(ns) for depth, ns in found.items()}


def run_costs(args):
    """What single things cost: what, how much, at most, of what; beside whom, what that takes on this machine, and what it took
    on the one that goals are of (spec/runtime.md): "ok for this machine" is what is slower by no more than that."""
    every = "KILN_HEAP_RATE=1 KILN_HEAP_PROFILE=%s/c.heap" % (args.work + "/out")
    timer = "KILN_CPU_ENGINE=timer KILN_CPU_RATE=125 KILN_CPU_PROFILE=%s/c.cpu" % (args.work + "/out")
    ntimes = " %d" % (40 * args.rounds)
    empty = cost(args, "empty" + ntimes)[0]
    other = cost(args, "ticks" + ntimes, GPERFTOOLS + " CPUPROFILE_FREQUENCY=125 CPUPROFILE=%s/c.gp" % (args.work + "/out"))[0]
    with Dumps(args) as dumps:
        stops = more(args, "gaps 2", "KILN_PPROF_ADDR=unix:" + dumps.address)
    tables = cost(args, "tables")
    rows = [("a tick of a timer", cost(args, "ticks" + ntimes, timer)[0], 4, "us", "gperftools %.1f, an empty handler" % other, empty, 2.5),
            ("stopped over 50 us by dumps", stops, 1, "times a second", "", 0, 0),
            ("a live sample", more(args, "live 300000", every), 64, "bytes", "", 0, 0),
            ("and its distinct stack", stack_bytes(args), 64 + 0.6 * 1024, "bytes", "", 0, 0),
            ("an event of a trace", best(args, "events 100000", "KILN_TRACE=%s/c.json" % (args.work + "/out")), 100, "ns", "", 0, 0),
            ("a row of frame tables", tables[0], 10, "bytes", "", 0, 0),
            ("made in", tables[1], 120, "ns", "", 0, 0)]
    prototype, shallow = walks_of_prototype(args), best(args, "pairs 0 300000", every)
    rows += [("%d frames of a stack" % n, best(args, "pairs %d 300000" % n, every) - shallow, most, "ns", "the prototype", prototype[n], was)
             for n, most, was in ((10, 250, 172), (30, 500, 390), (60, 900, 694))]
    return sum(not print_cost(*row) for row in rows)


def print_cost(what, value, most, unit, peer, beside, was):
    here = max(most, most * beside / was) if peer else most
    found = "ok" if value <= most else "ok for this machine" if value <= here else "FAILS"
    print("%-28s %8.1f %-16s %-42s at most %d  %s" % (what, value, unit, "%s %.1f" % (peer, beside) if peer else "", most, found), flush=True)
    return found != "FAILS"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--agent", required=True)
    parser.add_argument("--suite", required=True)
    parser.add_argument("--work", required=True)
    parser.add_argument("--programs", default="build/release/tests/bench", help="where agent_dump, agent_cost and interrupts are")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--only", default="", help="workloads, as cpu1,cpp")
    args = parser.parse_args()
    args.agent, args.work, args.programs = map(os.path.abspath, (args.agent, args.work, args.programs))
    args.rounds = args.rounds or (3 if args.quick else 15)
    if not os.path.isdir(args.suite):
        print("no %s: the agent is not measured" % args.suite)
        return 0
    prepare(args)
    print("the agent: CPU time to that of the program without it (median [its interval] fastest); beside it the nearest peer (both)")
    failed = 0 if args.only else run_start(args) + run_memory(args) + run_dumps(args) + run_pairs(args) + run_costs(args)
    return failed + run_ratios(args) > 0


sys.exit(main())
