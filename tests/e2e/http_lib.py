"""What tests of kiln -http share: a server, its trees, the command line's numbers, TAP.

Needs KILN and DATA in the environment. TMP goes away at the end.
"""
import atexit
import collections
import http.client
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

KILN, DATA = os.environ["KILN"], os.environ["DATA"]
IS_SLOW = os.environ.get("BUILD", "release") != "release"
API = "/ui/api/v1/"
TMP = tempfile.mkdtemp()
atexit.register(shutil.rmtree, TMP, ignore_errors=True)
os.environ.update(HOME=TMP + "/home", PPROF_TMPDIR=TMP + "/copies", TZ="UTC")
for name in ("XDG_CONFIG_HOME", "http_proxy", "HTTP_PROXY"):
    os.environ.pop(name, None)


class Server:
    def __init__(self, *args, env=None):
        self.process = subprocess.Popen([KILN, "-no_browser", "-http=localhost:", *args], stderr=subprocess.PIPE,
                                        env=env, text=True)
        atexit.register(self.process.kill)  # a test that fails leaves nobody behind who keeps its output open
        for line in self.process.stderr:
            found = re.search(r"^Serving web UI on http://localhost:(\d+)$", line)
            if found:
                self.port = int(found[1])
                break
        else:
            raise AssertionError("it does not serve")
        self.host = "localhost:%d" % self.port
        threading.Thread(target=self.process.stderr.read, daemon=True).start()

    def ask(self, path, method="GET", body=None, headers=None, timeout=60):
        c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        try:
            c.request(method, path, body, {"Host": self.host, **(headers or {})})
            r = c.getresponse()
            return r.status, dict((k.lower(), v) for k, v in r.getheaders()), r.read()
        finally:
            c.close()

    def get(self, path, **params):
        query = urllib.parse.urlencode(params)
        status, headers, body = self.ask(API + path + ("?" + query if query else ""))
        if status != 200:
            raise AssertionError("%s: %d %s" % (path, status, body.decode()))
        return json.loads(body) if headers["content-type"] == "application/json" else body

    def post(self, path, body=b"", method="POST", headers=None, **params):
        query = urllib.parse.urlencode(params)
        headers = {"X-Kiln-Token": self.get("meta")["token"], **(headers or {})}
        status, _, answer = self.ask(API + path + ("?" + query if query else ""), method, body, headers)
        return status, json.loads(answer) if answer.startswith(b"{") else answer

    def add(self, path):
        with open(path, "rb") as f:
            status, answer = self.post("profiles", f.read(), name=os.path.basename(path))
        assert status == 200, (path, answer)
        return answer

    def rss(self):
        with open("/proc/%d/status" % self.process.pid) as f:
            return int(re.search(r"VmRSS:\s+(\d+)", f.read())[1]) * 1024

    def stop(self, how=signal.SIGTERM):
        self.process.send_signal(how)
        return self.process.wait(20)


def cli(*args, ok=True):
    done = subprocess.run([KILN, *args], capture_output=True)
    if ok and done.returncode:
        raise AssertionError("%s: %s" % (args, done.stderr.decode()))
    return done.stdout if ok else done.stderr.decode()


# ---- trees

def read_varint(data, at):
    """The number there, and where the next one is."""
    value = shift = 0
    while True:
        b = data[at]
        at += 1
        value |= (b & 127) << shift
        shift += 7
        if b < 128:
            return value, at


def read_varints(data, at, n):
    out = []
    for _ in range(n):
        value, at = read_varint(data, at)
        out.append(value)
    return out, at


