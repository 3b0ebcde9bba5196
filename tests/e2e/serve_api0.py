import datetime
import re
import subprocess
import time
import urllib.parse

from serve_lib import CPU, HEAP, KILN, TMP, Server, check, cli, done, equal, profile, raw, values

SECOND = 1000000000
T0 = 1559250605  # 2019-05-30T21:10:05Z
ALL = {"from": "2000-01-01T00:00:00", "to": "2100-01-01T00:00:00"}
ID = re.compile("^[0-9a-v]{20}$")

server = Server()


def at(second):
    return datetime.datetime.utcfromtimestamp(second).strftime("%Y-%m-%dT%H:%M:%S")


def cpu(value=1, second=T0, nanoseconds=0, **more):
    return profile({"work;main": (value, value * 10000000)}, time=second * SECOND + nanoseconds, duration=SECOND, **more)


def find(**params):
    """Metadata of what is found, or (status, text of the error)."""
    status, answer = server.get("/api/0/profiles", **{**ALL, **params})
    return answer["body"] if status == 200 else (status, answer["error"])


def ids(found):
    return [m["id"] for m in found] if isinstance(found, list) else found


def merge(**params):
    status, headers, body = server.ask("/api/0/profiles/merge?" + urllib.parse.urlencode({**ALL, **params}))
    equal((status, headers["content-type"]), (200, "application/octet-stream"))
    return body


# ---- replies as clients read them

def nothing_there():
    equal(server.ask("/api/0/services")[2], b'{"code":404,"error":"nothing found"}\n')
    equal(find(service="none"), (404, "nothing found"))


def version():
    status, headers, body = server.ask("/api/0/version")
    assert re.fullmatch(rb'\{"code":200,"body":\{"version":"[^"]+","commit":"","build_time":"","go_version":""\}\}\n', body), body
    equal((status, headers["content-type"]), (200, "application/json"))


def stored():
    status, headers, body = server.ask("/api/0/profiles?service=svc%2Fa&type=cpu&labels=region%3Deu-1%2Cdc%3Dfra",
                                       "POST", cpu())
    assert re.fullmatch(rb'\{"code":200,"body":\{"id":"[0-9a-v]{20}","type":"cpu","service":"svc/a","labels":'
                        rb'\[\{"key":"dc","value":"fra"\},\{"key":"region","value":"eu-1"\}\],'
                        rb'"created_at":"2019-05-30T21:10:05Z"\}\}\n', body), body
    equal((status, headers["content-type"]), (200, "application/json"))


def found():
    one = server.push(cpu(1, T0), service="found", type="cpu")
    two = server.push(cpu(2, T0 + 60), service="found", type="heap", labels="a=1")
    equal(list(one), ["id", "type", "service", "created_at"])
    status, headers, body = server.ask("/api/0/profiles?" + urllib.parse.urlencode({**ALL, "service": "found"}))
    equal(body, b'{"code":200,"body":[{"id":"%s","type":"cpu","service":"found","created_at":"2019-05-30T21:10:05Z"},'
          b'{"id":"%s","type":"heap","service":"found","labels":[{"key":"a","value":"1"}],'
          b'"created_at":"2019-05-30T21:11:05Z"}]}\n' % (one["id"].encode(), two["id"].encode()))
    equal((status, headers["content-type"]), (200, "application/json"))


def services():
    for name in "z", "A b", "ü<>", "a":
        server.push(cpu(), service=name, type="cpu")
    status, headers, body = server.ask("/api/0/services")
    got = server.get("/api/0/services")[1]["body"]
    equal(got, sorted(got, key=str.encode))
    assert {"z", "A b", "ü<>", "a", "svc/a"} <= set(got), got
    assert body.startswith(b'{"code":200,"body":["A b","a"'), body
    assert b"\\u003c\\u003e" in body  # as Go escapes them
    equal((status, headers["content-type"]), (200, "application/json"))


# ---- what comes back is what was pushed

def given_back(body):
    meta = server.push(body, service="back", type="cpu")
    status, headers, got = server.ask("/api/0/profiles/" + meta["id"])
    equal((status, headers["content-type"], headers["content-disposition"]),
          (200, "application/octet-stream", 'attachment; filename="%s"' % meta["id"]))
    equal(raw(got), raw(body))
    assert got.startswith(b"\x1f\x8b")


def given_back_all():
    given_back(cpu())
    given_back(cpu(pack=False))
    given_back(profile({"a;b;c": (1, 2, 3, 4), "b;c": (5, 6, 7, 8)}, types=HEAP, time=T0 * SECOND, labels={"k": "v", "ü": ""},
                       period=("space", "bytes", 524288)))
    given_back(profile({"f%d;main" % i: (i, -i) for i in range(1, 2000)}, time=T0 * SECOND))


