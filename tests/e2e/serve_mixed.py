"""kiln serve where targets push different sample types, or units, as one type of profile: what most have is
told, in one unit, and what is left out is told too. Prints TAP. Needs KILN in the environment."""
import json
import time
import urllib.parse

from serve_lib import Server, check, done, equal, profile, values

NOW = int(time.time()) - 120
MS = (("samples", "count"), ("cpu", "milliseconds"))
TYPE = "process_cpu:cpu:nanoseconds:cpu:nanoseconds"
server = Server()


def push(service, body, type="cpu", **more):
    answer = server.push(body, service=service, type=type, **more)
    assert isinstance(answer, dict), answer
    return answer["id"]


def go(service, n, **labels):
    """n milliseconds of work, as Go tells it."""
    push(service, profile({"work;main": (n, n * 1000000)}, time=NOW * 10**9, duration=10**9, period=("cpu", "nanoseconds", 10000000)), **labels)


def ask(path, status=200, **params):
    got, headers, body = server.ask("/%s?%s" % (path, urllib.parse.urlencode(params)))
    equal((got, body.decode() if got != status else ""), (status, ""))
    return json.loads(body) if "json" in headers["content-type"] else body, headers


def rpc(method, status=200, **message):
    message = {"profileTypeID": TYPE, "labelSelector": "{}", "start": (NOW - 600) * 1000, "end": (NOW + 600) * 1000, **message}
    got, headers, body = server.ask("/querier.v1.QuerierService/" + method, "POST", json.dumps(message), {"Content-Type": "application/json"})
    equal((got, body if got != status else b""), (status, b""))
    return json.loads(body), headers


def says(text, *words):
    for word in words:
        assert word in text, (word, text)


def top():
    got, _ = ask("api/1/top", type="cpu")
    equal((got["unit"], got["total"], got["services"], got["profiles"]), ("nanoseconds", 10000000, 1, 1))
    equal([(r["function"], r["flat"]) for r in got["rows"]], [("work", 10000000), ("main", 0)])
    equal((got["left_out"]["profiles"], got["left_out"]["services"]), (1, 1))
    says(got["left_out"]["why"], '"batch"', "cpu in nanoseconds", "samples in count")
    got, _ = ask("api/1/top", type="cpu", by="service", group="module")
    equal([r["by"] for r in got["rows"]], ["web"])


def top_of_one():
    got, _ = ask("api/1/top", type="cpu", service="batch")
    equal((got["unit"], got["total"], "left_out" in got), ("count", 10, False))
    got, _ = ask("api/1/top", type="cpu", sample_type="samples")
    equal((got["unit"], got["total"], got["services"], "left_out" in got), ("count", 20, 2, False))
    got, _ = ask("api/1/top", type="cpu", sample_type="cpu")
    equal((got["total"], got["left_out"]["profiles"]), (10000000, 1))


def series():
    for more in ({}, {"by": "service"}, {"function": "work"}):
        got, _ = ask("api/1/series", type="cpu", step="1h", **more)
        equal([(line["unit"], sum(p[1] for p in line["points"])) for line in got["lines"]], [("nanoseconds", 10000000)])
        says(got["left_out"]["why"], '"batch"')


def merge():
    for more in ({}, {"sample_type": "cpu"}):
        got, headers = ask("api/1/merge", type="cpu", **more)
        equal(values(got), {"work;main": (10, 10000000)})
        says(headers["x-kiln-left-out"], '1 profile of 1 service is left out, as of "batch"')
        says(headers["x-kiln-merged"], "profiles=1 ")
    got, headers = ask("api/1/merge", type="cpu", sample_type="samples")
    equal((values(got, 1), "x-kiln-left-out" in headers), ({"work;main": (10,), "a;main": (10,)}, False))
    got, headers = ask("api/1/diff", type="cpu", old="service=web", new="service=web")
    equal("x-kiln-left-out" in headers, False)
    got, headers = ask("api/1/unnamed", type="cpu")
    says(headers["x-kiln-left-out"], "batch")