class Flame:
    """An x-flame answer, taken apart: nodes have path, self, lost, and both again for side b."""

    def __init__(self, data):
        assert data[:5] == b"KFLM\1" and data[6:8] == b"\0\0"
        self.has_two, self.is_inverted = bool(data[5] & 1), bool(data[5] & 2)
        size = int.from_bytes(data[8:12], "little")
        self.header = h = json.loads(data[12:12 + size])
        at, n = 12 + size, h["nodes"]
        names = ["fn", "nchild", "self", "lost"] + (["self_b", "lost_b"] if self.has_two else []) + ["inl"]
        columns = {}
        for column in names:
            columns[column], at = read_varints(data, at, n)
        assert at == len(data)
        self.columns, self.n = columns, n
        self.parent, self.names = [None] * n, [h["functions"][f][1] for f in columns["fn"]]
        self.ids = [h["functions"][f][0] for f in columns["fn"]]
        first = 1
        for i in range(n):
            for child in range(first, first + columns["nchild"][i]):
                self.parent[child] = i
            first += columns["nchild"][i]
        assert first == n or n == 1
        self.total = self.sums("self", "lost")
        self.total_b = self.sums("self_b", "lost_b") if self.has_two else [0] * n
        weight = [a + b for a, b in zip(self.total, self.total_b)]
        for i in range(2, n):  # heaviest first, then by name
            if self.parent[i] == self.parent[i - 1]:
                assert (-weight[i - 1], self.names[i - 1]) <= (-weight[i], self.names[i])

    def sums(self, own, lost):
        total = [a + b for a, b in zip(self.columns[own], self.columns[lost])]
        for i in range(self.n - 1, 0, -1):
            total[self.parent[i]] += total[i]
        return total

    def path(self, i):
        path = []
        while i:
            path.append(self.names[i])
            i = self.parent[i]
        return tuple(reversed(path))

    def selves(self, column="self"):
        out = collections.Counter()
        for i in range(self.n):
            if self.columns[column][i]:
                out[self.path(i)] += self.columns[column][i]
        return out


def number(text):
    return float(re.match(r"-?[\d.]+(e[+-]?\d+)?", text)[0])


def traces(path, unit, *args):
    """All samples as (weight, stack from root to leaf), out of -traces."""
    out = []
    text = cli("-traces", "-unit=" + unit, *args, path).decode(errors="replace")
    for block in text.split("-----------+-------------------------------------------------------\n")[1:]:
        stack, weight = [], None
        for line in block.splitlines():
            found = re.match(r"^ *(-?[\d.]+)\S*   (.*)$", line) if weight is None else None
            if found:
                weight, line = number(found[1]), " " * 13 + found[2]
            if weight is not None:
                stack.append(re.sub(r" \(inline\)$", "", line[13:]))
        if stack:
            out.append((weight, tuple(reversed(stack))))
    return out


def aggregate(samples):
    out = collections.Counter()
    for weight, stack in samples:
        if weight:
            out[stack] += weight
    return out


def top_lines(path, unit, *args):
    """Name -> (flat, cum), out of -top."""
    rows = {}
    text = cli("-top", "-trim=false", "-unit=" + unit, *args, path).decode(errors="replace")
    for line in text.split("cum%\n", 1)[1].splitlines():
        cells = line.split(None, 5)
        name = re.sub(r" \((partial-)?inline\)$", "", cells[5] if len(cells) > 5 else "")
        rows[name] = (number(cells[0]), number(cells[3]))
    return rows


# ---- checks

checks = []


def check(name):
    def add(f):
        checks.append((name, f))
        return f
    return add


def equal(got, want, what=""):
    if got != want:
        raise AssertionError("%s: %r, want %r" % (what, got, want))


def is_plain(names):
    return all(n.isprintable() and n == n.strip() and "  " not in n and "\ufffd" not in n and "(inline)" not in n for n in names)


def run_checks(server):
    """Each of them as a line of TAP; ends the program."""
    failed = 0
    try:
        for i, (name, f) in enumerate(checks):
            try:
                f(server)
                print("ok %d - %s" % (i + 1, name), flush=True)
            except Exception as e:
                failed += 1
                print("not ok %d - %s" % (i + 1, name))
                print("# %s: %s" % (type(e).__name__, "\n# ".join(str(e)[:3000].splitlines())), flush=True)
        print("1..%d" % len(checks))
    finally:
        if server.process.poll() is None:
            server.process.kill()
    sys.exit(failed > 0)
