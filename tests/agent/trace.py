#!/usr/bin/env python3
"""The trace: JSON that viewers read, with times that are right and slices that are nested."""
import json
import math
import os
import re
import resource
import subprocess
import tempfile
from collections import defaultdict

HERE = os.path.dirname(os.path.abspath(__file__))
AGENT = os.environ.get("AGENT", HERE + "/../../build/libkiln.so")
CC = os.environ.get("CC", "gcc")
DIR = tempfile.TemporaryDirectory()
count = 0


def ok(is_good, what, why=""):
    global count
    count += 1
    print(f"{'ok' if is_good else 'not ok'} {count} - {what}", flush=True)
    if not is_good and why:
        print("\n".join("# " + line[:300] for line in str(why).splitlines()), flush=True)


def trace(program, *args, limit_files=None, **env):
    path = DIR.name + "/trace.json"
    before = None
    if limit_files:
        before = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (limit_files, limit_files))
    p = subprocess.run([program, *args], stdout=subprocess.PIPE, text=True, timeout=60,
                       preexec_fn=before,
                       env={**os.environ, "LD_PRELOAD": AGENT, "KILN_TRACE": path, **env})
    ok(p.returncode == 0, "the program ran", p.returncode)
    with open(path, "rb") as f:
        return json.loads(f.read().decode("utf-8")), p.stdout


def is_nested(events):
    """No slice of a thread begins in another one and ends after it."""
    threads = defaultdict(list)
    for e in events:
        if e["ph"] == "X":
            threads[e["pid"], e["tid"]].append((round(e["ts"] * 1000), round(e["dur"] * 1000)))
    for slices in threads.values():
        open_until = []
        for start, length in sorted(slices, key=lambda s: (s[0], -s[1])):
            while open_until and open_until[-1] <= start:
                open_until.pop()
            if open_until and start + length > open_until[-1]:
                return f"{start} + {length} > {open_until[-1]}"
            open_until.append(start + length)
    return ""


def of(events, phase, name):
    return [e for e in events if e["ph"] == phase and e["name"] == name]


def check_scheduling(events, text, duration):
    """On a busy machine threads are seen late, and what others took from them looks like theirs."""
    ran = defaultdict(float)
    for e in events:
        if e.get("cat") == "sched":
            ran[e["tid"]] += e["args"]["ns"]
    for tid, ns in re.findall(r"cpu (\d+) (\d+)", text):
        ok(0.1 * int(ns) < ran[int(tid)] <= 1.01 * duration, "a thread ran as it says",
           f"{ran[int(tid)]} for {ns}")


def test_known(program):
    t, text = trace(program)
    events, about = t["traceEvents"], t["otherData"]
    end = about["duration_ns"] / 1000
    ok(isinstance(events, list) and about["dropped_events"] == 0, "a JSON object with all events",
       about)
    timed = [e for e in events if e["ph"] != "M"]
    ok(all(0 <= e["ts"] and e["ts"] + e.get("dur", 0) <= end + 0.01 for e in timed),
       "all of them within the trace")
    ok(not is_nested(events), "slices are nested", is_nested(events))
    names = {e["tid"]: e["args"]["name"] for e in of(events, "M", "thread_name")}
    ok("the holder" in names.values(), "threads have their names", names)
    ok(any(n.startswith('"\\\n\x1b[31m') for n in names.values()), "strange ones too", names)
    ok(len(of(events, "i", "thread starts")) == 2 and len(of(events, "i", "thread ends")) == 2,
       "threads start and end")
    waits = of(events, "X", "mutex")
    said = [int(ns) for ns in re.findall(r"wait mutex (\d+)", text)]
    ok(len(waits) == len(said), "waits, all of them", f"{waits} {said}")
    ok(all(w["dur"] * 1000 <= ns + 2 for w, ns in zip(waits, said)) and
       sum(w["dur"] for w in waits) > sum(said) / 2000, "as long as they were", f"{waits} {said}")
    inner = [e for e in events if e["name"] == '\x01 "quoted" \\ \u4e2d \ufffd\ufffd\ufffd \ufffd']
    ok(len(inner) == 5, "regions with strange names", {e["name"] for e in events})
    ok(all(any(r["tid"] == w["tid"] and r["ts"] <= w["ts"] and
               w["ts"] + w["dur"] <= r["ts"] + r["dur"] + 0.01 for r in inner) for w in waits),
       "waits are in their regions")
    ok(len(of(events, "X", "outer")) == 5, "regions around them")
    ok([e["args"].get("unfinished") for e in of(events, "X", "never ends")] == [True],
       "a region that does not end")
    ok([e["args"]["value"] for e in of(events, "C", "round")] == [-2, -1, 0, 1, 2], "counters")
    ok(len(of(events, "C", "heap in use")) > end / 1e6 / 0.1, "the heap, again and again")
    check_scheduling(events, text, about["duration_ns"])


