"""kiln serve among hostile clients: whoever means well is served all the same, and rightly. And who may not, may not.

Prints TAP. Needs KILN and DATA. How long a good client waited, in quiet and under each attack, is printed; only a
generous bound is held against it, as the machine may have other work.
"""
import atexit
import base64
import gzip
import hashlib
import http.client
import json
import os
import re
import shutil
import signal
import ssl
import statistics
import subprocess
import sys
import threading
import time
import urllib.parse

from http_lib import DATA, IS_SLOW, KILN, TMP, check, equal, run_checks
from serve_profiles import large_profile

HERE = os.path.dirname(os.path.abspath(__file__))
PROFILE = os.path.join(DATA, "heap.pb.gz")
WINDOW = "from=2020-01-01T00:00:00&to=2030-01-01T00:00:00"
MEMORY = (4096 if IS_SLOW else 512) << 20  # sanitizers take a lot of their own
ROUNDS = 15 if IS_SLOW else 60
QUARANTINE_MB = 256  # that sanitizers keep of what was given back
LONGEST_S = 30
with open(PROFILE, "rb") as f:
    BODY = f.read()


def make_certificates():
    """An authority, a certificate of the server's, one of a client's, and one of a client's that another has signed."""
    def run(*args):
        subprocess.run(["openssl", *args], check=True, capture_output=True, cwd=TMP)
    for ca in ("ca", "other"):
        run("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", ca + ".key", "-out", ca + ".pem",
            "-subj", "/CN=" + ca, "-days", "2")
    for name, ca, more in (("server", "ca", "subjectAltName=DNS:localhost,IP:127.0.0.1\nextendedKeyUsage=serverAuth"),
                           ("renewed", "ca", "subjectAltName=DNS:localhost,IP:127.0.0.1\nextendedKeyUsage=serverAuth"),
                           ("agent", "ca", "extendedKeyUsage=clientAuth"), ("stranger", "other", "extendedKeyUsage=clientAuth")):
        with open(os.path.join(TMP, "ext"), "w") as f:
            f.write(more)
        run("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", name + ".key", "-out", name + ".csr", "-subj", "/CN=" + name)
        run("x509", "-req", "-in", name + ".csr", "-CA", ca + ".pem", "-CAkey", ca + ".key", "-CAcreateserial", "-out", name + ".pem", "-days", "2",
            "-extfile", "ext")


def path(name):
    return os.path.join(TMP, name)


