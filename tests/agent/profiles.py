#!/usr/bin/env python3
"""Every profile of a living program, read by kiln and by go tool pprof over HTTP."""
import gzip, json, os, re, shutil, subprocess, sys, tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))
from served import KILN, Folder, Served, done, ok

HEAP = "alloc_objects/count alloc_space/bytes inuse_objects/count inuse_space/bytes"
# Path, sample types as -raw shows them, period type, period, a function that is in it.
PROFILES = [
    ("/debug/pprof/profile?seconds=1", "samples/count cpu/nanoseconds", "cpu nanoseconds", 10000000, "compute"),
    ("/debug/pprof/heap", HEAP, "space bytes", 524288, "keep_some"),
    ("/debug/pprof/allocs", HEAP.replace("alloc_space/bytes", "alloc_space/bytes[dflt]"), "space bytes", 524288,
     "keep_some"),
    ("/debug/pprof/heap?seconds=1", HEAP, "space bytes", 524288, "keep_some"),
    ("/debug/pprof/mutex?seconds=1", "contentions/count delay/nanoseconds", "contentions count", 1, "hold_lock"),
    ("/debug/pprof/block?seconds=1", "contentions/count delay/nanoseconds", "contentions count", 1, "hold_lock"),
    ("/debug/pprof/goroutine", "goroutine/count", "goroutine count", 1, "compute"),
    ("/debug/pprof/threads", "goroutine/count", "goroutine count", 1, "compute"),
    ("/debug/pprof/threadcreate", "threadcreate/count", "threadcreate count", 1, "main"),
    ("/debug/pprof/my.custom", "my.custom/count", "my.custom count", 1, "main"),
    ("/debug/pprof/wall?seconds=1", None, None, None, "hold_lock"),
    ("/pprof/profile?seconds=1", "samples/count cpu/nanoseconds", "cpu nanoseconds", 10000000, "compute"),
    ("/pprof/heap", HEAP, "space bytes", 524288, "keep_some"),
    ("/pprof/growth", None, None, None, "keep_some"),
    ("/pprof/contention?seconds=1", "contentions/count delay/nanoseconds", "contentions count", 1, "hold_lock"),
]
TOOLS = [[KILN]] + ([["go", "tool", "pprof"]] if shutil.which("go") else [])


def run(tool, *args):
    r = subprocess.run(tool + list(args), capture_output=True, text=True, timeout=60)
    return r.returncode, r.stdout, r.stderr


def test_profile(s, folder, path, types, period_type, period, function):
    name = re.sub(r"\?.*", "", path)
    status, fields, data = s.get(path)
    if not ok(status == 200 and fields["Content-Type"] == "application/octet-stream", f"{path} is served", status, data):
        return
    want = name.split("/")[-1].replace("contention", "mutex") + ("-delta" if "seconds" in path and not re.search("profile|wall", path) else "")
    ok(fields["Content-Disposition"] == f'attachment; filename="{want}"', f"{path} has a name", fields)
    file = f"{folder}/{want}-{name.count('debug')}.pb.gz"
    with open(file, "wb") as f:
        f.write(data)
    gzip.decompress(data)
    for tool in TOOLS:
        label = os.path.basename(tool[0]) + ": " + path
        code, raw, errors = run(tool, "-raw", "-symbolize=none", file)
        ok(code == 0 and (types is None or f"\n{types}\n" in raw), f"{label} has its types", raw[:1000], errors)
        if period:
            ok(f"PeriodType: {period_type}\n" in raw and f"Period: {period}\n" in raw, f"{label} has its period", raw[:1000])
        # What is in use may be as much as before.
        index = ["-sample_index=alloc_space"] if "heap?seconds" in path else []
        code, top, errors = run(tool, "-top", "-cum", "-nodecount=100", *index, file)
        ok(code == 0 and re.search(rf"\s{function}( \(inline\))?$", top, re.M), f"{label} has {function}", top, errors)
        ok(not re.search("[Ww]arning|[Ee]rror|not available", errors), f"{label} is read without a warning", errors)


