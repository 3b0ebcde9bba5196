import difflib
import gzip
import os
import re
import socket
import subprocess
import time
import urllib.parse

from serve_lib import KILN, TMP, Server, check, done, equal, field, profile

HERE = os.path.dirname(os.path.abspath(__file__))
CLIENTS = TMP + "/clients"
ALL = {"from": "2000-01-01T00:00:00", "to": "2100-01-01T00:00:00"}
GO_TYPES = {"cpu", "heap", "block", "mutex", "goroutine", "threadcreate"}
# Of the agent: names and values with all that has a meaning somewhere on the way.
LABELS = {"version": "1.0.0", "k,1": "v=2+x", "a b": "50% off&more", "empty": "", "ü/ß": "日本"}
# What `go tool pprof` starts.
GO_PPROF = subprocess.run(["go", "env", "GOTOOLDIR"], check=True, capture_output=True, text=True).stdout.strip() + "/pprof"


def run(*args, ok=True):
    p = subprocess.run(args, capture_output=True, text=True, errors="replace", cwd=TMP)
    if ok and p.returncode:
        raise AssertionError("%s: %s" % (args, p.stderr))
    return p.stdout if ok else p.stdout + p.stderr


def build():
    subprocess.run(["go", "build", "-o", CLIENTS, HERE + "/serve_clients.go"], check=True,
                   env={**os.environ, "GO111MODULE": "off", "GOFLAGS": ""})


class Pushed:
    """What a client says that it pushed: one line."""

    def __init__(self, line, folder):
        status, self.type, attempts, file, self.id = line.rstrip("\n").split("\t")
        self.status, self.attempts, self.file = int(status), int(attempts), os.path.join(folder, file)


def client(command, service, url=None, labels=None, **options):
    folder = "%s/pushed-%s-%s" % (TMP, command, service.replace("/", "_"))
    os.makedirs(folder, exist_ok=True)
    args = [CLIENTS, command, "-addr", url or server.url, "-service", service, "-out", folder]
    args += ["-labels", "\n".join("%s=%s" % pair for pair in (labels or {}).items())]
    args += ["-%s=%s" % option for option in options.items()]
    return [Pushed(line, folder) for line in run(*args).splitlines()]


def merge_url(**params):
    return server.url + "/api/0/profiles/merge?" + urllib.parse.urlencode({**ALL, **params})


def same(got, want):
    assert got == want, "\n".join(list(difflib.unified_diff(want.split("\n"), got.split("\n"), "want", "got", n=0))[:20])


def same_report(options, urls, files):
    """Both programs print of the addresses what they print of the files."""
    for program in GO_PPROF, KILN:
        want = run(program, *options, *files)
        assert want.count("\n") > 6, want
        same(run(program, *options, *urls), want)


# ---- profefe's agent

pushes = {}


def agent():
    for service, version in ("svc/a", "1.0.0"), ("svc/b", "2.0.0"):
        pushes[service] = got = client("agent", service, labels={**LABELS, "version": version}, ticks=3)
        equal([(p.status, p.attempts) for p in got], [(200, 1)] * 18)
        equal({p.type for p in got}, GO_TYPES)


def agent_labels():
    want = [{"key": k, "value": v} for k, v in sorted(LABELS.items(), key=lambda pair: pair[0].encode())]
    status, answer = server.get("/api/0/profiles", service="svc/a", **ALL)
    equal(status, 200)
    equal([m["id"] for m in answer["body"]], [p.id for p in pushes["svc/a"]])
    for meta in answer["body"]:
        equal(meta["labels"], want)
    query = ",".join("%s=%s" % (urllib.parse.quote_plus(k), urllib.parse.quote_plus(v)) for k, v in LABELS.items())
    equal(server.get("/api/0/profiles", service="svc/a", labels=query, **ALL)[1], answer)


# The first try finds nobody, a later one does.
def agent_retries():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    p = subprocess.Popen([CLIENTS, "agent", "-addr", "http://127.0.0.1:%d" % port, "-service", "late", "-types", "goroutine",
                          "-delay", "300ms", "-out", TMP], stdout=subprocess.PIPE, text=True)
    time.sleep(0.5)
    late = Server(listen="127.0.0.1:%d" % port)
    pushed = Pushed(p.communicate(timeout=60)[0], TMP)
    equal(pushed.status, 200)
    assert pushed.attempts > 1, pushed.attempts
    equal([m["id"] for m in late.get("/api/0/profiles", service="late", **ALL)[1]["body"]], [pushed.id])
    late.stop()


# A process without contention has nothing to say of it, which an agent must not try again.
def agent_gives_up():
    got = client("agent", "idle", idle="true", types="mutex")
    equal([(p.status, p.attempts) for p in got], [(400, 1)])
    assert got[0].id.startswith("malformed profile"), got[0].id


# ---- kprofefe, kubectl-profefe