def page():
    """The flame graph has it, and its page gets the note."""
    fixed = "type=cpu&from=%d&to=%d" % (NOW - 600, NOW + 600)
    got, _ = ask("ui/api/v1/meta", a=fixed)
    says(json.dumps(got), "1 profile of 1 service is left out", "batch")


def grafana():
    got, headers = rpc("SelectMergeStacktraces")
    equal(int(got["flamegraph"]["total"]), 10000000)
    says(headers["x-kiln-left-out"], "batch")
    rpc("SelectMergeProfile")
    got, headers = rpc("SelectSeries", step=3600)
    equal([p["value"] for s in got["series"] for p in s["points"]], [10000000])


def in_one_service():
    """profefe refuses to merge these; so do we, but say why."""
    push("both", b"main;a 10\n")
    go("both", 1)
    says(server.get("/api/0/profiles/merge", service="both", type="cpu", **{"from": "2020-01-01T00:00:00", "to": "2100-01-01T00:00:00"})[1]["error"],
         "cannot be added", "samples in count", "cpu in nanoseconds", "name a service or a sample type")
    got, _ = ask("api/1/top", type="cpu")
    equal((got["unit"], got["total"]), ("nanoseconds", 11000000))
    server.ask("/api/1/delete?service=both", "POST")


def units():
    push("old", profile({"work;main": (3, 2240)}, MS, NOW * 10**9, 10**9, period=("cpu", "milliseconds", 10)))
    for more in ({}, {"sample_type": "cpu"}):
        got, _ = ask("api/1/top", type="cpu", **more)
        equal((got["unit"], got["total"], got["services"]), ("nanoseconds", 2250000000, 2))
        got, _ = ask("api/1/series", type="cpu", step="1h", **more)
        equal([(line["unit"], sum(p[1] for p in line["points"])) for line in got["lines"]], [("nanoseconds", 2250000000)])
    equal(ask("api/1/top", type="cpu", service="old")[0]["unit"], "milliseconds")
    equal(values(ask("api/1/merge", type="cpu")[0]), {"work;main": (13, 2250000000)})
    for selector, want in (("{}", 2250000000), ('{service_name="old"}', 2240000000)):
        got, _ = rpc("SelectSeries", step=3600, labelSelector=selector)
        equal([p["value"] for s in got["series"] for p in s["points"]], [want])
        got, _ = rpc("SelectMergeStacktraces", labelSelector=selector)
        equal(int(got["flamegraph"]["total"]), want)


def lies():
    """One that has the right sample type, but other columns, or the same one twice, or no period at all."""
    push("liar1", profile({"work;main": (1000000, 7)}, (("cpu", "nanoseconds"), ("cpu", "bytes")), NOW * 10**9))
    push("liar2", profile({"work;main": (5, 2000000)}, (("samples", "bytes"), ("cpu", "nanoseconds")), NOW * 10**9, period=("x", "y", 1)))
    got, _ = ask("api/1/merge", type="cpu", sample_type="cpu", format="top")
    equal(got["total"], 2253000000)
    got, _ = ask("api/1/merge", type="cpu", sample_type="samples", format="top")
    equal(got["total"], 23)
    push("evil\r\nX-A: b", profile({"x": (1,)}, (("", "count"),), NOW * 10**9))
    got, headers = ask("api/1/merge", type="cpu")
    equal("x-a" in headers, False)
    equal(ask("api/1/top", type="cpu", sample_type="cpu")[0]["total"], 2253000000)


def restarted():
    """What was kept of it is the same when the server starts again."""
    global server
    want = ask("api/1/top", type="cpu")[0]
    equal(server.stop(), 0)
    server = Server(data=server.data)
    got = ask("api/1/top", type="cpu")[0]
    equal((got["unit"], got["total"], got["left_out"]), (want["unit"], want["total"], want["left_out"]))


go("web", 10)
push("batch", b"main;a 10\n")
check("fleet top is of what most have", top)
check("the others can be asked for", top_of_one)
check("values over time", series)
check("merges", merge)
check("pages show what is left out", page)
check("Grafana's calls", grafana)
check("one service that pushes both", in_one_service)
check("units are converted", units)
check("a lie costs only who tells it", lies)
check("after a restart", restarted)
done()
