#!/usr/bin/env python3
"""The block and mutex profiles: who waits, who lets others wait, and that nothing else changes."""
import os
import re
import socket
import subprocess
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
AGENT = os.environ.get("AGENT", HERE + "/../../build/libkiln.so")
KILN = os.environ.get("KILN", HERE + "/../../build/kiln")
CC = os.environ.get("CC", "gcc")
CXX = os.environ.get("CXX", "g++")
DIR = tempfile.TemporaryDirectory()
count = 0


def ok(is_good, what, why=""):
    global count
    count += 1
    print(f"{'ok' if is_good else 'not ok'} {count} - {what}", flush=True)
    if not is_good and why:
        print("\n".join("# " + line for line in str(why).splitlines()), flush=True)


def build(name, *flags):
    source = [f"{HERE}/{name}.{e}" for e in ("c", "cc") if os.path.exists(f"{HERE}/{name}.{e}")][0]
    compiler = [CXX, "-std=c++20"] if source.endswith(".cc") else [CC]
    program = f"{DIR.name}/{name}"
    subprocess.run(compiler + ["-g", "-O2", "-D_GNU_SOURCE", "-pthread", f"-I{HERE}/../../include",
                               *flags, "-o", program, source], check=True)
    return program


def run(program, *args, **env):
    env = {k: str(v) for k, v in env.items()}
    return subprocess.run([program, *args], env={**os.environ, "LD_PRELOAD": AGENT, **env},
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60)


def profile(path):
    """Rows (count, delay, names of functions, innermost first), and the types."""
    text = subprocess.run([KILN, "-raw", path], stdout=subprocess.PIPE, text=True).stdout
    names, rows, types, part = {}, [], "", ""
    for line in text.splitlines():
        if line in ("Samples:", "Locations", "Mappings"):
            part = line
        elif part == "Samples:" and ":" not in line:
            types = line.strip()
        elif part == "Samples:" and re.match(r"\s+\d+\s+\d+:", line):
            values, ids = line.split(":")
            rows.append([int(v) for v in values.split()] + [ids.split()])
        elif part == "Locations":
            found = re.match(r"\s*(\d+): 0x[0-9a-f]+ (?:M=\d+ )?(\S+)", line)
            if found:
                names[found[1]] = found[2]
    return [(c, d, [names.get(i, "?") for i in ids]) for c, d, ids in rows], types


def at(rows, function):
    """Sums of the rows whose innermost function it is."""
    mine = [r for r in rows if r[2] and r[2][0] == function]
    return sum(r[0] for r in mine), sum(r[1] for r in mine)


def test_known():
    block, mutex = DIR.name + "/block", DIR.name + "/mutex"
    p = run(build("locks_known"), KILN_BLOCK_PROFILE=block, KILN_MUTEX_PROFILE=mutex)
    ok(p.returncode == 0, "a program with waits of all kinds", p.stdout)
    (waits, types), (holds, _) = profile(block), profile(mutex)
    ok(types == "contentions/count delay/nanoseconds", "sample types", types)
    held = {}
    for site, n, ns, holder in re.findall(r"wait (\w+) (\d+) (\d+) (\w*)", p.stdout):
        c, d = at(waits, site)
        # Conditions wake up for nothing; on a busy machine a thread may come too late to wait.
        ok(0.7 * int(n) <= c <= int(n) + 2, f"block has the waits of {site}", f"{c} for {n}")
        ok(0.7 < d / int(ns) < 1.02, "block has their time", f"{d} for {ns}")
        if holder:
            was = held.get(holder, (0, 0))
            held[holder] = (was[0] + int(n), was[1] + int(ns))
    for holder, (n, ns) in held.items():
        c, d = at(holds, holder)
        ok(0.7 * n <= c <= n + 2, f"mutex has the contentions of {holder}", f"{c} for {n}")
        ok(0.6 < d / ns < 1.02, "mutex has the time that it kept others", f"{d} for {ns}")
    free = [r for r in waits + holds if "take_free_locks" in r[2]]
    ok(not free, "locks that are free are not recorded", free)


def test_crowd():
    """All that wait are charged to who holds it, however many they are."""
    mutex = DIR.name + "/mutex"
    p = run(build("locks_crowd"), KILN_MUTEX_PROFILE=mutex)
    holds, _ = profile(mutex)
    said = re.findall(r"hold (\w+) (\d+)", p.stdout)
    ok(len(said) == 4, "locks that several wait for", p.stdout)
    for site, ns in said:
        c, d = at(holds, site)
        ok(c == 5 and 0.9 < d / int(ns) < 1.02, f"{site} pays for all of them", f"{c}, {d} for {ns}: {holds}")


def test_sampling():
    known = build("locks_known")
    block, mutex = DIR.name + "/block", DIR.name + "/mutex"
    p = run(known, KILN_BLOCK_PROFILE=block, KILN_BLOCK_RATE=20000000, KILN_MUTEX_PROFILE=mutex,
            KILN_MUTEX_FRACTION=3)
    ns = sum(int(n) for n in re.findall(r"wait \w+ \d+ (\d+)", p.stdout))
    n = sum(int(n) for n in re.findall(r"wait \w+ (\d+)", p.stdout))
    sites = set(re.findall(r"wait (\w+)", p.stdout))
    waits = [r for r in profile(block)[0] if r[2] and r[2][0] in sites]
    # About one of six is taken, 50 of 320: 14 % is one standard deviation.
    ok(0.4 < sum(r[1] for r in waits) / ns < 1.8, "short waits stand for others: their time",
       f"{sum(r[1] for r in waits)} for {ns}")
    ok(0.3 < sum(r[0] for r in waits) / n < 2, "and their number",
       f"{sum(r[0] for r in waits)} for {n}")
    ok(all(r[1] >= 20000000 for r in waits), "each stands for the rate at least", waits)
    holds = [r for r in profile(mutex)[0] if r[2][0].startswith("release_")]
    ok(all(r[0] % 3 == 0 for r in holds), "contentions are multiples of the fraction", holds)
    ok(0.3 < sum(r[0] for r in holds) / 140 < 2, "and as many as all of them together", holds)



