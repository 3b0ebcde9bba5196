#!/usr/bin/env python3
"""heap.py - the heap profiles: what is counted, how well it is estimated, and that programs don't notice."""
import glob, os, re, shutil, subprocess, sys, tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
AGENT = os.environ["AGENT"]
KILN = os.environ["KILN"]
CC = os.environ.get("CC", "gcc")
CXX = os.environ.get("CXX", "g++")
LIBRARIES = "/usr/lib/x86_64-linux-gnu/"
work = tempfile.mkdtemp(prefix="kiln-heap-")
ntests = nfailed = 0


def check(ok, name, *why):
    global ntests, nfailed
    ntests += 1
    nfailed += not ok
    print(f"{'ok' if ok else 'not ok'} {ntests} - {name}")
    for line in why if not ok else []:
        print("#", line)
    sys.stdout.flush()


def skip(name, why):
    global ntests
    ntests += 1
    print(f"ok {ntests} - {name} # SKIP {why}")


def build(source, *flags, name=""):
    name = os.path.join(work, os.path.splitext(source)[0] + name)
    compiler = CXX if source.endswith(".cc") else CC
    subprocess.run([compiler, "-g", "-O2", "-Wno-alloc-size-larger-than", "-I" + HERE + "/../../include", "-o", name, HERE + "/" + source, *flags, "-pthread"], check=True)
    return name


def run(program, *args, preload=(), env=(), profile="heap", timeout=120):
    """Runs it with the agent: (exit status, what it printed, its heap profile or None)."""
    path = os.path.join(work, "out.pb.gz")
    if os.path.exists(path):
        os.unlink(path)
    e = dict(os.environ, LD_PRELOAD=" ".join([AGENT, *preload]), KILN_HEAP_PROFILE=path)
    e.update(env)
    p = subprocess.run([program, *args], env=e, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=timeout)
    return p, path if os.path.exists(path) else None


