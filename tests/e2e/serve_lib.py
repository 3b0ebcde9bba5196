"""What tests of kiln serve share: a server, profiles to push to it, TAP.

Needs KILN in the environment. TMP goes away at the end, and so do servers that are still there.
"""
import atexit
import gzip
import http.client
import itertools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import urllib.parse

KILN = os.environ["KILN"]
IS_SLOW = os.environ.get("BUILD", "release") != "release"
TMP = tempfile.mkdtemp()
for name in [n for n in os.environ if n.startswith("KILN_") or n.lower().endswith("_proxy")] + ["NOTIFY_SOCKET"]:
    os.environ.pop(name, None)
# Times in tests are of any year, and what is old must not become sums meanwhile.
os.environ.update({"KILN_SERVE_KEEP_" + tier: "0" for tier in ("RAW", "MINUTE", "HOUR")}, HOME=TMP + "/home",
                  PPROF_TMPDIR=TMP + "/copies", TZ="UTC")
running = set()
names = itertools.count()


@atexit.register
def clean_up():
    for server in list(running):
        server.process.kill()
    shutil.rmtree(TMP, ignore_errors=True)


class Server:
    """kiln serve with a folder of its own, unless `data` is given, at a port that is free. `before` starts it."""

    def __init__(self, *args, data=None, env=None, listen="localhost:0", wait=True, before=(), program=KILN):
        self.data = data or "%s/data%d" % (TMP, next(names))
        self.lines = []
        args = ["--data", self.data] * (data != "") + ["--listen", listen] * bool(listen) + list(args)
        self.process = subprocess.Popen([*before, program, "serve", *args], stderr=subprocess.PIPE, text=True,
                                        errors="replace", env={**os.environ, **(env or {})})
        running.add(self)
        self.port = None
        while wait and not self.port:
            line = self.process.stderr.readline()
            if not line:
                raise AssertionError("it does not serve: " + "".join(self.lines))
            self.lines.append(line)
            found = re.search(r"listens at https?://\S*:(\d+),", line)
            self.port = found and int(found[1])
        self.reader = threading.Thread(target=lambda: self.lines.extend(self.process.stderr), daemon=True)
        self.reader.start()

    @property
    def url(self):
        return "http://127.0.0.1:%d" % self.port

    def ask(self, path, method="GET", body=None, headers=None, timeout=60):
        """Status, headers (names in lower case), body."""
        c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        try:
            c.request(method, path, body, headers or {})
            r = c.getresponse()
            return r.status, dict((k.lower(), v) for k, v in r.getheaders()), r.read()
        finally:
            c.close()

    def get(self, path, **params):
        """Status and JSON."""
        query = urllib.parse.urlencode(params)
        status, _, body = self.ask(path + ("?" + query if query else ""))
        return status, json.loads(body)

    def push(self, body, **params):
        """What profefe's agent does. Metadata, or (status, text of the error)."""
        status, _, answer = self.ask("/api/0/profiles?" + urllib.parse.urlencode(params), "POST", body)
        answer = json.loads(answer)
        return answer["body"] if status == 200 else (status, answer["error"])

    def stop(self, how=signal.SIGTERM):
        """The exit status. After it self.lines is all that the server said."""
        self.process.send_signal(how)
        return self.wait()

    def wait(self):
        status = self.process.wait(60)
        self.reader.join()
        running.discard(self)
        return status

    def log(self):
        return "".join(self.lines)