def legacy_formats():
    text = b"heap profile: 1: 100 [2: 200] @ heapprofile\n1: 100 [2: 200] @ 0x10 0x20\n"
    meta = server.push(text, service="legacy", type="heap")
    equal(raw(server.ask("/api/0/profiles/" + meta["id"])[2]), raw(text))


def traces():
    body = b"go 1.19 trace\0\0\xff any bytes" * 100
    meta = server.push(body, service="traces", type="trace", created_at="2019-05-30T21:10:05")
    equal((meta["type"], meta["created_at"]), ("trace", "2019-05-30T21:10:05Z"))
    equal(server.ask("/api/0/profiles/" + meta["id"])[2], body)


def time_of(body, **params):
    return server.push(body, service="times", type="cpu", **params)["created_at"]


def created_at():
    equal(time_of(cpu(), created_at="2001-01-01T00:00:00"), "2019-05-30T21:10:05Z")
    equal(time_of(cpu(nanoseconds=999999999)), "2019-05-30T21:10:05Z")
    equal(time_of(cpu(second=0), created_at="2001-02-03T04:05:06"), "2001-02-03T04:05:06Z")
    before, now, after = time.time(), time_of(cpu(second=0)), time.time()
    assert at(int(before)) + "Z" <= now <= at(int(after)) + "Z", now


def any_type():
    for name in "allocs", "wall", "off_cpu", "my own type", "threads/é":
        meta = server.push(cpu(), service="types", type=" %s " % name)
        equal(meta["type"], name)
        equal(ids(find(service="types", type=name)), [meta["id"]])


# ---- labels

def labels_of(text):
    return [(x["key"], x["value"]) for x in server.push(cpu(), service="labels", type="cpu", labels=text).get("labels", [])]


def labels():
    equal(labels_of(""), [])
    equal(labels_of(",b=2,a=1,"), [("a", "1"), ("b", "2")])
    equal(labels_of(" a = 1 ,b"), [("a", "1"), ("b", "")])
    equal(labels_of("=x,a=1=2"), [("a", "1=2")])
    equal(labels_of("k%2C1=v%3D2%2Bx"), [("k,1", "v=2+x")])
    equal(sorted(labels_of("k=1,k=2")), [("k", "1"), ("k", "2")])


def label_queries():
    a = server.push(cpu(second=T0 + 1), service="lq", type="cpu", labels="region=eu,version=1")["id"]
    b = server.push(cpu(second=T0 + 2), service="lq", type="cpu", labels="region=eu,version=2")["id"]
    # Profefe loses results when an older profile arrives late.
    c = server.push(cpu(second=T0), service="lq", type="cpu", labels="region=eu,version=1")["id"]
    d = server.push(cpu(second=T0), service="lq", type="heap", labels="x=a%2Cb%2B")["id"]
    equal(ids(find(service="lq", labels="region=eu")), [c, a, b])
    equal(ids(find(service="lq", labels="version=1,region=eu")), [c, a])
    equal(ids(find(service="lq", labels="version=1", type="cpu")), [c, a])
    equal(ids(find(service="lq", labels="x=a%2Cb%2B")), [d])
    equal(find(service="lq", labels="region=us"), (404, "nothing found"))
    equal(find(service="lq", labels="version=1,region=us"), (404, "nothing found"))
    equal(ids(find(service="lq", labels=",version=2")), [b])


# ---- ranges

def ranges():
    got = [server.push(cpu(second=T0 + i, nanoseconds=500000000), service="ranges", type="cpu")["id"] for i in range(4)]

    def between(first, last, **more):
        return ids(find(service="ranges", **{"from": at(first), "to": at(last), **more}))

    equal(between(T0, T0), got[:1])
    equal(between(T0, T0 + 1), got[:2])
    equal(between(T0 + 1, T0 + 9), got[1:])
    equal(between(T0 - 9, T0 - 1), (404, "nothing found"))
    equal(between(T0, T0 + 3, limit=0), got)
    equal(between(T0, T0 + 3, limit=2), got[2:])
    equal(between(T0, T0 + 3, limit=99), got)
    equal(ids(find(service="ranges", **{"from": "0001-01-02T00:00:00", "to": "9999-12-31T23:59:59"})), got)


# ---- merge