def read(path):
    """{function: sums of the four values of samples whose innermost frame it is}, and the text."""
    raw = subprocess.run([KILN, "-raw", path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
    leaf = dict(re.findall(r"^ +(\d+): 0x[0-9a-f]+ M=\d+ (\S+)", raw, re.M))
    sums = {}
    for values, at in re.findall(r"^ +((?:-?\d+ +)+-?\d+): (\d+)", raw, re.M):
        had = sums.setdefault(leaf.get(at, "?"), [0] * 4)
        for i, v in enumerate(values.split()):
            had[i] += int(v)
    return sums, raw


def truth(text):
    return {f[0]: list(map(int, f[1:])) for f in map(str.split, text.splitlines()) if len(f) == 5}


def check_exact(name, program, *args, **how):
    env = dict(how.pop("env", {}), KILN_HEAP_RATE="1")
    p, profile = run(program, *args, env=env, **how)
    if p.returncode or not profile:
        check(False, name, f"exit status {p.returncode}", p.stdout, p.stderr)
        return
    got, _ = read(profile)
    wrong = [f"{k}: {got.get(k)}, should be {v}" for k, v in truth(p.stdout).items() if got.get(k) != v]
    check(not wrong and truth(p.stdout), name, *wrong)


def strdup_is_callers(program):
    """strdup is libc's own code, and allocates: it is the leaf, whatever is below it."""
    p, profile = run(program, env={"KILN_HEAP_RATE": "1"})
    top = subprocess.run([KILN, "-peek=by_strdup$", "-sample_index=alloc_objects", profile], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
    return re.search(r"100\s+100%\s+\|\s+(__)?strdup", top)


sites = build("heap_sites.c")
new = build("heap_new.cc")


def exact():
    p, profile = run(sites, env={"KILN_HEAP_RATE": "1"})
    got, raw = read(profile)
    want = truth(p.stdout)
    del want["by_strdup"]  # the leaf is libc's strdup
    wrong = [f"{k}: {got.get(k)}, should be {v}" for k, v in want.items() if got.get(k) != v]
    check(not wrong and len(want) == 10, "rate 1: every function of malloc's family, to the byte", *wrong)
    check(strdup_is_callers(sites), "what libc allocates is below the caller")
    check("alloc_objects/count alloc_space/bytes inuse_objects/count inuse_space/bytes" in raw and "PeriodType: space bytes" in raw and "Period: 1\n" in raw, "types and period are Go's")
    check(re.search(r"bytes:\[1000\]", raw), "samples have the size of their objects")
    check_exact("rate 1: every form of operator new, which still throws and calls its handler", new)
    p, _ = run(build("heap_replaced.cc"))
    check(p.stdout == "3 3\n", "a program's own operators are called by those that are made of them", p.stdout, p.stderr)


def allocators():
    for name in "libtcmalloc.so.4", "libjemalloc.so.2", "libmimalloc.so.2":
        if not os.path.exists(LIBRARIES + name):
            skip(name, "not installed")
            skip(name, "not installed")
            skip(name, "not installed")
            continue
        p, profile = run(sites, preload=[LIBRARIES + name], env={"KILN_HEAP_RATE": "1"})
        got, raw = read(profile) if profile else ({}, "")
        want = truth(p.stdout)
        want.pop("by_strdup", None)
        wrong = [f"{k}: {got.get(k)}, should be {v}" for k, v in want.items() if got.get(k) != v]
        check(p.returncode == 0 and not wrong and want and name.split(".")[0] in raw, f"behind us {name}: malloc's family", p.returncode, p.stderr, *wrong)
        # mimalloc has no exceptions, and ends the program when new fails.
        check_exact(f"behind us {name}: operator new", new, *["calm"] * ("mimalloc" in name), preload=[LIBRARIES + name])
        e = dict(os.environ, LD_PRELOAD=f"{LIBRARIES}{name} {AGENT}", KILN_HEAP_PROFILE=work + "/before.pb.gz")
        p = subprocess.run([sites], env=e, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        check(p.returncode == 0 and "comes before the agent" in p.stderr, f"before us {name}: it works, and we say that we see nothing", p.stderr)


def linked_in():
    """An allocator in the program itself, and one whose functions the program has stubs of."""
    for name, flag in ("tcmalloc", "libtcmalloc_minimal.a"), ("jemalloc", "libjemalloc.a"):
        if not os.path.exists(LIBRARIES + flag):
            skip(f"{name} linked in", "not installed")
            continue
        program = build("heap_sites.c", LIBRARIES + flag, "-lstdc++", "-lm", name=name)
        p, _ = run(program)
        check(p.returncode == 0 and "comes before the agent" in p.stderr, f"{name} linked in: it works, and we say that we see nothing", p.returncode, p.stderr)
    program = build("heap_address.c", "-no-pie", "-fno-pie")
    found = [LIBRARIES + n for n in ("libtcmalloc.so.4", "libjemalloc.so.2", "libmimalloc.so.2") if os.path.exists(LIBRARIES + n)]
    for preload in [AGENT] + [AGENT + " " + f for f in found] + [f + " " + AGENT for f in found]:
        e = dict(os.environ, LD_PRELOAD=preload, KILN_HEAP_PROFILE=work + "/address.pb.gz", KILN_HEAP_RATE="1")
        p = subprocess.run([program], env=e, stderr=subprocess.PIPE, text=True, timeout=20)
        check(p.returncode == 0, f"stubs of malloc, with {' '.join(map(os.path.basename, preload.split()))}", p.returncode, p.stderr)
        if preload.startswith(AGENT):
            found = [v for name, v in read(work + "/address.pb.gz")[0].items() if name == "main"]
            check(p.stderr == "" and found and found[0][0] >= 4000, "what is allocated through stubs is seen", found, p.stderr)


def estimates():
    """The mean of some runs is within five standard deviations."""
    sums, want, n = {}, {}, 8
    for _ in range(n):
        p, profile = run(sites, "20000", env={"KILN_HEAP_RATE": "32768"})
        got = read(profile)[0]
        want = truth(p.stdout)
        for k in want:
            for i, v in enumerate(got.get(k, [0] * 4)):
                sums.setdefault(k, [0] * 4)[i] += v
    wrong = []
    for k, v in want.items():
        if k == "by_strdup":
            continue
        samples = v[1] * n / 32768
        for i, name in enumerate(("objects", "bytes", "live objects", "live bytes")):
            bound = 5 * (1 / (samples if i < 2 else samples * v[3] / v[1])) ** 0.5
            if k == "by_growing":
                bound *= 3  # of mixed sizes, whose small ones are most
            ratio = sums[k][i] / n / v[i]
            if abs(ratio - 1) > bound:
                wrong.append(f"{k} {name}: {ratio:.3f} of the truth, may be off by {bound:.3f}")
    check(not wrong, "sampled: every place is estimated without bias", *wrong)


def behaviour():
    check_exact("errno, failures, and a realloc that fails", build("heap_errors.c"))
    threads = build("heap_threads.c")
    p, profile = run(threads, env={"KILN_HEAP_RATE": "1"})
    got = read(profile)[0] if profile else {}
    want = truth(p.stdout).get("kept_place")
    check(p.returncode == 0 and want and got.get("kept_place") == want, "threads that free each other's memory: what is left is exact", p.returncode, got.get("kept_place"), want)
    passing = got.get("passing_place", [0] * 4)
    check(passing[0] >= 800000 and passing[2] == 0, "all that was freed is gone", passing)
    for rate in "1", "4096":
        p, _ = run(build("heap_fork.c"), env={"KILN_HEAP_RATE": rate})
        check(p.returncode == 0, f"forks while threads allocate, rate {rate}", p.returncode, p.stderr)
    p, _ = run(build("heap_early.c", "-fno-builtin"), env={"KILN_HEAP_RATE": "1"})
    check(p.returncode == 0, "memory from before the agent", p.returncode, p.stderr)
    plugin = build("heap_plugin.cc", "-shared", "-fPIC")
    p, _ = run(build("heap_plugin_host.c"), plugin, env={"KILN_HEAP_RATE": "1"})
    check(p.returncode == 0, "a libstdc++ that only a plugin sees", p.returncode, p.stdout, p.stderr)
    rate = build("heap_rate.c", AGENT)
    p, profile = run(rate)
    got = read(profile)[0] if profile else {}
    check(got.get("all_place") == [500, 500000, 0, 0] and "none_place" not in got and "rare_place" not in got, "the rate changes at once, in all threads", got)


def text():
    """What pprof makes of debug=1 must be what is in the profile."""
    program = os.path.join(work, "text")
    with open(program + ".c", "w") as f:
        f.write('#include <unistd.h>\n#define main sites_main\n#include "heap_sites.c"\n#undef main\n'
                'int main(int n, char **v) { sites_main(n, v); fflush(stdout); pause(); }\n')
    subprocess.run([CC, "-g", "-O2", "-I" + HERE, "-o", program, program + ".c"], check=True)
    sock = work + "/sock"
    p = subprocess.Popen([program, "20000"], env=dict(os.environ, LD_PRELOAD=AGENT, KILN_PPROF_ADDR="unix:" + sock, KILN_HEAP_RATE="65536"), stdout=subprocess.PIPE, text=True)
    for _ in range(11):
        p.stdout.readline()
    out = work + "/heap.txt"
    get = lambda what, to: subprocess.run(["curl", "-s", "--unix-socket", sock, "http://x" + what, "-o", to], check=True)
    get("/debug/pprof/heap?debug=1", out)
    get("/debug/pprof/heap", work + "/heap.pb.gz")
    get("/debug/pprof/allocs", work + "/allocs.pb.gz")
    p.kill()
    p.wait()
    lines = open(out).read().splitlines()
    rows = [l for l in lines if re.match(r"\d+: \d+ \[\d+: \d+\] @( 0x[0-9a-f]+)+$", l)]
    sizes = [int(l.split()[1]) for l in rows]
    check(re.match(r"heap profile: \d+: \d+ \[\d+: \d+\] @ heap/131072$", lines[0]) and rows and sizes == sorted(sizes, reverse=True), "debug=1 has Go's shape, the most in use first", lines[0])
    check(any(l.startswith("# VmHWM = ") for l in lines) and any(l.startswith("# Alloc = ") for l in lines), "its tail tells of the allocator and the process")
    total = lambda path: [sum(v[i] for v in read(path)[0].values()) for i in range(4)]
    a, b = total(out), total(work + "/heap.pb.gz")
    check(all(abs(x / y - 1) < 0.02 for x, y in zip(a, b)), "read as text it says the same", a, b)
    raw = read(work + "/allocs.pb.gz")[1]
    check("alloc_space/bytes[dflt]" in raw, "allocs shows allocated space first", raw[:300])


def pushed(program):
    """Where a server gets it too, before the end: the program has ten more seconds."""
    folder = work + "/pushed"
    os.mkdir(folder)
    collector = subprocess.Popen([sys.executable, HERE + "/lib/collector.py"], cwd=folder, stdout=subprocess.PIPE, text=True)
    port = collector.stdout.readline().strip()
    env = dict(os.environ, LD_PRELOAD=AGENT, KILN_PUSH_URL="http://127.0.0.1:" + port, KILN_HEAP_AT_LIMIT="70")
    p = subprocess.Popen(["bash", "-c", f"ulimit -v 600000; exec {program} stays"], env=env, cwd=folder, stderr=subprocess.PIPE, text=True)
    line = collector.stdout.readline()
    is_alive = p.poll() is None
    said = p.stderr.readline()
    p.kill()
    p.communicate()
    collector.kill()
    collector.wait()
    got = glob.glob(folder + "/pushed.1.heap.pb.gz")
    rows, raw = read(got[0]) if got else ({}, "")
    check(is_alive and "type=heap" in line and rows.get("eating_place", [0] * 4)[3] > 100 << 20 and "% of the memory limit are used" in raw,
          "near the limit it is sent to the server as well", line, rows, said)
    check("the heap profile is written and sent" in said, "and that is told", said)


def used_up():
    """With no memory left at all."""
    program, path = build("heap_eat.c"), work + "/all.pb.gz"
    for how, kind in ("-v", "address space"), ("-d", "data"):
        env = dict(os.environ, LD_PRELOAD=AGENT, KILN_HEAP_PROFILE=path)
        p = subprocess.run(["bash", "-c", f"ulimit {how} 200000; exec {program} all"], env=env, stderr=subprocess.PIPE, text=True, timeout=60)
        got = read(path)[0].get("eating_place") if os.path.exists(path) else None
        check(got and got[3] > 100 << 20 and not p.stderr, f"at exit with all {kind} used up", got, p.stderr)
        if os.path.exists(path):
            os.unlink(path)


def limit():
    program = build("heap_eat.c")
    path = os.path.join(work, "eat.pb.gz")
    env = dict(os.environ, LD_PRELOAD=AGENT, KILN_HEAP_PROFILE=path, KILN_HEAP_AT_LIMIT="70")
    subprocess.run(["bash", "-c", f"ulimit -v 400000; exec {program}"], env=env, stderr=subprocess.DEVNULL, timeout=60)
    got = read(path + ".limit")[0].get("eating_place") if os.path.exists(path + ".limit") else None
    check(got and got[3] > 100 << 20, "a profile near ulimit -v", got)
    pushed(program)
    used_up()
    fake = work + "/group"
    os.mkdir(fake)
    script = (f"mount --bind {fake} /sys/fs/cgroup && echo 1000000000 > /sys/fs/cgroup/memory.max && echo 950000000 > /sys/fs/cgroup/memory.current &&"
              f" printf 'anon 1\\ninactive_file 1000000\\n' > /sys/fs/cgroup/memory.stat && exec timeout 1 {program}")
    if subprocess.run(["unshare", "-m", "true"], stderr=subprocess.DEVNULL).returncode or "0::" not in open("/proc/self/cgroup").read():
        skip("a profile near the limit of a control group", "no namespaces here")
        return
    os.unlink(path + ".limit")
    subprocess.run(["unshare", "-m", "bash", "-c", script], env=dict(env, KILN_HEAP_AT_LIMIT="90"), stderr=subprocess.DEVNULL)
    check(os.path.exists(path + ".limit"), "a profile near the limit of a control group")


try:
    for part in exact, allocators, linked_in, estimates, behaviour, text, limit:
        part()
finally:
    shutil.rmtree(work, ignore_errors=True)
print(f"1..{ntests}")
sys.exit(nfailed != 0)