def kprofefe():
    got = client("kprofefe", "shop", labels={"namespace": "prod", "from": "kube-profefe", "pod": "shop-7d9f-x2"})
    pushes["shop"] = got
    equal({p.type: p.status for p in got}, {t: 200 for t in GO_TYPES | {"allocs"}})
    status, answer = server.get("/api/0/profiles", service="shop", labels="namespace=prod,pod=shop-7d9f-x2", **ALL)
    equal((status, len(answer["body"])), (200, 7))
    equal(answer["body"][0]["labels"], [{"key": "from", "value": "kube-profefe"}, {"key": "namespace", "value": "prod"},
                                        {"key": "pod", "value": "shop-7d9f-x2"}])
    cpu = next(p for p in got if p.type == "cpu")
    assert "type=cpu" in run(KILN, "-comments", server.url + "/api/0/profiles/" + cpu.id)


def kubectl_profefe():
    lines = run(CLIENTS, "get", "-addr", server.url, "-service", "shop").splitlines()
    assert {"shop", "svc/a", "svc/b"} <= set(lines), lines
    rows = [line.split("\t") for line in lines if "\t" in line]
    equal({row[0]: row[1] for row in rows}, {p.id: p.type for p in pushes["shop"]})
    equal({row[4] for row in rows}, {"from=kube-profefe|namespace=prod|pod=shop-7d9f-x2"})
    assert all(abs(time.time() - int(row[3])) < 3600 for row in rows), rows


# ---- pprof

# Of an address pprof asks for names of what has none, and then says in -raw that it has some.
def given_back():
    for p in pushes["svc/a"] + pushes["shop"]:
        same_report(["-raw", "-symbolize=none"], [server.url + "/api/0/profiles/" + p.id], [p.file])


def files(service, kind):
    return [p.file for p in pushes[service] if p.type == kind]


def cpu_merges():
    for service in "svc/a", "svc/b":
        for options in (["-top"], ["-top", "-sample_index=samples"], ["-traces"], ["-tree", "-lines"]):
            same_report(options, [merge_url(service=service, type="cpu")], files(service, "cpu"))
    same_report(["-top"], [merge_url(service="svc/a", type="cpu", labels="version=1.0.0")], files("svc/a", "cpu"))
    ids = "+".join(p.id for p in pushes["svc/a"] if p.type == "cpu")
    same_report(["-top"], [server.url + "/api/0/profiles/" + ids], files("svc/a", "cpu"))
    # Two addresses are one profile to pprof.
    same_report(["-top"], [merge_url(service=s, type="cpu") for s in ("svc/a", "svc/b")],
                files("svc/a", "cpu") + files("svc/b", "cpu"))


def one_in_the_window():
    for p in pushes["shop"]:
        same_report(["-top"], [merge_url(service="shop", type=p.type, labels="pod=shop-7d9f-x2")], [p.file])


# What counts from the process's start, and what is in use now, do not add up; whoever wants the sum says so.
def sums_of_all_types():
    for kind in sorted(GO_TYPES):
        query = urllib.parse.urlencode({"query": '{service="svc/a",type="%s"}' % kind, "aggregate": "sum", **ALL})
        for options in (["-top"], ["-top", "-sample_index=0"]):
            same_report(options, [server.url + "/api/1/merge?" + query], files("svc/a", kind))


def merged_copy(service):
    """A local merge of a service's CPU profiles in one file."""
    path = "%s/merged-%s.pb.gz" % (TMP, service.replace("/", "_"))
    run(GO_PPROF, "-proto", "-output=" + path, *files(service, "cpu"))
    return path


def differences():
    a, b = merged_copy("svc/a"), merged_copy("svc/b")
    url_a, url_b = (merge_url(service=s, type="cpu") for s in ("svc/a", "svc/b"))
    for option in "-base", "-diff_base":
        for more in [], ["-normalize"]:
            same_report(["-top", *more, option + "=" + url_a], [url_b], [b])
            same_report(["-top", *more, option + "=" + a], [url_b], [b])
            for program in GO_PPROF, KILN:
                same(run(program, "-top", *more, option + "=" + url_a, url_b), run(program, "-top", *more, option + "=" + a, b))


def fields(message):
    """(number, value, bytes of both) of a message of profile.proto."""
    at = 0

    def number():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(message):
        start, tag = at, number()
        value = number()
        if tag & 7 == 2:
            value, at = message[at:at + value], at + value
        yield tag >> 3, value, message[start:at]


def without_names(path):
    """As of a program that knows nothing but addresses."""
    out = b""
    for number, value, all in fields(gzip.open(path).read()):
        if number == 3:
            out += field(3, b"".join(a for n, _, a in fields(value) if n < 7))
        elif number == 4:
            out += field(4, b"".join(a for n, _, a in fields(value) if n != 4))
        elif number != 5:
            out += all
    return out