class SmallDisk:
    """A small file system that only the server sees, and others below /proc/PID/root."""
    MOUNT = TMP + "/small"

    def __init__(self, mb):
        os.makedirs(self.MOUNT, exist_ok=True)
        # It stays mounted as long as this process is there.
        self.holder = subprocess.Popen(["unshare", "-m", "sh", "-c", "mount -t tmpfs -o size=%dm none %s && echo here && exec cat"
                                        % (mb, self.MOUNT)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                       stderr=subprocess.DEVNULL, text=True)
        self.is_there = self.holder.stdout.readline() == "here\n"
        self.folder = "/proc/%d/root%s" % (self.holder.pid, self.MOUNT)

    def serve(self, *args):
        return Server("--rate-profiles", "0", *args, data=self.MOUNT + "/data",
                      before=["nsenter", "-t", str(self.holder.pid), "-m"])

    def fill(self, left_kb):
        """All but so much is taken by something else."""
        free = os.statvfs(self.folder)
        with open(self.folder + "/ballast", "wb") as f:
            f.truncate(0)
            os.posix_fallocate(f.fileno(), 0, max(free.f_bavail * free.f_bsize - left_kb * 1024, 4096))

    def empty(self):
        os.unlink(self.folder + "/ballast")

    def close(self):
        self.holder.stdin.close()
        self.holder.wait()


def cli(*args, ok=True):
    done = subprocess.run([KILN, *args], capture_output=True, text=True, errors="replace")
    if ok and done.returncode:
        raise AssertionError("%s: %s" % (args, done.stderr))
    return done.stdout if ok else done.stderr


# ---- profiles

def varint(n):
    n &= (1 << 64) - 1
    out = b""
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def field(number, value):
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


CPU = (("samples", "count"), ("cpu", "nanoseconds"))
HEAP = (("alloc_objects", "count"), ("alloc_space", "bytes"), ("inuse_objects", "count"), ("inuse_space", "bytes"))


def profile(stacks, types=CPU, time=0, duration=0, labels=None, period=None, pack=True):
    """`stacks` is {"leaf;caller;main": (values...)}; time and duration are nanoseconds; labels are of all samples."""
    strings = {"": 0}
    functions, out = {}, bytearray()  # bytes would be copied for each sample

    def text(s):
        return strings.setdefault(s, len(strings))

    for name, unit in types:
        out += field(1, field(1, text(name)) + field(2, text(unit)))
    tags = b"".join(field(3, field(1, text(k)) + field(2, text(v))) for k, v in (labels or {}).items())
    for stack, values in stacks.items():
        ids = [functions.setdefault(f, len(functions) + 1) for f in stack.split(";")]
        out += field(2, b"".join(field(1, i) for i in ids) + b"".join(field(2, v) for v in values) + tags)
    for name, i in functions.items():
        out += field(4, field(1, i) + field(3, 0x1000 + i) + field(4, field(1, i) + field(2, 10 + i)))
        out += field(5, field(1, i) + field(2, text(name)) + field(3, text(name)) + field(4, text("/src/%s.c" % name)))
    if period:
        name, unit, value = period
        out += field(11, field(1, text(name)) + field(2, text(unit))) + field(12, value)
    out += b"".join(field(6, s.encode()) for s in strings) + (field(9, time) if time else b"")
    out += field(10, duration) if duration else b""
    return gzip.compress(out, 1) if pack else bytes(out)


def raw(body):
    """A profile as text with everything that is in it."""
    path = "%s/raw%d" % (TMP, next(names))
    with open(path, "wb") as f:
        f.write(body)
    return cli("-raw", path)


def values(body, types=2):
    """{"leaf;caller;main": (values...)} again."""
    path = "%s/folded%d" % (TMP, next(names))
    with open(path, "wb") as f:
        f.write(body)
    out = {}
    for i in range(types):
        for line in cli("-folded", "-nodefraction=0", "-sample_index=%d" % i, path).splitlines():
            stack, value = line.rsplit(" ", 1)
            key = ";".join(reversed(stack.split(";")))
            out.setdefault(key, [0] * types)[i] = int(value)
    return {k: tuple(v) for k, v in out.items()}


# ---- TAP

count = failed = 0


def check(name, run, *args):
    """The function must not raise."""
    global count, failed
    count += 1
    try:
        run(*args)
        print("ok %d - %s" % (count, name))
    except Exception as e:
        failed += 1
        print("not ok %d - %s" % (count, name))
        for line in ("%s: %s" % (type(e).__name__, e)).splitlines()[:40]:
            print("# " + line)
        trace = sys.exc_info()[2]
        while trace:
            print("# line %d of %s" % (trace.tb_lineno, os.path.basename(trace.tb_frame.f_code.co_filename)))
            trace = trace.tb_next
    sys.stdout.flush()


def equal(got, want):
    assert got == want, "got %r\nwant %r" % (got, want)


def done():
    print("1..%d" % count)
    sys.exit(bool(failed))