def programs_that_check_themselves():
    settings = dict(KILN_BLOCK_RATE=1, KILN_MUTEX_FRACTION=1)
    for name, what in (("locks_kinds", "all kinds of mutexes return what they return without us"),
                       ("locks_cancel", "cancelled waits unwind through hooks"),
                       ("locks_cpp", "C++'s locks, conditions, latches, semaphores and atomics"),
                       ("locks_syscall", "syscall() passes on all arguments, and errno"),
                       ("locks_fork", "a child starts with empty tables, and works")):
        program = build(name)
        plain = subprocess.run([program], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                               timeout=60, env={**os.environ, "NO_AGENT": "1"})
        with_agent = run(program, **settings)
        off = run(program)
        ok(plain.returncode == 0, f"{name} by itself", plain.stdout)
        ok(with_agent.returncode == 0, what, f"{with_agent.returncode} {with_agent.stdout}")
        ok(off.returncode == 0, "the same while nothing is switched on", off.stdout)


def get(path, what):
    """A page of /debug/pprof/, from a socket."""
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(path)
        s.sendall(f"GET /debug/pprof/{what} HTTP/1.0\r\n\r\n".encode())
        answer = b"".join(iter(lambda: s.recv(65536), b""))
    return answer.decode().split("\r\n\r\n", 1)[-1]


def test_text():
    """While it runs, as text for people and older tools."""
    path = DIR.name + "/socket"
    env = {"LD_PRELOAD": AGENT, "KILN_PPROF_ADDR": "unix:" + path, "KILN_BLOCK_RATE": "1",
           "KILN_MUTEX_FRACTION": "2"}
    with subprocess.Popen([DIR.name + "/locks_known"], env={**os.environ, **env},
                          stdout=subprocess.DEVNULL) as p:
        time.sleep(0.7)
        block, mutex = get(path, "block?debug=1"), get(path, "mutex?debug=1")
        p.kill()
    row = r"\d+ \d+ @( 0x[0-9a-f]+)+\n(#\t0x[0-9a-f]+\t+[^\n]*\n)+\n"
    ok(re.fullmatch(r"--- contention:\ncycles/second=1000000000\n(" + row + ")+", block),
       "block as text", block)
    ok(re.fullmatch(r"--- mutex:\ncycles/second=1000000000\nsampling period=2\n(" + row + ")+",
                    mutex), "mutex as text", mutex)
    delays = [int(d) for d in re.findall(r"^(\d+) \d+ @", block, re.M)]
    ok(delays == sorted(delays, reverse=True), "the longest delay comes first", delays)
    ok("mutex_lock" in block and "release_mutex" in mutex, "with names", block + mutex)


def test_child():
    path = DIR.name + "/child"
    p = run(build("locks_fork"), KILN_BLOCK_RATE=1, KILN_MUTEX_FRACTION=1, CHILD_PROFILE=path)
    rows = profile(path)[0]
    ok(p.returncode == 0 and [r for r in rows if "run_child" in r[2]], "a child's profile",
       p.stdout + str(rows))
    ok(all("main" not in r[2] or "run_child" in r[2] for r in rows), "has nothing of the parent's",
       rows)
    ok(0.04 < sum(r[1] for r in rows if "run_child" in r[2]) / 1e9 < 1, "but its own waits", rows)


def test_switch():
    """Locks are watched from when that is wanted, however the program finds the functions."""
    out = DIR.name + "/switch"
    for flags in ((), ("-Wl,-z,now",), ("-Wl,-z,lazy",), ("-fno-plt",), ("-no-pie", "-fno-pie", "-Wl,-z,lazy")):
        p = run(build("locks_switch", *flags), out + ".block", out + ".mutex")
        waits, holds = profile(out + ".block")[0], profile(out + ".mutex")[0]
        mine = [sum(r[0] for r in waits if f in r[2]) for f in ("watch", "ignore")]
        ok(p.returncode == 0 and mine == [6, 0], f"waits while they are watched {' '.join(flags)}", p.stdout + str(waits))
        ok(sum(r[0] for r in holds if "meet" in r[2]) == 6, "and who let them wait", holds)


def test_protected():
    """A program may protect the table that its calls go by. What was switched on before is seen."""
    out = DIR.name + "/protected"
    program = build("locks_switch", "-Wl,-z,lazy")
    p = run(program, out + ".block", out + ".mutex", "protect", LD_BIND_NOW=1)
    seen = sum(r[0] for r in profile(out + ".block")[0] if "watch" in r[2])
    told = [f"its own calls of pthread_mutex_{what} are not seen; set KILN_MUTEX_FRACTION=1" in p.stdout for what in ("lock", "unlock")]
    ok(p.returncode == 0 and seen == 0 and all(told), "what is not seen as its call is protected is told", p.stdout)
    p = run(program, out + ".block", out + ".mutex", "protect", LD_BIND_NOW=1, KILN_MUTEX_FRACTION=1)
    seen = sum(r[0] for r in profile(out + ".block")[0] if "watch" in r[2])
    ok(p.returncode == 0 and seen == 6 and "protected" not in p.stdout, "and seen if that is set from the start", p.stdout)


test_known()
test_crowd()
test_switch()
test_protected()
test_sampling()
test_text()
test_child()
programs_that_check_themselves()
print(f"1..{count}")