def flat(text):
    """{function: flat} of -top."""
    return {line.split(None, 5)[5].replace(" (inline)", ""): line.split()[0] for line in text.splitlines() if re.match(" *[0-9.]+[a-z]* +[0-9.]+%", line)}


# Names are asked for at symbolz, and other profiles of the same program have them.
def names_of_addresses():
    path, whole = TMP + "/without", files("svc/a", "cpu")[0]
    with open(path, "wb") as f:
        f.write(without_names(whole))
    run("curl", "-sS", "-f", "--data-binary", "@" + path, server.url + "/api/0/profiles?service=nameless&type=cpu")
    options = ["-top", "-symbolize=remote", "-nodefraction=0", "-nodecount=1000"]
    want = {name: v for name, v in flat(run(GO_PPROF, *options, whole)).items() if v != "0"}
    assert len(want) > 3, want
    for program in GO_PPROF, KILN:
        got = flat(run(program, *options, merge_url(service="nameless", type="cpu")))
        equal({name: v for name, v in got.items() if v != "0"}, want)


ERRORS = (
    ({"service": "nobody", "type": "cpu"}, "nothing found"),
    ({"service": "svc/a", "type": "trace"}, "can't merge profiles of trace type"),
    ({"service": "svc/a", "type": "cpu", "from": "yesterday"}, "time in unsupported format"),
    ({"service": "svc/a", "type": "cpu", "limit": "-1"}, "must not be negative"),
    ({"type": "cpu"}, "missing"),
)


def pprof_errors():
    for params, text in ERRORS:
        for program in GO_PPROF, KILN:
            out = run(program, "-top", merge_url(**params), ok=False)
            assert text in out and "server response: 4" in out, out
    for program in GO_PPROF, KILN:
        out = run(program, "-top", server.url + "/api/0/profiles/nosuch", ok=False)
        assert "nothing found" in out and "404" in out, out


# ---- curl

def curl(*args):
    """Status, content type and body."""
    out = run("curl", "-sS", "-w", "\n%{http_code} %{content_type}", *args)
    body, _, last = out.rpartition("\n")
    status, _, kind = last.partition(" ")
    return int(status), kind, body


def curl_errors():
    for params, text in ERRORS:
        status, kind, body = curl(merge_url(**params))
        assert status in (400, 404, 405) and kind == "application/json" and text in body, (status, kind, body)
        assert body.startswith('{"code":%d,"error":"' % status), body
    equal(curl("-X", "PATCH", server.url + "/api/0/profiles")[0], 405)
    equal(curl("--data-binary", "@/dev/null", server.url + "/api/0/profiles?service=s&type=cpu")[0], 400)


def curl_pushes():
    heap = files("svc/a", "heap")[0]
    large = TMP + "/large.pb"
    with open(large, "wb") as f:
        f.write(profile({"f%d;main" % i: (i, i) for i in range(40000)}, time=1, pack=False))
    assert os.path.getsize(large) > 1 << 20
    post = server.url + "/api/0/profiles?service=curl&type=heap"
    for name, args in (("as it is", ["--data-binary", "@" + heap]),
                       ("by parts", ["-X", "POST", "-H", "Transfer-Encoding: chunked", "--data-binary", "@" + heap]),
                       ("as a file", ["-X", "POST", "-T", heap])):
        status, _, body = curl(*args, post)
        equal((name, status), (name, 200))
        id = re.search('"id":"([0-9a-v]{20})"', body)[1]
        run("curl", "-sS", "-f", "-o", TMP + "/back", server.url + "/api/0/profiles/" + id)
        same(run(KILN, "-raw", TMP + "/back"), run(KILN, "-raw", heap))
    # A megabyte makes curl ask first whether it may.
    status, _, body = curl("-H", "Expect: 100-continue", "--data-binary", "@" + large, post.replace("heap", "large"))
    equal(status, 200)
    id = re.search('"id":"([0-9a-v]{20})"', body)[1]
    same(run(KILN, "-raw", "-symbolize=none", server.url + "/api/0/profiles/" + id), run(KILN, "-raw", large))


def survives():
    equal(server.stop(), 0)
    assert "Sanitizer" not in server.log(), server.log()


build()
server = Server()
for name, function in (
        ("an agent pushes all that it has", agent), ("its labels arrive as they were", agent_labels),
        ("an agent tries again", agent_retries), ("an agent does not send again what was refused", agent_gives_up),
        ("kprofefe pushes all that it has", kprofefe), ("kubectl profefe finds it", kubectl_profefe),
        ("pprof fetches what was pushed", given_back), ("pprof: a merge is that of the files", cpu_merges),
        ("pprof: a merge of one is that one", one_in_the_window), ("pprof: sums of all types", sums_of_all_types),
        ("pprof: differences of merges", differences),
        ("pprof: names of addresses", names_of_addresses), ("pprof says what the server says", pprof_errors),
        ("curl is told what is wrong", curl_errors), ("curl pushes", curl_pushes), ("the server is still well", survives)):
    check(name, function)
done()
