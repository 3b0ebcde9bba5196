#!/usr/bin/env python3
"""Samples of CPU and wall-clock time: every thread has its share, and stacks are whole."""
import os
import re
import subprocess
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
AGENT = os.environ.get("AGENT", HERE + "/../../build/libkiln.so")
KILN = os.environ.get("KILN", HERE + "/../../build/kiln")
DIR = tempfile.TemporaryDirectory()
count = 0


def ok(is_good, what, why=""):
    global count
    count += 1
    print(f"{'ok' if is_good else 'not ok'} {count} - {what}", flush=True)
    if not is_good and why:
        print("\n".join("# " + line for line in str(why).splitlines()), flush=True)


def build(source):
    program = f"{DIR.name}/{source.split('.')[0]}"
    compiler = os.environ.get("CXX", "g++") if source.endswith(".cc") else os.environ.get("CC", "gcc")
    subprocess.run([compiler, "-g", "-O2", "-D_GNU_SOURCE", "-pthread", "-o", program,
                    f"{HERE}/{source}"], check=True)
    return program


def run(program, *args, **env):
    """What it printed, and the profile's path."""
    path = f"{DIR.name}/profile.pb.gz"
    variable = "KILN_WALL_PROFILE" if "KILN_WALL_RATE" in env else "KILN_CPU_PROFILE"
    if os.path.exists(path):
        os.unlink(path)
    p = subprocess.run([program, *args], stdout=subprocess.PIPE, text=True, timeout=60,
                       env={**os.environ, "LD_PRELOAD": AGENT, variable: path, **env})
    ok(p.returncode == 0, f"{os.path.basename(program)} {' '.join(args)} ends as ever", p.returncode)
    return p.stdout, path


def kiln(*args):
    return subprocess.run([KILN, *args], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          text=True).stdout


def sums(path):
    """Nanoseconds by function, its callees included; comments and all."""
    text = kiln("-top", "-cum", "-unit=ns", "-nodecount=10000", "-nodefraction=0", path)
    rows = re.findall(r"^\s*\S+\s+\S+%\s+\S+%\s+(\d+)(?:ns)?\s+\S+%\s+(\S+)", text, re.M)
    total = re.search(r"of (\d+)ns total", text)
    return {name: int(ns) for ns, name in rows}, int(total[1]) if total else 0, text


def stacks(path):
    """(nanoseconds, names of functions, innermost first)"""
    found = []
    for part in kiln("-traces", "-unit=ns", path).split("-----------+")[1:]:
        lines = [line for line in part.splitlines()[1:] if line.strip()]
        m = re.match(r"\s*(\d+)ns\s+(.*)", lines[0]) if lines else None
        if m:
            found.append((int(m[1]), [m[2].strip()] + [line.strip() for line in lines[1:]]))
    return found


def judge_kinds(program, hz):
    """[(is it so, what, why not)]"""
    out, path = run(program, "300", KILN_CPU_RATE=str(hz))
    found_all = []
    truth = {line.split()[0]: int(line.split()[1]) for line in out.splitlines()}
    found, total, text = sums(path)
    for name, ns in truth.items():
        share = found.get(name, 0) / ns
        if name == "on_blocked":
            found_all.append(("block signal" in text and found.get("run_blocked", 0) / ns > 0.8,
                              f"{hz} Hz: who blocks the signal is named", text))
        elif name != "create_mixed":  # too few ticks to judge by
            found_all.append((0.85 < share < 1.15, f"{hz} Hz: {name} has its share", f"{share}\n{text}"))
    share = total / sum(truth.values())
    found_all.append((0.95 < share < 1.06, f"{hz} Hz: all of it", f"{share}\n{text}"))
    return found_all


def check_kinds(program, hz):
    """Samples are chance, and a busy machine makes it worse: what is wrong is wrong three times."""
    for _ in range(3):
        verdicts = judge_kinds(program, hz)
        if all(verdict[0] for verdict in verdicts):
            break
    for verdict in verdicts:
        ok(*verdict)


def check_stacks(program):
    _, path = run(program, KILN_CPU_RATE="1000")
    chains = {
        "in_depth": (["burn"] + ["in_depth"] * 61 + ["main"], "_start"),
        "with_alloca": (["burn", "with_alloca", "main"], "_start"),
        "with_aligned_stack": (["burn", "with_aligned_stack", "main"], "_start"),
        "in_qsort": (["burn", "compare"], "_start"),
        "on_signal": (["burn", "on_signal"], "_start"),
        "coroutine": (["burn", "coroutine"], None),  # what libc calls that is not in its list of names
        "without_description": (["burn", "without_description", "through_unknown", "main"], "_start"),
        "while_thrown": (["burn"], "_start"),
    }
    for name, (chain, root) in chains.items():
        all_ns = good_ns = 0
        example = ""
        for ns, names in stacks(path):
            names = [re.sub(r" \(inline\)$|\(.*\)$", "", n).strip() for n in names]
            names = [n for n in names if not n.startswith("thrown")]
            if name not in names:
                continue
            all_ns += ns
            start = names.index("burn") if "burn" in names else 0
            while names[start + 1:start + 2] == ["burn"]:  # so addr2line calls what is inlined there
                start += 1
            rest = names[start + len(chain):]
            if names[start:start + len(chain)] == chain and (rest[-1:] == [root] if root else len(rest) == 1):
                good_ns += ns
            else:
                example = "\n".join(names)
        ok(all_ns > 40e6 and good_ns >= 0.97 * all_ns, f"stacks of {name} are whole",
           f"{good_ns} of {all_ns}\n{example}")


def check_wall(program):
    _, path = run(program, KILN_WALL_RATE="50")
    found, _, text = sums(path)
    for name in ("works", "polls", "sleeps"):
        ok(0.8e9 < found.get(name, 0) < 1.6e9, f"wall-clock time: {name} a second", text)
    tags = kiln("-tags", path)
    ok("waiting" in tags and "running" in tags, "wall-clock time: states", tags)


kinds = build("cpu_kinds.c")
check_kinds(kinds, 100)
check_kinds(kinds, 1000)
check_stacks(build("unwind_kinds.cc"))
check_wall(build("wall_kinds.c"))
print(f"1..{count}")