class Serve:
    nfolders = 0

    def __init__(self, *args):
        Serve.nfolders += 1
        self.folder = path("data%d" % Serve.nfolders)
        self.is_tls = "--tls-cert" in args
        self.lines = []
        self.process = subprocess.Popen(
            [KILN, "serve", "--data", self.folder, "--listen", "localhost:0", "--access-log=false", "--min-free", "0",
             "--keep-raw", "0", "--keep-minute", "0", "--keep-hour", "0", *args], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        atexit.register(self.process.kill)  # of a check that fails
        for line in self.process.stderr:
            self.lines.append(line)
            found = re.search(r"listens at https?://localhost:(\d+)", line)
            if found:
                self.port = int(found[1])
                break
        else:
            raise AssertionError("it does not serve: " + "".join(self.lines))
        threading.Thread(target=lambda: self.lines.extend(self.process.stderr), daemon=True).start()

    def connect(self, client=None, timeout=LONGEST_S):
        if not self.is_tls:
            return http.client.HTTPConnection("localhost", self.port, timeout=timeout)
        context = ssl.create_default_context(cafile=path("ca.pem"))
        if client:
            context.load_cert_chain(path(client + ".pem"), path(client + ".key"))
        return http.client.HTTPSConnection("localhost", self.port, timeout=timeout, context=context)

    def ask(self, target, method="GET", body=None, headers=None, client=None):
        c = self.connect(client)
        try:
            c.request(method, target, body, headers or {})
            r = c.getresponse()
            return r.status, dict((k.lower(), v) for k, v in r.getheaders()), r.read()
        finally:
            c.close()

    def push(self, service="a", body=BODY, labels="", **kwargs):
        return self.ask("/api/0/profiles?service=%s&type=cpu&labels=%s" % (service, labels), "POST", body, **kwargs)

    def metric(self, name):
        text = self.ask("/metrics")[2].decode()
        found = re.search(r"^%s (\S+)$" % re.escape(name), text, re.M)
        return float(found[1]) if found else 0

    def refusals(self):
        answer = json.loads(self.ask("/api/1/refusals")[2])
        return {t["limit"]: t["count"] for t in answer["totals"]}

    def status(self, field):
        with open("/proc/%d/status" % self.process.pid) as f:
            return int(re.search(field + r":\s+(\d+)", f.read())[1]) * 1024

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(60)
        shutil.rmtree(self.folder, ignore_errors=True)
        return code


def until(what, f):
    for _ in range(600):
        if f():
            return
        time.sleep(0.05)
    raise AssertionError("it does not come to this: " + what)


# ---- a client that means well

def plain(data):
    return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data


def good_round(c, want):
    """Pushes a profile and reads it and the list of services back. Seconds that each of them took."""
    times = []

    def ask(target, method="GET", body=None):
        start = time.monotonic()
        c.request(method, target, body)
        r = c.getresponse()
        answer = r.read()
        times.append(time.monotonic() - start)
        equal(r.status, 200, "%s: %s" % (target, answer[:200]))
        return answer
    got = json.loads(ask("/api/0/profiles?service=good&type=heap", "POST", BODY))
    equal((got["body"]["service"], got["body"]["type"]), ("good", "heap"), "what was pushed")
    answer = plain(ask("/api/0/profiles/" + got["body"]["id"]))
    if want:
        equal(answer == want, True, "the profile comes back as it was")
    if "good" not in json.loads(ask("/api/0/services"))["body"]:
        raise AssertionError("the service is not listed")
    return times, answer


def good_client(server, rounds, want=None):
    """New connections and kept ones in turn: both must be served."""
    all_times = []
    c = server.connect()
    for i in range(rounds):
        if i % 3 == 0:
            c.close()
            c = server.connect()
        times, want = good_round(c, want)
        all_times += times
    c.close()
    return all_times, want


def figures(times):
    return "median %.1f ms, 95%% %.1f ms, most %.0f ms" % (
        statistics.median(times) * 1e3, sorted(times)[len(times) * 95 // 100] * 1e3, max(times) * 1e3)


def attack(server, kind, seconds=0):
    """A good client beside the attackers. They must have got somewhere, or it shows nothing."""
    quiet, want = good_client(server, ROUNDS)
    args = [sys.executable, "-B", os.path.join(HERE, "serve_attack.py"), kind, str(server.port)]
    attackers = subprocess.Popen(args + ([path("ca.pem")] if server.is_tls else []), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                 env={**os.environ, "PROFILE": PROFILE})
    try:
        equal(attackers.stdout.readline(), "ready\n", "the attackers")
        time.sleep(1)
        start, times = time.monotonic(), []
        while not times or time.monotonic() - start < seconds:
            times += good_client(server, ROUNDS, want)[0]
        nopen = server.metric("kiln_http_connections")
    finally:
        attackers.stdin.close()
    did = attackers.stdout.read().strip()
    attackers.wait(60)
    print("# %s%s: quiet: %s; attacked: %s; %d connections; they: %s; resident %d MB at most" % (
        kind, " (TLS)" if server.is_tls else "", figures(quiet), figures(times), nopen, did, server.status("VmHWM") >> 20))
    if max(times) > LONGEST_S:
        raise AssertionError("an answer took %.1f s" % max(times))
    equal(server.process.poll(), None, "the server has ended")
    if server.status("VmHWM") > MEMORY and not IS_SLOW:
        raise AssertionError("%d MB of memory, more than --max-memory" % (server.status("VmHWM") >> 20))
    return dict((k, int(v)) for k, v in (x.split("=") for x in did.split())), nopen


class Plain:
    """The server of most checks, and that of those with TLS."""
    process = None
    servers = {}

    def __getitem__(self, is_tls):
        if is_tls not in self.servers:
            tls = ("--tls-cert", path("server.pem"), "--tls-key", path("server.key")) if is_tls else ()
            self.servers[is_tls] = Serve("--max-memory", str(MEMORY), "--max-unpacked", "12MB", "--max-service-series", "50", "--max-connections", "3000", *tls)
        return self.servers[is_tls]

    def poll(self):
        for s in self.servers.values():
            s.process.kill()
        return 0


servers = Plain()
servers.process = servers


def for_both(name):
    """Without TLS and with it; sanitizers look at our own code, for which one of the two will do."""
    def add(f):
        for is_tls in (False,) if IS_SLOW else (False, True):
            check(name + (", by TLS" if is_tls else ""))(lambda _, is_tls=is_tls: f(servers[is_tls]))
        return f
    return add


@for_both("1000 clients whose heads never end")
def _(s):
    did, nopen = attack(s, "slow_heads")
    equal(did["connections"] >= 1000 and nopen > 900, True, "so many were there: %s, %d" % (did, nopen))


@for_both("1000 clients who stop in the handshake")
def _(s):
    did, nopen = attack(s, "slow_handshakes")
    equal(did["connections"] >= 1000 and nopen > 900, True, "so many were there: %s, %d" % (did, nopen))


@for_both("1000 clients whose bodies never end")
def _(s):
    did, nopen = attack(s, "slow_bodies")
    equal(did["connections"] >= 1000 and nopen > 900, True, "so many were there: %s, %d" % (did, nopen))


@for_both("clients that ask for much and read nothing")
def _(s):
    status, _, answer = s.push("large", large_profile())
    equal(status, 200, answer)
    did, _ = attack(s, "never_read", seconds=3)
    equal(did["connections"] >= 100, True, "so many were there: %s" % did)


@for_both("10 MB that unpack to 10 GB")
def _(s):
    before = s.refusals().get("max-unpacked", 0)
    did, _ = attack(s, "gzip_bombs")
    equal(did.get("413", 0) + did.get("503", 0) + did.get("0", 0) > 3, True, did)
    equal(set(did) <= {"413", "503", "0", "failed"}, True, "no bomb is stored: %s" % did)
    equal(s.refusals()["max-unpacked"] > before, True, "they are counted")


@for_both("labels without end")
def _(s):
    did, _ = attack(s, "labels")
    equal(did.get("200", 0) <= 50, True, "more series than may be: %s" % did)
    equal({"422", "429"} <= set(did), True, did)
    equal({"max-labels", "max-label-bytes", "max-service-series"} <= set(s.refusals()), True, s.refusals())


@for_both("what is no HTTP")
def _(s):
    did, _ = attack(s, "malformed")
    equal(did.get("400", 0) > 3, True, did)


@for_both("afterwards connections and memory are given back")
def _(s):
    for _ in range(600):
        if s.metric("kiln_http_connections") < 10 and s.metric("kiln_request_memory_bytes") < 1 << 20:
            return
        time.sleep(0.1)
    raise AssertionError("%d connections, %d bytes" % (s.metric("kiln_http_connections"), s.metric("kiln_request_memory_bytes")))


@for_both("metrics are what Prometheus takes")
def _(s):
    text = s.ask("/metrics")[2].decode()
    equal(s.ask("/debug/metrics")[0], 200, "profefe's path")
    kinds, seen = {}, set()
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            kinds[line.split()[2]] = line.split()[3]
        elif not line.startswith("#"):
            m = re.fullmatch(r'([a-z_]+)(\{(?:[a-z_]+="(?:[^"\\\n]|\\.)*",?)+\})? ([0-9.e+-]+|\+Inf)', line)
            if not m or re.sub("_(bucket|sum|count)$", "", m[1]) not in kinds and m[1] not in kinds:
                raise AssertionError(line)
            if (m[1], m[2]) in seen:
                raise AssertionError("twice: " + line)
            seen.add((m[1], m[2]))
    for name in ("profefe_api_requests_total", "kiln_refusals_total", "process_resident_memory_bytes", "kiln_store_profiles"):
        equal(name in kinds, True, name)
    equal(s.metric('profefe_api_requests_total{method="GET",path="/api/0/profiles/__pid__",code="200"}') > 10, True, "profefe's path of an id")
    done = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True)
    equal((done.returncode, done.stdout + done.stderr), (0, ""), "promtool")


@for_both("refusals are listed and logged with the limit's name")
def _(s):
    answer = json.loads(s.ask("/api/1/refusals")[2])
    limits = {x["limit"] for x in answer["latest"]}
    equal(limits <= {t["limit"] for t in answer["totals"]}, True, limits)
    for name in ("max-unpacked", "max-labels"):
        equal(any("limit=%s " % name in line for line in s.lines), True, "a line of " + name)
    equal(len([x for x in s.lines if "limit=max-labels " in x]) < 200, True, "not a line for each of them")


@for_both("it ends when it is told to")
def _(s):
    equal(s.stop(), 0)


# ---- limits, one by one

@check("each limit says its name")
def _(_):
    s = Serve("--max-body", "100KB", "--max-unpacked", "1MB", "--rate-profiles", "5", "--max-labels", "2")
    for body, limit in ((bytes(200000), "max-body"), (gzip.compress(bytes(2 << 20)), "max-unpacked")):
        status, headers, answer = s.push(body=body)
        equal((status, headers.get("x-kiln-limit")), (413, limit), answer)
    c = s.connect()
    c.request("POST", "/api/0/profiles?service=a&type=cpu", iter([bytes(60000)] * 4), {"Transfer-Encoding": "chunked"}, encode_chunked=True)
    r = c.getresponse()
    equal((r.status, r.getheader("X-Kiln-Limit")), (413, "max-body"), r.read())
    status, headers, answer = s.push(labels="a=1,b=2,c=3")
    equal((status, headers.get("x-kiln-limit")), (422, "max-labels"), answer)
    limited = [s.push() for _ in range(40)]
    equal({x[0] for x in limited}, {200, 429})
    status, headers, answer = next(x for x in limited if x[0] == 429)
    equal((status, headers["x-kiln-limit"], int(headers["retry-after"]) >= 1), (429, "rate-profiles", True), answer)
    equal(json.loads(answer)["code"], 429, answer)
    equal(set(s.refusals()), {"max-body", "max-unpacked", "max-labels", "rate-profiles"})
    equal(s.metric('kiln_refusals_total{limit="max-unpacked"}'), 1)
    equal(s.stop(), 0)
    if not IS_SLOW:  # sanitizers take as much for themselves
        s = Serve("--max-memory", "64MB", "--max-unpacked", "1GB")
        status, headers, answer = s.push(body=large_profile(27500))
        equal((status, headers.get("x-kiln-limit")), (413, "max-memory"), "it alone takes more than all: %s" % answer)
        equal(len(re.findall(r" \d+(?:\.\d\d)?[kMG]B ", json.loads(answer)["error"])), 2, "amounts have units: %s" % answer)
        equal(s.stop(), 0)
    s = Serve("--max-unpacked", "10MB", "--rate-bytes", "100KB")
    bombs = [s.push(body=gzip.compress(bytes(20 << 20))) for _ in range(2)]
    equal([(x[0], x[1].get("x-kiln-limit")) for x in bombs], [(413, "max-unpacked"), (429, "rate-bytes")], "a bomb counts with what it unpacks to")
    equal(s.stop(), 0)


@check("a bomb is known by its beginning, and its sender is told when it has sent the rest")
def _(_):
    s = Serve("--max-unpacked", "10MB")
    bomb = gzip.compress(bytes(1 << 20)) * 10000
    c = s.connect()
    c.putrequest("POST", "/api/0/profiles?service=a&type=cpu")
    c.putheader("Content-Length", str(len(bomb)))
    c.endheaders()
    c.send(bomb[:200000])
    for _ in range(100):
        if s.refusals().get("max-unpacked"):
            break
        time.sleep(0.05)
    equal((s.refusals(), s.metric("kiln_request_memory_bytes") < 1 << 20), ({"max-unpacked": 1}, True), "before all of it is there")
    c.send(bomb[200000:])
    answer = c.getresponse()
    equal((answer.status, answer.headers["x-kiln-limit"], b"unpacks to more than 10MB" in answer.read()), (413, "max-unpacked", True))
    status, _, answer = s.push(body=large_profile(27500))
    equal(status, 200, "a large one that is none: %s" % answer)
    equal(s.stop(), 0)


@check("who is too fast, or sends a bomb, is told so a little later, and keeps nobody else waiting")
def _(_):
    s = Serve("--max-unpacked", "1MB", "--rate-profiles", "1")

    def timed(f, *args, **kwargs):
        start = time.monotonic()
        return f(*args, **kwargs)[0], time.monotonic() - start
    status, took = timed(s.push, body=gzip.compress(bytes(2 << 20)))
    equal((status, took > 0.2), (413, True), took)
    for _ in range(10):
        status, took = timed(s.push)
        if status == 429:
            break
    equal((status, took > 0.2), (429, True), took)
    start, c = time.monotonic(), s.connect()  # before it sends its body
    c.putrequest("POST", "/api/0/profiles?service=a&type=cpu")
    for header in (("Content-Length", str(9 << 20)), ("Expect", "100-continue")):
        c.putheader(*header)
    c.endheaders()
    equal((c.getresponse().status, time.monotonic() - start > 0.2), (429, True))
    fast = [s.connect() for _ in range(100)]
    for c in fast:
        c.request("POST", "/api/0/profiles?service=a&type=cpu", BODY)
    equal(s.ask("/healthz")[0], 200)
    equal({c.getresponse().status for c in fast[:50]} <= {200, 429}, True)
    for c in fast[50:]:
        c.close()
    last = s.connect()
    last.request("POST", "/api/0/profiles?service=a&type=cpu", BODY)
    start = time.monotonic()
    equal((s.stop(), time.monotonic() - start < 5), (0, True), "it does not wait for them")


# ---- those who go away, and those who do not read

MERGE = "/api/0/profiles/merge?service=%s&type=cpu&" + WINDOW


def cpu(server):
    """Seconds that all its threads have worked, those that have ended, too (CPUCLOCK_SCHED of the process)."""
    return time.clock_gettime(~server.process.pid << 3 | 2)


def is_idle(server):
    return server.metric("kiln_queries_running") == server.metric("kiln_queries_waiting") == 0 and server.metric("kiln_http_requests_running") <= 1 and \
        server.metric("kiln_request_memory_bytes") < 1 << 20


@check("who goes away while his merge is being made: the work ends, and memory is given back")
def _(_):
    s = Serve("--max-queries", "4")
    for i in range(5 if IS_SLOW else 20):
        equal(s.push("long", large_profile(20000, i))[0], 200)
    until("nothing is going on", lambda: is_idle(s))
    before = cpu(s)
    status, _, answer = s.ask(MERGE % "long")
    equal((status, len(answer) > 1 << 20), (200, True))
    full, before = cpu(s) - before, cpu(s)
    memory = s.status("VmRSS")
    leaving = []
    for _ in range(20):
        c = s.connect()
        c.request("GET", MERGE % "long")
        leaving.append(c)
    until("they are worked on", lambda: s.metric("kiln_queries_running") > 0 and s.metric("kiln_queries_waiting") > 0)
    for c in leaving:
        c.close()
    until("all have ended", lambda: is_idle(s))
    spent = cpu(s) - before
    print("# a merge takes %.2f s of CPU time, 20 that were abandoned %.2f s" % (full, spent))
    equal(spent < 20 * full / 4, True, "%.2f s for 20 of %.2f s" % (spent, full))
    kept = (32 + QUARANTINE_MB * IS_SLOW) << 20
    until("memory is what it was", lambda: s.status("VmRSS") < memory + kept)
    equal(s.ask(MERGE % "long")[0], 200, "it serves on")
    equal(s.stop(), 0)


@check("who does not read what he asked for gets no more, and others do")
def _(_):
    if IS_SLOW:  # with as much memory as sanitizers need it would take long to leave much unread
        return
    s = Serve("--max-memory", "256MB")
    status, _, answer = s.push("large", large_profile())
    equal(status, 200, answer)
    readers = []

    def ask():
        c = http.client.HTTPConnection("localhost", s.port, timeout=LONGEST_S, source_address=("127.0.0.2", 0))
        c.connect()
        c.request("GET", MERGE % "large")
        readers.append(c)
        return c.getresponse()  # its head
    until("it is refused", lambda: ask().getheader("X-Kiln-Limit") == "unread")
    equal(s.metric("kiln_request_unread_bytes") > 4 << 20, True)
    status, _, answer = s.ask(MERGE % "large")
    equal(status, 200, "somebody else: %s" % answer[:300])
    for c in readers:
        c.close()
    until("memory is given back", lambda: is_idle(s) and s.metric("kiln_request_unread_bytes") == 0)
    equal(ask().status, 200, "it is forgiven")
    equal(s.refusals()["unread"] >= 1, True)
    equal(s.stop(), 0)


# ---- who may do what

TOKENS = {"reader": "read", "pusher": "write", "both": "read,write", "boss": "admin"}


def token_of(name):
    return "secret-token-of-" + name


def bearer(name):
    return {"Authorization": "Bearer " + token_of(name)}


def basic(user, password):
    return {"Authorization": "Basic " + base64.b64encode(("%s:%s" % (user, password)).encode()).decode()}


def write_tokens():
    with open(path("tokens"), "w") as f:
        f.write("# who may do what\n\n")
        for name, roles in TOKENS.items():
            token = token_of(name)
            f.write("%s %s %s\n" % (roles, "sha256:" + hashlib.sha256(token.encode()).hexdigest() if name == "both" else token, name))
        f.write("write cert:agent the-agent\n")
    password = subprocess.run(["openssl", "passwd", "-6", "-salt", "abcdefgh", "open:sesame"], check=True, capture_output=True, text=True).stdout.strip()
    with open(path("users"), "w") as f:
        f.write("ann:%s:read\n" % password)


@check("roles: read, write, both, admin, none")
def _(_):
    write_tokens()
    s = Serve("--tokens", path("tokens"), "--users", path("users"))
    reads, writes, deletes = "/api/0/services", "/api/0/profiles?service=a&type=cpu", "/api/1/delete?query=%7Bservice%3D%22zz%22%7D&dry_run=1"
    equal(s.push(headers=bearer("pusher"))[0], 200)
    for who, want in (("reader", (200, 403, 403)), ("pusher", (403, 200, 403)), ("both", (200, 200, 403)), ("boss", (200, 200, 200)),
                      ("nobody", (401, 401, 401)), (None, (401, 401, 401))):
        headers = bearer(who) if who else {}
        deleted = s.ask(deletes, "POST", b"", headers)[0]
        got = (s.ask(reads, headers=headers)[0], s.ask(writes, "POST", BODY, headers)[0], deleted if deleted in (401, 403) else 200)
        equal(got, want, who)
    for what in ("/metrics", "/debug/metrics", "/api/1/refusals", "/api/0/version", "/api/1/services"):
        equal((s.ask(what)[0], s.ask(what, headers=bearer("reader"))[0]), (401, 200), what)
    equal((s.ask("/debug/vars")[0], s.ask("/debug/vars", headers=bearer("reader"))[0]), (401, 403), "for admins")
    equal((s.ask("/healthz")[0], s.ask("/readyz")[0]), (200, 200), "anybody may know")
    equal(s.ask(reads)[1]["www-authenticate"].startswith("Basic "), True)
    refused = json.loads(s.ask("/api/1/refusals", headers=bearer("reader"))[2])
    equal({"authentication", "role"} <= {t["limit"] for t in refused["totals"]}, True, refused)
    equal("reader" in {x["who"] for x in refused["latest"]}, True, "by name")
    equal(any(token_of(t) in json.dumps(refused) + "".join(s.lines) for t in TOKENS), False, "a token is shown")
    # as a password, for clients that know nothing else: http://x:TOKEN@host/
    equal((s.ask(reads, headers=basic("x", token_of("reader")))[0], s.ask(reads, headers=basic("x", "cert:agent"))[0]), (200, 401))
    equal(s.ask(reads, headers={"Authorization": "Bearer cert:agent"})[0], 401, "a certificate's name is no token")
    for password, want in (("open:sesame", 200), ("open:sesame", 200), ("open", 401), ("", 401)):
        equal(s.ask(reads, headers=basic("ann", password))[0], want, password)
    equal(s.push(headers=basic("ann", "open:sesame"))[0], 403, "ann reads")
    for broken in ("Basic", "Basic !!!", "Basic " + "A" * 3000, "Bearer", "Bearer ", "bearer\t", "Digest x", "\x7f"):
        equal(s.ask(reads, headers={"Authorization": broken})[0], 401, broken)
    equal(s.ask(reads, headers={"Host": "any.name", **bearer("reader")})[0], 200, "with a token any name will do")
    equal(s.stop(), 0)


def refused_services(s, **headers):
    return {x["service"]: ({r["reason"]: r["count"] for r in x["reasons"]}, x["why"]) for x in json.loads(s.ask("/api/1/refusals", headers=headers)[2])["services"]}


@check("what is refused counts for its service, with the reasons")
def _(_):
    s = Serve("--max-labels", "2", "--max-body", "100KB")
    equal(s.push()[0], 200)
    equal(refused_services(s), {}, "nothing is refused yet")
    many = urllib.parse.quote("a=1,b=2,c=3")
    equal(s.ask("/api/0/profiles?service=web&type=cpu&labels=" + many, "POST", BODY)[0], 422)
    equal(s.ask("/api/0/profiles?service=web&type=cpu", "POST", b"no profile")[0], 400)
    equal(s.ask("/api/0/profiles?service=web&type=cpu", "POST", b"x" * 200000)[0], 413, "its head is enough")
    equal(s.ask("/ingest?name=" + urllib.parse.quote("sdk{a=1}") + "&format=pprof", "POST", b"\x01broken")[0], 422)
    series = [{"labels": [{"name": "service_name", "value": "alloy"}, {"name": "__name__", "value": "cpu"}], "samples": [{"rawProfile": base64.b64encode(b"\x01no").decode()}] * 2}]
    equal(s.ask("/push.v1.PusherService/Push", "POST", json.dumps({"series": series}).encode(), {"Content-Type": "application/json"})[0], 400)
    got = refused_services(s)
    equal({name: reasons for name, (reasons, _) in got.items()},
          {"web": {"max-labels": 1, "format": 1, "max-body": 1}, "sdk": {"format": 1}, "alloy": {"format": 2}})
    equal("body" in got["web"][1], True, got["web"][1])
    # What is no push is nobody's, and neither is what those say who may not push.
    s.ask("/api/1/top?service=web&limit=x")
    equal(refused_services(s), got)
    equal(s.stop(), 0)
    write_tokens()
    s = Serve("--tokens", path("tokens"))
    for headers in ({}, bearer("reader"), bearer("nobody")):
        equal(s.ask("/api/0/profiles?service=junk&type=cpu", "POST", b"x", headers)[0] in (401, 403), True)
    equal(s.ask("/api/0/profiles?service=web&type=cpu", "POST", b"x", bearer("pusher"))[0], 400)
    equal(list(refused_services(s, **bearer("reader"))), ["web"])
    equal(s.stop(), 0)


@check("tokens are read again when they change")
def _(_):
    write_tokens()
    s = Serve("--tokens", path("tokens"))
    fresh = {"Authorization": "Bearer a-fresh-token-of-somebody"}
    equal(s.ask("/api/0/version", headers=fresh)[0], 401)

    def until(text, want, headers):
        with open(path("tokens.new"), "w") as f:
            f.write(text)
        os.rename(path("tokens.new"), path("tokens"))
        for _ in range(300):
            if s.ask("/api/0/version", headers=headers)[0] == want:
                return
            time.sleep(0.1)
        raise AssertionError("it still does not answer %d" % want)
    until("read a-fresh-token-of-somebody x\n", 200, fresh)
    equal(s.ask("/api/0/version", headers=bearer("reader"))[0], 401, "the others are gone")
    with open(path("tokens"), "w") as f:
        f.write("nonsense\n")
    for _ in range(300):
        if any("tokens:1:" in line for line in s.lines):
            break
        s.ask("/api/0/version", headers=fresh)
        time.sleep(0.1)
    else:
        raise AssertionError("nothing is said of a broken file")
    equal(s.ask("/api/0/version", headers=fresh)[0], 200, "as before")
    equal(s.stop(), 0)


@check("clients without a certificate, and with one that somebody else has signed")
def _(_):
    write_tokens()
    tls = ("--tls-cert", path("server.pem"), "--tls-key", path("server.key"), "--tls-client-ca", path("ca.pem"))
    s = Serve(*tls)
    equal(s.ask("/api/0/version")[0], 403)
    equal(s.ask("/healthz")[0], 200)
    equal((s.ask("/api/0/version", client="agent")[0], s.push(client="agent")[0]), (200, 200))
    equal(s.ask("/api/1/delete?query=%7Bservice%3D%22zz%22%7D", "POST", b"", client="agent")[0], 403)
    try:
        equal(s.ask("/api/0/version", client="stranger")[0], 403)
    except (ssl.SSLError, ConnectionError):
        pass
    equal(s.refusals_of("agent")["tls-client-ca"] >= 1, True)
    equal(s.stop(), 0)
    s = Serve(*tls, "--tokens", path("tokens"))
    equal((s.ask("/api/0/version", client="agent")[0], s.push(client="agent")[0]), (403, 200), "the list says that it may write")
    equal(s.ask("/api/0/version", client="agent", headers=bearer("reader"))[0], 200, "or a token says more")
    equal(s.ask("/api/0/version", headers=bearer("reader"))[0], 403, "a token without a certificate")
    equal(s.stop(), 0)


def refusals_of(self, client):
    answer = json.loads(self.ask("/api/1/refusals", client=client)[2])
    return {t["limit"]: t["count"] for t in answer["totals"]}


Serve.refusals_of = refusals_of


def install(**files):
    """Each anew under the name that the server knows, as who renews certificates does."""
    for name, source in files.items():
        shutil.copy(path(source), path("live.tmp"))
        os.rename(path("live.tmp"), path("live." + name))


def shown_to(server, client=None):
    """Name in the certificate that a new connection gets to see."""
    c = server.connect(client)
    c.connect()
    name = c.sock.getpeercert()["subject"][0][0][1]
    c.close()
    return name


@check("files of TLS, tokens and users are read again on SIGHUP, and connections stay")
def _(_):
    write_tokens()
    install(pem="server.pem", key="server.key", ca="ca.pem", tokens="tokens", users="users")
    s = Serve("--tls-cert", path("live.pem"), "--tls-key", path("live.key"), "--tls-client-ca", path("live.ca"), "--tokens", path("live.tokens"),
              "--users", path("live.users"))

    def told(*words):
        n = len(s.lines)
        s.process.send_signal(signal.SIGHUP)
        until("a line with %s" % (words,), lambda: any(all(w in line for w in words) for line in s.lines[n:]))

    def version(c, name="reader"):
        c.request("GET", "/api/0/version", headers=bearer(name))
        r = c.getresponse()
        r.read()
        return r.status, r.getheader("Connection")
    equal(shown_to(s), "server")
    kept = s.connect("agent")
    equal(version(kept), (200, None))
    socket = kept.sock
    install(pem="renewed.pem", key="renewed.key")
    told("TLS", "have been read again")
    equal(shown_to(s), "renewed")
    equal((version(kept), kept.sock is socket), ((200, None), True), "the connection goes on")
    # broken ones
    for files, words in (({"key": "server.key"}, ("level=error", "live.key")), ({"pem": "users"}, ("level=error", "live.pem")),
                         ({"pem": "renewed.pem", "key": "renewed.key", "ca": "users"}, ("level=error", "live.ca"))):
        install(**files)
        told(*words)
        equal((shown_to(s), version(kept), kept.sock is socket), ("renewed", (200, None), True), "after %s" % files)
    install(ca="ca.pem", tokens="users")
    told("live.tokens:1:", "stay as they were")
    equal(version(kept), (200, None), "tokens stay")
    install(tokens="tokens", users="tokens")
    told("live.users:", "stay as they were")
    # without being told, by and by
    install(pem="server.pem", key="server.key", users="users")
    until("the certificate is found to have changed", lambda: shown_to(s) == "server")
    # another authority: who came by the old one shows a certificate again
    install(ca="other.pem")
    told("TLS", "have been read again")
    equal((version(kept), kept.sock), ((200, "close"), None), "it is told to come again")
    equal(version(kept)[0], 403, "and is a stranger now")
    c = s.connect("stranger")
    equal(version(c)[0], 200)
    equal(s.stop(), 0)


@check("pages of other sites, and names that are not ours")
def _(_):
    s = Serve()
    equal(s.ask("/api/0/version", headers={"Host": "evil.example"})[0], 403)
    equal((s.ask("/api/0/version", headers={"Host": "127.0.0.1:1"})[0], s.ask("/api/0/version", headers={"Host": "[::1]"})[0]), (200, 200))
    equal(s.push(headers={"Sec-Fetch-Site": "cross-site"})[0], 403)
    equal(s.push(headers={"Sec-Fetch-Site": "same-origin"})[0], 200)
    equal(s.stop(), 0)


@check("pages of sites that may ask: --cors-origins")
def _(_):
    write_tokens()
    page, asks = {"Origin": "https://g.example:3000"}, {"Access-Control-Request-Method": "GET"}
    s = Serve("--cors-origins", "https://g.example:3000", "--cors-origins", "http://b.example", "--tokens", path("tokens"))
    status, headers, body = s.ask("/api/1/top", "OPTIONS", headers={**page, **asks})
    equal((status, headers["access-control-allow-origin"], headers["access-control-allow-methods"], headers["vary"], body),
          (204, "https://g.example:3000", "GET, HEAD", "Origin", b""))
    equal("Authorization" in headers["access-control-allow-headers"], True)
    equal("access-control-allow-credentials" in headers, False)
    status, headers, _ = s.ask("/api/1/stats", headers={**page, **bearer("reader")})
    equal((status, headers["access-control-allow-origin"]), (200, "https://g.example:3000"))
    status, headers, _ = s.ask("/api/1/stats", headers=page)
    equal((status, headers["access-control-allow-origin"]), (401, "https://g.example:3000"), "errors can be read, too")
    for origin in ("https://g.example", "https://g.example:3000.evil.example", "null", "*", ""):
        status, headers, _ = s.ask("/api/1/top", "OPTIONS", headers={"Origin": origin, **asks})
        equal((status, "access-control-allow-origin" in headers, headers["vary"]), (405, False, "Origin"), origin)
    cross = {"Sec-Fetch-Site": "cross-site", **bearer("pusher")}
    equal(s.push(headers={**cross, "Origin": "http://b.example"})[0], 200)
    equal(s.push(headers={**cross, "Origin": "http://c.example"})[0], 403)
    equal("access-control-allow-origin" in s.ask("/static/fleet.js", headers={**page, **bearer("reader")})[1], False, "only the API")
    equal(s.ask("/api/1/top", "OPTIONS", headers=page)[0], 405, "that is no question of a browser")
    equal(s.stop(), 0)
    s = Serve("--cors-origins", "*")
    equal(s.ask("/api/v1/stats", headers=page)[1]["access-control-allow-origin"], "https://g.example:3000")
    equal(s.stop(), 0)
    s = Serve()
    equal([(r[0], "access-control-allow-origin" in r[1]) for r in (s.ask("/api/1/top", "OPTIONS", headers={**page, **asks}), s.ask("/api/1/stats", headers=page))],
          [(405, False), (200, False)])
    equal(s.stop(), 0)
    for origin in ("g.example", "https://g.example/", "https://", "://x"):
        equal("--cors-origins: \"%s\" is no origin" % origin in fails("--cors-origins", origin), True, origin)


def fails(*args):
    done = subprocess.run([KILN, "serve", "--data", path("none"), *args], capture_output=True, text=True, timeout=30)
    equal(done.returncode != 0, True, args)
    return done.stderr


@check("it does not start if that would be unsafe, or is not what was meant")
def _(_):
    for address in (":0", "0.0.0.0:0", "[::]:0"):
        equal("--insecure" in fails("--listen", address), True, address)
    here = ("--listen", "localhost:0")
    equal("--tls-key is missing" in fails(*here, "--tls-cert", path("server.pem")), True)
    equal("server.pem" in fails(*here, "--tls-cert", path("server.pem"), "--tls-key", path("ca.key")), True, "another's key")
    equal("nosuch.pem" in fails(*here, "--tls-cert", path("nosuch.pem"), "--tls-key", path("ca.key")), True)
    equal("--tls-client-ca" in fails(*here, "--tls-client-ca", path("ca.pem")), True)
    for text, why in (("reed abcdefghijklmnopqrst x", "tokens:1:"), ("\nread short x", "tokens:2:"), ("read sha256:12 x", "64 hex digits"),
                      ("read abcdefghijklmnopqrst", "ROLES TOKEN NAME")):
        with open(path("tokens"), "w") as f:
            f.write(text)
        equal(why in fails(*here, "--tokens", path("tokens")), True, text)
    with open(path("users"), "w") as f:
        f.write("ann:plain\n")
    equal("htpasswd" in fails(*here, "--users", path("users")), True)


make_certificates()
run_checks(servers)