def merged():
    for i, version in enumerate("112"):
        server.push(profile({"work;main": (1, 10), "v%s;main" % version: (2, 20)}, time=(T0 + i) * SECOND, duration=SECOND),
                    service="m", type="cpu", labels="version=" + version)
    want = {"work;main": (3, 30), "v1;main": (4, 40), "v2;main": (2, 20)}
    equal(values(merge(service="m", type="cpu")), want)
    equal(values(merge(service="m", type="cpu", labels="version=1")), {"work;main": (2, 20), "v1;main": (4, 40)})
    equal(values(merge(service="m", type="cpu", limit=1)), {"work;main": (1, 10), "v2;main": (2, 20)})
    text = raw(merge(service="m", type="cpu"))
    assert "Time: 2019-05-30 21:10:05" in text and "Duration: 3" in text, text
    equal(server.ask("/api/0/profiles/merge?" + urllib.parse.urlencode({**ALL, "service": "m", "type": "cpu"}))[1]
          ["content-disposition"], 'attachment; filename="cpu"')


def heap_in_use_is_averaged():
    for i in range(3):
        server.push(profile({"new;main": (10, 1000, 3, 300)}, types=HEAP, time=(T0 + i) * SECOND), service="avg", type="heap")
    equal(values(merge(service="avg", type="heap"), 4)["new;main"][2:], (3, 300))


# Two processes under the same labels count each for itself, and one of them begins anew.
def counts_of_processes():
    def push(i, instance, count):
        body = profile({"lock;main": (count, 10 * count)}, types=(("contentions", "count"), ("delay", "nanoseconds")),
                       time=(T0 + i) * SECOND)
        server.push(body, service="locks", type="mutex", instance_id=instance)

    for i in range(5):
        push(60 * i, "pod-a", 1000 + i)
        push(60 * i + 1, "pod-b", 10 + 2 * i)
    equal(values(merge(service="locks", type="mutex")), {"lock;main": (4 + 8, 120)})
    push(300, "pod-a", 3)
    push(301, "pod-b", 20)
    push(360, "pod-a", 4)
    equal(values(merge(service="locks", type="mutex")), {"lock;main": (4 + 4 + 10, 180)})


def not_mergeable():
    for params, text in (({}, "unknown"), ({"type": "unknown"}, "unknown"), ({"type": "trace"}, "trace")):
        status, answer = server.get("/api/0/profiles/merge", service="m", **{**ALL, **params})
        equal((status, answer), (405, {"code": 405, "error": "can't merge profiles of %s type" % text}))


def nothing_to_merge():
    for params in {"type": "cpuu"}, {"type": "cpu", "labels": "version=3"}, {"type": "cpu", "service": "mm"}, {
            "type": "cpu", "to": "2001-01-01T00:00:00"}:
        equal(server.get("/api/0/profiles/merge", **{"service": "m", **ALL, **params}),
              (404, {"code": 404, "error": "nothing found"}))


# ---- ids

def several_ids():
    a, b = (server.push(cpu(i, T0 + i), service="ids", type="cpu")["id"] for i in (1, 2))
    heap = server.push(profile({"x": (1, 1, 1, 1)}, types=HEAP, time=T0 * SECOND), service="ids", type="heap")["id"]
    for join in "+", "%2B":
        status, headers, body = server.ask("/api/0/profiles/" + a + join + b)
        equal(status, 200)
        equal(headers["content-disposition"], 'attachment; filename="%s+%s"' % (a, b))
        equal(values(body), {"work;main": (3, 30000000)})
    equal(server.get("/api/0/profiles/%s+%s" % (a, "0" * 20)), (404, {"code": 404, "error": "nothing found"}))
    status, answer = server.get("/api/0/profiles/%s+%s" % (a, heap))
    equal(status, 400)
    assert "type" in answer["error"], answer


def bad_ids():
    known = server.push(cpu(), service="bad", type="cpu")["id"]
    # Profefe takes them for prefixes, and gives some profile.
    for bad in "d", "nosuch", known[:-1], known + "0", known.upper(), "0" * 20, "..%2f" + known, "a+b", known + "+", "+", \
            "P0.svc/1/9bsv0s3ipt32jfck6kt0,k=v", "%00", "x" * 5000:
        equal(server.get("/api/0/profiles/" + bad), (404, {"code": 404, "error": "nothing found"}))


# ---- errors