def test_switched(s):
    """Seconds of a profile that is off switch it on, and off again."""
    def samples(path):
        status, _, data = s.get(path)
        with tempfile.NamedTemporaryFile(suffix=".pb.gz") as f:
            f.write(data)
            f.flush()
            return sum(1 for l in run([KILN], "-raw", f.name)[1].splitlines() if re.match(r"\s+-?\d+\s+-?\d+: ", l))
    before = samples("/debug/pprof/mutex")
    ok(before > 0, "what was seen in those seconds stays in the profile", before)
    texts = [s.get("/debug/pprof/mutex?debug=1")[2] for _ in range(2)]
    ok(texts[0] == texts[1], "and it is off again", *texts)


def test_direct(s, folder):
    """By the tools' own fetching."""
    for tool in TOOLS:
        label = os.path.basename(tool[0])
        code, out, errors = run(tool, "-top", "-seconds=1", s.url("/debug/pprof/profile"))
        ok(code == 0 and re.search(r"\d+ms .*compute$|\ds .*compute$", out, re.M), f"{label} fetches a CPU profile", out, errors)
        code, out, errors = run(tool, "-list", "^compute$", s.url("/debug/pprof/profile?seconds=1"))
        ok(code == 0 and "sum += (unsigned long)i * 3;" in out, f"{label} lists the source", out, errors)
        code, out, errors = run(tool, "-tags", s.url("/debug/pprof/profile?seconds=1"))
        ok(code == 0 and 'worker: Total' in out and 'sums "up"' in out, f"{label} has the labels", out, errors)
        code, out, errors = run(tool, "-traces", s.url("/debug/pprof/threads"))
        ok(code == 0 and "run_locks" in out, f"{label} shows the threads", out, errors)


def test_delta(s, folder):
    """What a delta has is what was allocated meanwhile: 100 KB each millisecond at the most."""
    status, _, data = s.get("/debug/pprof/allocs?seconds=2")
    with open(folder + "/delta.pb.gz", "wb") as f:
        f.write(data)
    raw = run([KILN], "-raw", "-symbolize=none", folder + "/delta.pb.gz")[1]
    duration = re.search(r"Duration: (\S+)", raw)
    total = sum(int(m) for m in re.findall(r"^\s+-?\d+\s+(-?\d+)\s+-?\d+\s+-?\d+: ", raw, re.M))
    ok(duration and duration.group(1).startswith("2"), "a delta lasts as long as it was asked for", raw[:500])
    ok(10e6 < total < 300e6, f"and has what was allocated meanwhile: {total / 1e6:.0f} MB", raw[:1000])


def test_trace(s):
    status, fields, data = s.get("/debug/pprof/trace?seconds=0.5")
    ok(status == 200 and fields["Content-Disposition"] == 'attachment; filename="trace"', "trace is served", status)
    events = json.loads(data)
    events = events["traceEvents"] if isinstance(events, dict) else events
    ok(len(events) > 10, f"and is JSON: {len(events)} events")


def test_text(s):
    for name in ["heap", "allocs", "mutex", "block", "goroutine", "threads", "threadcreate", "my.custom"]:
        status, fields, text = s.get(f"/debug/pprof/{name}?debug=1")
        ok(status == 200 and fields["Content-Type"] == "text/plain; charset=utf-8" and "Content-Disposition" not in fields
           and re.search(rb"^#\t0x[0-9a-f]+\t+\w+\+0x[0-9a-f]+\t+/", text, re.M), f"{name}?debug=1 is text", text[:500])
    status, _, text = s.get("/debug/pprof/goroutine?debug=2")
    ok(status == 200 and b"compute" in text and b"hold_lock" in text, "goroutine?debug=2 has all threads", text[:2000])
    status = s.get("/debug/pprof/heap?gc=1")[0]
    ok(status == 200, "heap?gc=1")


def main():
    with Folder() as folder, Served(folder) as s:
        os.environ.update(HOME=folder, PPROF_TMPDIR=folder)
        for p in PROFILES:
            test_profile(s, folder, *p)
        test_switched(s)
        test_text(s)
        test_trace(s)
        test_delta(s, folder)
        test_direct(s, folder)
    done()


main()