def test_without_switches(program):
    """Where the kernel does not tell of switches; here since the program has few files."""
    t, text = trace(program, limit_files=100)
    ok("schedstat" in t["otherData"]["scheduling"], "the trace says how threads were watched",
       t["otherData"])
    ok(not is_nested(t["traceEvents"]), "slices are nested", is_nested(t["traceEvents"]))
    check_scheduling(t["traceEvents"], text, t["otherData"]["duration_ns"])


def best(is_good, *args, **env):
    """Who runs when is up to the machine: what does not happen at all, does not in five tries."""
    for _ in range(5):
        t, text = trace(*args, **env)
        if is_good(t, text):
            break
    return t, text


def samples_of(t):
    return [e for e in t["traceEvents"] if e.get("cat") == "cpu"]


def burners(text):
    return {int(tid) for tid in re.findall(r"cpu (\d+)", text)}


def test_samples(program):
    """Those of a CPU profile that runs at the same time."""
    t, text = best(lambda t, text: burners(text) <= {e["tid"] for e in samples_of(t)}, program,
                   KILN_CPU_PROFILE=DIR.name + "/cpu.pb.gz", KILN_CPU_RATE="1000")
    samples = samples_of(t)
    ok(samples and all(e["ph"] == "i" for e in samples), "samples of CPU time", t["otherData"])
    ok(any("burn" in e["args"]["stack"] for e in samples), "with their stacks", samples[:3])
    ok(burners(text) <= {e["tid"] for e in samples}, "of all threads that ran", text)


def test_flood(program):
    t, _ = trace(program, "flood")
    flood = of(t["traceEvents"], "C", "flood")
    dropped = t["otherData"]["dropped_events"]
    ok(dropped > 0 and len(flood) + dropped >= 800000 - 1, "what does not fit is counted",
       t["otherData"])
    ok(len(flood) > 100000, "and what fits is there", len(flood))


def test_fight(program):
    """Two threads that have to share one processor never meet at a lock."""
    t, _ = best(lambda t, _: t["otherData"]["short_waits"] > 0, program, "fight")
    waits, about = of(t["traceEvents"], "X", "mutex"), t["otherData"]
    ok(all(w["dur"] >= 1 for w in waits), "waits that are none are not drawn", waits[:9])
    ok(about["short_waits"] > 0 or len(os.sched_getaffinity(0)) < 2, "but they are counted", about)
    ok(about["dropped_events"] == 0, "and take no room", about)


def ran_late(t):
    """Milliseconds of slices that begin when the last of those told in parts has ended."""
    events = t["traceEvents"]
    end = max((p["ts"] + p["dur"] for p in of(events, "X", "ran for a part")), default=math.inf)
    return sum(e["dur"] for e in of(events, "X", "running") if e["ts"] > end - 1) / 1000


def test_busy(program):
    """Of threads that are switched all the time it is told how much they ran, until they calm down."""
    t, text = best(lambda t, _: ran_late(t) > 50, program, "turns")
    events, about = t["traceEvents"], t["otherData"]
    ok(about["busy_threads"] == 2 and about["dropped_switches"] == 0, "threads that wake each other are busy", about)
    ok(not is_nested(events), "slices are nested", is_nested(events))
    check_scheduling(events, text, about["duration_ns"])
    ok(ran_late(t) > 50, "when they have calmed down it is told when they run", f"{ran_late(t)} ms")


program = DIR.name + "/trace_known"
subprocess.run([CC, "-g", "-O2", "-D_GNU_SOURCE", "-pthread", f"-I{HERE}/../../include", "-o", program,
                HERE + "/trace_known.c"], check=True)
test_known(program)
test_without_switches(program)
test_samples(program)
test_flood(program)
test_fight(program)
test_busy(program)
print(f"1..{count}")