BAD_TIME = 'bad request: bad "%s" timestamp "%s": time in unsupported format "%s"'
FIND_ERRORS = (
    ({"service": ""}, 'bad request: missing "service"'),
    ({"from": ""}, 'bad request: missing "from"'),
    ({"to": ""}, 'bad request: missing "to"'),
    ({"from": "x"}, BAD_TIME % ("from", "x", "x")),
    ({"to": "2019-05-30T21:10:05Z"}, BAD_TIME % ("to", "2019-05-30T21:10:05Z", "2019-05-30T21:10:05Z")),
    ({"limit": "x"}, 'bad request: bad "limit" "x": strconv.Atoi: parsing "x": invalid syntax'),
    ({"limit": "99999999999999999999"},
     'bad request: bad "limit" "99999999999999999999": strconv.Atoi: parsing "99999999999999999999": value out of range'),
    ({"limit": "-1"}, 'bad request: bad "limit" "-1": it must not be negative'),
    ({"labels": "%zz=1"}, 'bad request: bad "labels" "%zz=1": invalid URL escape "%zz"'),
    ({"from": "2019-01-02T00:00:00", "to": "2019-01-01T00:00:00"},
     "bad request: CreatedAtMin after CreatedAtMax: 2019-01-02T00:00:00Z > 2019-01-01T00:00:00Z"),
)


def find_errors():
    for params, text in FIND_ERRORS:
        equal(find(**{"service": "found", **params}), (400, text))
        status, answer = server.get("/api/0/profiles/merge", **{**ALL, "service": "found", "type": "cpu", **params})
        equal((status, answer), (400, {"code": 400, "error": text}))


def unknown_type_finds_nothing():
    assert find(service="found")
    equal(find(service="found", type="alocs"), (404, "nothing found"))
    equal(len(find(service="found", type="")), 2)


def put_errors():
    for params, text in (
            ({"type": "cpu"}, 'bad request: missing "service"'),
            ({"service": "s"}, "bad request: unknown profile type"),
            ({"service": "s", "type": "unknown"}, "bad request: unknown profile type"),
            ({"service": "s", "type": " "}, "bad request: unknown profile type"),
            ({"service": "s", "type": "a\nb"}, "bad request: unknown profile type"),
            ({"service": "s", "type": "cpu", "labels": "%zz=1"},
             'bad request: bad "labels" "%zz=1": invalid URL escape "%zz"'),
            ({"service": "s", "type": "cpu", "created_at": "yesterday"},
             'bad request: bad "created_at" "yesterday": time in unsupported format "yesterday"')):
        equal(server.push(cpu(), **params), (400, text))


def malformed_profiles():
    good = cpu()
    for body in b"", b"\0", b"text", good[:-9], good[:20], b"\x1f\x8b", profile({}, time=T0 * SECOND), b"\xff" * 3000:
        status, text = server.push(body, service="malformed", type="cpu")
        equal(status, 400)
        assert re.fullmatch(r"malformed profile \(could not parse pprof profile: .+\)", text), text
    equal(find(service="malformed"), (404, "nothing found"))


def unknown_parameters():
    meta = server.push(cpu(), service="unknown", type="cpu", instance_id="x", foo="bar")
    equal(list(meta), ["id", "type", "service", "created_at"])


# ---- HTTP

def methods():
    for path, allow in (("/api/0/profiles", "POST, GET, HEAD"), ("/api/0/profiles/merge", "GET, HEAD"),
                        ("/api/0/profiles/" + "0" * 20, "GET, HEAD"), ("/api/0/services", "GET, HEAD"),
                        ("/api/0/version", "GET, HEAD")):
        for method in "PUT", "DELETE", "OPTIONS", "PATCH":
            status, headers, body = server.ask(path, method)
            equal((status, headers["allow"], headers["content-type"], body),
                  (405, allow, "application/json", b'{"code":405,"error":"method not allowed"}\n'))


def head():
    for path in "/api/0/version", "/api/0/services", "/api/0/profiles?" + urllib.parse.urlencode({**ALL, "service": "found"}):
        status, headers, body = server.ask(path, "HEAD")
        full = server.ask(path)
        equal((status, body, headers["content-length"]), (200, b"", str(len(full[2]))))
    equal(server.ask("/api/0/profiles/" + "0" * 20, "HEAD")[0], 404)


def paths():
    meta = server.push(cpu(), service="paths", type="cpu")
    for path in "/api/0/services/", "//api/0//services", "/api/./0/x/../services", "/api/%30/services":
        equal(server.ask(path)[0], 200)
    equal(server.ask("/api/0/profiles/?service=paths&type=cpu", "POST", cpu())[0], 200)
    equal(server.ask("/api/0/profiles//" + meta["id"])[0], 200)
    for path in "/api/0", "/api/0/nothing", "/api/0/profilesXYZ", "/api/0/version/x":
        status, headers, body = server.ask(path)
        equal((status, headers["content-type"], body),
              (404, "application/json", b'{"code":404,"error":"nothing found"}\n'))
    for path in "/x", "/x/y":
        equal(server.ask(path)[2], b"404 page not found\n")


# ---- pprof

def errors_for_pprof():
    path = "/api/0/profiles/merge?" + urllib.parse.urlencode({**ALL, "service": "none", "type": "cpu"})
    text = b'{"code":404,"error":"nothing found"}\n'
    for path in path, "/api/0/profiles/nosuch":
        status, headers, body = server.ask(path, headers={"User-Agent": "Go-http-client/1.1"})
        equal((status, headers.get("x-go-pprof"), headers["content-type"], body), (404, "1", "text/plain; charset=utf-8", text))
        status, headers, body = server.ask(path, headers={"User-Agent": "curl/8"})
        equal((status, headers.get("x-go-pprof"), headers["content-type"], body), (404, None, "application/json", text))
    # What gives no profile is not for pprof.
    equal(server.ask("/api/0/profiles?service=", headers={"User-Agent": "Go-http-client/1.1"})[1]["content-type"],
          "application/json")
    equal(subprocess.run([KILN, "-top", server.url + "/api/0/profiles/nosuch"], capture_output=True, text=True).stderr
          .count("nothing found"), 1)


def symbolz():
    for path in "/symbolz", "/api/0/profiles/symbolz", "/api/1/symbolz", "/api/1/profiles/symbolz":
        for method, body in (("GET", None), ("POST", b"0x1000+0x2000")):
            status, headers, answer = server.ask(path, method, body)
            equal((status, headers["content-type"], answer), (200, "text/plain; charset=utf-8", b"num_symbols: 1\n"))


def url(**params):
    return server.url + "/api/0/profiles/merge?" + urllib.parse.urlencode({**ALL, **params})


def pprof_reads_merges():
    text = cli("-top", url(service="m", type="cpu", labels="version=1"))
    assert re.search(r"40ns +66\.67% +66\.67% +40ns +66\.67% +v1$", text, re.M), text
    text = cli("-top", "-diff_base=" + url(service="m", type="cpu", labels="version=1"), url(service="m", type="cpu", labels="version=2"))
    assert re.search(r"-40ns .* v1$", text, re.M) and re.search(r" 20ns .* v2$", text, re.M), text
    text = cli("-top", "-base=" + url(service="m", type="cpu", labels="version=1"), url(service="m", type="cpu"))
    assert re.search(r"10ns .* work$", text, re.M) and " v1\n" not in text, text


# A profile without names makes pprof ask symbolz, and an error there would end it.
def pprof_without_names():
    text = b"heap profile: 1: 100 [2: 200] @ heapprofile\n1: 100 [2: 200] @ 0x10 0x20\n"
    server.push(text, service="nameless", type="heap", created_at="2019-05-30T21:10:05")
    out = cli("-top", url(service="nameless", type="heap"))
    assert "100B" in out, out


def survives():
    equal(server.stop(), 0)
    assert "Sanitizer" not in server.log(), server.log()


for name, run in (
        ("an empty store has nothing", nothing_there), ("version", version), ("store a profile", stored), ("find profiles", found),
        ("services are sorted", services), ("a profile comes back with every field", given_back_all),
        ("legacy formats are read", legacy_formats), ("traces are kept as they are", traces),
        ("the time is the profile's, or created_at, or now", created_at), ("any type has a name", any_type),
        ("labels are read as profefe reads them", labels), ("labels are looked for", label_queries),
        ("ranges and limits", ranges), ("merges are sums", merged), ("memory in use is averaged", heap_in_use_is_averaged),
        ("processes count each for itself", counts_of_processes),
        ("traces and unknown types are not merged", not_mergeable), ("what is not there is not merged", nothing_to_merge),
        ("several ids are one profile", several_ids), ("bad ids are not found", bad_ids), ("errors of find and merge", find_errors),
        ("a misspelt type finds nothing", unknown_type_finds_nothing), ("errors of store", put_errors),
        ("malformed profiles are refused", malformed_profiles), ("unknown parameters are ignored", unknown_parameters),
        ("other methods are refused", methods), ("HEAD", head), ("paths are cleaned", paths),
        ("pprof is told what is wrong", errors_for_pprof), ("symbolz is beside every profile", symbolz),
        ("pprof reads merges, and their differences", pprof_reads_merges),
        ("pprof reads what has no names", pprof_without_names), ("the server is still well", survives)):
    check(name, run)
done()
