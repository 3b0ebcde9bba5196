"""/api/1/ of kiln serve: a real server with profiles of tests/data, asked by HTTP.

What it answers is held against the command line's reports of the same files, against the schemas in its own
OpenAPI description, and against the examples of kiln-api(7). Prints TAP. Needs KILN and DATA in the environment.
"""
import datetime
import gzip
import http.client
import json
import os
import random
import re
import shutil
import socket
import struct
import subprocess
import threading
import time
import urllib.parse

import jsonschema

from http_lib import DATA, KILN, TMP, check, equal, run_checks

HERE = os.path.dirname(os.path.abspath(__file__))
MANUAL = os.path.join(HERE, "..", "..", "man", "kiln-api.7.scd")
NOON = datetime.datetime(2026, 11, 10, 12, 0, 0)
DAY = {"from": "2026-11-10", "to": "2026-11-11"}


class Serve:
    """kiln serve on a new folder."""
    def __init__(self, folder, *args):
        self.process = subprocess.Popen(
            [KILN, "serve", "--data", TMP + "/" + folder, "--listen", "localhost:0", "--access-log=false",
             "--keep-raw", "0", "--keep-minute", "0", "--keep-hour", "0", "--min-free", "0", *args],
            stderr=subprocess.PIPE, text=True)
        for line in self.process.stderr:
            found = re.search(r"listens at http://localhost:(\d+)", line)
            if found:
                self.port = int(found[1])
                break
        else:
            raise AssertionError("it does not serve")
        threading.Thread(target=self.process.stderr.read, daemon=True).start()

    def ask(self, path, method="GET", body=None, headers=None):
        c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            c.request(method, path, body, headers or {})
            r = c.getresponse()
            got = dict((k.lower(), v) for k, v in r.getheaders())
            return r.status, got, r.readline() if got.get("content-type") == "text/event-stream" else r.read()  # which goes on
        finally:
            c.close()

    def get(self, path, method="GET", body=None, headers=None, **params):
        """An answer, which must be one that the description knows; JSON is taken apart."""
        params = {k.rstrip("_"): v for k, v in params.items()}
        target = "/api/1/" + path + ("?" + urllib.parse.urlencode(params) if params else "")
        status, got, text = self.ask(target, method, body, headers)
        if status != 200:
            raise AssertionError("%s: %d %s" % (target, status, text.decode()))
        if got["content-type"] != "application/json":
            return text
        answer = json.loads(text)
        self.hold_against_schema(path, method, answer)
        return answer

    def hold_against_schema(self, path, method, answer):
        doc = self.description()
        for pattern, methods in doc["paths"].items():
            if re.fullmatch(re.sub(r"\\{\w+\\}", ".+", re.escape(pattern)), "/api/1/" + path):
                schema = methods[method.lower()]["responses"]["200"]["content"]["application/json"]["schema"]
                jsonschema.validate(answer, {**schema, "components": doc["components"]})
                return
        raise AssertionError("nothing describes " + path)

    def description(self):
        if not hasattr(self, "doc"):
            self.doc = json.loads(self.ask("/api/1/openapi.json")[2])
        return self.doc

    def refuses(self, path, *words, status=400, method="GET"):
        got, headers, text = self.ask("/api/1/" + path, method)
        equal((got, headers["content-type"]), (status, "application/json"), path)
        error = json.loads(text)
        equal(error["code"], status, path)
        for word in words:
            if word not in error["error"]:
                raise AssertionError("%s: %r does not say %r" % (path, error["error"], word))

    def push(self, file, service, type, minute, **labels):
        query = urllib.parse.urlencode({"service": service, "type": type,
                                        "labels": ",".join("%s=%s" % kv for kv in labels.items()),
                                        "created_at": (NOON + datetime.timedelta(minutes=minute)).isoformat()})
        with open(file, "rb") as f:
            status, _, text = self.ask("/api/0/profiles?" + query, "POST", f.read())
        equal(status, 200, text)
        return json.loads(text)["body"]["id"]


def fill(server):
    """Three of version 1.0, three of 1.1 with other values, one of another service, and a heap."""
    a, b = DATA + "/worked_a.pb", DATA + "/worked_b.pb"
    server.ids = [server.push(a, "web", "cpu", m, version="1.0", region="eu") for m in (0, 1, 2)]
    server.ids += [server.push(b, "web", "cpu", m, version="1.1", region="eu") for m in (10, 11, 12)]
    server.ids += [server.push(a, "db", "cpu", 5, version="9", region="us")]
    server.ids += [server.push(DATA + "/labels.pb", "db", "wall", 6)]


def kiln(*args):
    r = subprocess.run([KILN, *args], capture_output=True, text=True)
    equal(r.returncode, 0, r.stderr)
    return r.stdout


def saved(name, data):
    path = os.path.join(TMP, name)
    with open(path, "wb") as f:
        f.write(data)
    return path


# ---- what there is

@check("services, with counts and times")
def services(server):
    got = server.get("services")
    equal(got["total"], 2)
    equal(got["services"], [
        {"name": "db", "series": 2, "profiles": 2, "first": "2026-11-10T12:05:00Z", "last": "2026-11-10T12:06:00Z"},
        {"name": "web", "series": 2, "profiles": 6, "first": "2026-11-10T12:00:00Z", "last": "2026-11-10T12:12:00Z"}])
    got = server.get("services", limit=1)
    equal((got["total"], [s["name"] for s in got["services"]]), (2, ["db"]))
    equal([s["name"] for s in server.get("services", query='{version=~"1.*"}')["services"]], ["web"])
    equal(server.get("services", query="service=nobody"), {"total": 0, "services": []})
    equal(server.get("services", from_="2027-01-01")["services"], [])


@check("types")
def types(server):
    equal([(t["name"], t["profiles"]) for t in server.get("types")["types"]], [("cpu", 7), ("wall", 1)])
    equal([t["name"] for t in server.get("types", service="web")["types"]], ["cpu"])


@check("labels, with how many values each has")
def labels(server):
    equal([(l["name"], l["values"], l["profiles"]) for l in server.get("labels")["labels"]],
          [("region", 2, 7), ("version", 3, 7)])
    equal([(l["name"], l["values"]) for l in server.get("labels", service="web")["labels"]], [("region", 1), ("version", 2)])


@check("values of a label")
def label_values(server):
    got = server.get("labels/version", service="web")
    equal([(v["name"], v["series"], v["profiles"]) for v in got["values"]], [("1.0", 1, 3), ("1.1", 1, 3)])
    equal(got["values"][0]["last"], "2026-11-10T12:02:00Z")
    equal([v["name"] for v in server.get("labels/service")["values"]], ["db", "web"])
    equal(server.get("labels/app.kubernetes.io%2Fname")["values"], [])


# ---- profiles

@check("profiles are found by selector and time, the newest first to be kept")
def profiles(server):
    def found(**params):
        got = server.get("profiles", **params)
        return [server.ids.index(p["id"]) for p in got["profiles"]], got["more"]
    equal(found(**DAY), ([0, 1, 2, 6, 7, 3, 4, 5], False))
    equal(found(**DAY, limit=2), ([4, 5], True))
    equal(found(**DAY, limit=8)[1], False)
    equal(found(**DAY, query="version!=1.0,type=cpu")[0], [6, 3, 4, 5])
    equal(found(**DAY, query="region!~e.")[0], [6, 7])
    equal(found(**DAY, query='{version=""}')[0], [7])
    equal(found(from_="2026-11-10T12:01:00Z", to="2026-11-10T12:02:00Z")[0], [1, 2])
    equal(found(from_="2026-11-10T13:05:00+01:00", to="1794312360")[0], [6, 7])
    equal(found()[0], [], "the last hour")
    p = server.get("profiles", **DAY, service="web", limit=1)["profiles"][0]
    equal((p["service"], p["type"], p["created"], p["samples"]), ("web", "cpu", "2026-11-10T12:12:00Z", 4))
    equal(p["labels"], [{"key": "region", "value": "eu"}, {"key": "version", "value": "1.1"}])


@check("one profile, as it came and in other forms")
def one_profile(server):
    path = saved("one.pb.gz", server.get("profiles/" + server.ids[0]))
    equal(kiln("-raw", path), kiln("-raw", DATA + "/worked_a.pb"))
    equal(server.get("profiles/" + server.ids[0], format="folded").decode(), kiln("-folded", DATA + "/worked_a.pb"))
    server.refuses("profiles/nosuch", "nosuch", status=404)
    server.refuses("profiles/00000000000000000000", status=404)


# ---- merges

A3, B3 = [DATA + "/worked_a.pb"] * 3, [DATA + "/worked_b.pb"] * 3
WEB = {"service": "web", "type": "cpu", **DAY}


@check("a merge is what the command line makes of the files")
def merge(server):
    path = saved("merged.pb.gz", server.get("merge", **WEB, query="version=1.0"))
    equal(kiln("-traces", path), kiln("-traces", *A3))
    for format, report in (("folded", "-folded"), ("tree", "-tree"), ("text", "-top"), ("dot", "-dot")):
        got = server.get("merge", **WEB, format=format).decode()
        want = kiln(report, "-nodecount=100", *A3, *B3)
        hide = lambda text: re.sub(r"(?m)^(Time|Duration):.*\n|label=\"File.*", "", text)
        equal(hide(got), hide(want), format)
    equal(server.get("merge", **WEB, format="flamegraph")[:5], b"<?xml")
    if b"samples/count" not in server.get("merge", **WEB, format="raw"):
        raise AssertionError("no tables")


@check("a merge says what it is made of")
def merged_of(server):
    status, headers, _ = server.ask("/api/1/merge?" + urllib.parse.urlencode(WEB))
    got = dict(part.split("=") for part in headers["x-kiln-merged"].split())
    equal((status, got["profiles"], got["series"]), (200, "6", "2"))
    equal((got["first"], got["last"]), ("2026-11-10T12:00:00Z", "2026-11-10T12:12:00Z"))


@check("functions of a merge")
def merge_top(server):
    got = server.get("merge", **WEB, format="top", query="version=1.0")
    equal((got["type"], got["unit"], got["total"], got["functions"]), ("cpu", "nanoseconds", 3000000000, 5))
    rows = {r["function"]: (r["flat"], r["cum"]) for r in got["rows"]}
    equal(rows["rec"], (1200000000, 1200000000))
    equal(rows["main"], (0, 3000000000))
    equal([r["function"] for r in got["rows"]][:2], ["rec", "c"])
    equal(server.get("merge", **WEB, format="top", sort="cum", limit=1)["rows"][0]["function"], "main")
    got = server.get("merge", **WEB, format="top", query="version=1.0", sample_type="samples", focus="^b$")
    equal([(r["function"], r["flat"], r["cum"]) for r in got["rows"]], [("b", 60, 60), ("a", 0, 60), ("main", 0, 60)])
    got = server.get("merge", **WEB, format="top", query="version=1.0", granularity="lines")
    equal([(r["file"], r["line"]) for r in got["rows"] if r["function"] == "b"], [("/src/b.c", 31)])


@check("/api/v1/ is /api/1/")
def alias(server):
    for path in ("services", "profiles/" + server.ids[0], "labels/version"):
        equal(server.ask("/api/v1/" + path)[::2], server.ask("/api/1/" + path)[::2], path)
    equal(server.ask("/api/v1/live?service=web")[1]["content-type"], "text/event-stream")
    equal(server.ask("/api/v1/delete")[0], 405)
    equal(server.ask("/api/v1/nothing")[0], 404)


@check("labels that are called service or type")
def taken_names(server):
    with open(DATA + "/worked_a.pb", "rb") as f:
        equal(server.ask("/api/0/profiles?service=taken&type=cpu&created_at=2026-11-10T12:00:00&labels=service%3Da,type%3Db", "POST", f.read())[0], 200)
    asked = {"service": "taken", **DAY}
    names = [x["name"] for x in server.get("labels", service="taken")["labels"]]
    equal(names, ["exported_service", "exported_type"])
    equal([x["name"] for x in server.get("labels/exported_service", service="taken")["values"]], ["a"])
    equal([x["name"] for x in server.get("labels/exported_type")["values"]], ["b"])
    for query, n in (("exported_service=a", 1), ("exported_service=b", 0), ("exported_type!=b", 0), ("service=a", 0)):
        equal((query, len(server.get("profiles", query=query, **asked)["profiles"])), (query, n))
    equal([r["by"] for r in server.get("top", by="exported_service", limit=1, type="cpu", **asked)["rows"]], ["a"])
    # As profefe has it.
    found = server.ask("/api/0/profiles?service=taken&labels=service%3Da&from=2026-11-10T00:00:00&to=2026-11-11T00:00:00")
    equal(json.loads(found[2])["body"][0]["labels"], [{"key": "service", "value": "a"}, {"key": "type", "value": "b"}])
    equal(server.get("delete", "POST", query="exported_type=b")["profiles"], 1)


@check("functions without names are called the same everywhere")
def nameless(server):
    server.push(DATA + "/mappings.pb", "nameless", "addresses", 0)
    asked = {"service": "nameless", "type": "addresses", **DAY}
    rows = {(r["function"], r["flat"], r["cum"]) for r in server.get("merge", format="top", **asked)["rows"]}
    equal(rows, {(r["function"], r["flat"], r["cum"]) for r in server.get("top", limit=100, **asked)["rows"]})
    folded = server.get("merge", format="folded", **asked).decode()
    for name, _, _ in rows:
        assert name in folded, (name, folded)
    equal(any(name.startswith("[") for name, _, _ in rows), True)
    equal(server.get("delete", "POST", service="nameless")["profiles"], 1)


def stacks_of(flame, column=3):
    """Folded stacks, with the weight at the end of each."""
    paths, out = [], {}
    for box in flame["boxes"]:
        path = paths[box[0]] + [flame["functions"][box[1]]] if box[0] >= 0 else []
        paths.append(path)
        if box[column]:
            out[";".join(path)] = box[column]
    return out


@check("boxes of a flame graph")
def merge_flame(server):
    flame = server.get("merge", **WEB, format="flame", query="version=1.0")
    folded = server.get("merge", **WEB, format="folded", query="version=1.0").decode()
    equal(stacks_of(flame), {s: int(v) for s, v in (line.rsplit(" ", 1) for line in folded.splitlines())})
    equal((flame["boxes"][0][:3], flame["total"]), ([-1, -1, 3000000000], 3000000000))
    small = server.get("merge", **WEB, format="flame", query="version=1.0", limit=2)
    equal(len(small["boxes"]) < len(flame["boxes"]), True)
    equal(sum(b[3] for b in small["boxes"]) + small["cut"]["value"], 3000000000)


@check("speedscope")
def merge_speedscope(server):
    got = server.get("merge", **WEB, format="speedscope")
    equal(sum(got["profiles"][-1]["weights"]) > 0, True)


@check("a filter holds for profiles, too")
def merge_filtered(server):
    path = saved("focus.pb.gz", server.get("merge", **WEB, query="version=1.0", focus="rec"))
    equal(kiln("-folded", path), "main;rec;rec;rec 1200000000\n")


@check("aggregates: sum, mean, last, max")
def aggregates(server):
    def total(**params):
        return server.get("merge", **WEB, format="top", **params)["total"]
    a, b = 1000000000, 700000000
    equal(total(aggregate="sum"), 3 * a + 3 * b)
    equal(total(aggregate="auto"), 3 * a + 3 * b)
    equal(total(aggregate="mean"), (a + b) // 2)
    equal(total(aggregate="last", query="version=1.1"), b)
    equal(total(aggregate="max", query="version=1.0"), a)


@check("what cannot be merged")
def not_merged(server):
    server.refuses("merge?from=2026-11-10&to=2026-11-11", "type")
    server.refuses("merge?service=nobody", status=404)
    status, headers, text = server.ask("/api/1/merge?service=nobody", headers={"User-Agent": "Go-http-client/1.1"})
    equal((status, headers.get("x-go-pprof"), headers["content-type"]), (404, "1", "text/plain; charset=utf-8"))


# ---- differences

@check("a difference is what kiln diff finds")
def diff(server):
    got = server.get("diff", **WEB, old="version=1.0", new="version=1.1", parts=1)
    equal(got["old"], {"query": '{service="web", type="cpu", version="1.0"}', "profiles": 3, "series": 1,
                       "first": "2026-11-10T12:00:00Z", "last": "2026-11-10T12:02:00Z"})
    paths = [saved("old.pb.gz", server.get("merge", **WEB, query="version=1.0")),
             saved("new.pb.gz", server.get("merge", **WEB, query="version=1.1"))]
    equal(got["comparison"], json.loads(kiln("diff", "--json", "-n=100", *paths)))
    rows = {f["name"]: f for f in got["comparison"]["functions"]}
    equal((rows["c"]["old"], rows["c"]["new"], rows["c"]["verdict"]), (900000000, 0, "less"))
    equal(got["changed"], sum(r["verdict"] in ("more", "less") for r in rows.values()))
    windows = server.get("diff", **WEB, old_to="2026-11-10T12:04:00Z", new_from="2026-11-10T12:09:00Z", parts=1)
    equal(windows["comparison"], got["comparison"])


@check("parts of the time are runs that are compared")
def diff_parts(server):
    got = server.get("diff", **WEB, old="version=1.0", new="version=1.1", parts=3)
    want = json.loads(kiln("diff", "--json", "-n=100", *A3, "--", *B3))
    # Neighbours in time may resemble each other, as runs do not: it is less sure.
    for one, other in zip(got["comparison"]["functions"], want["functions"]):
        assert one["p"] >= other["p"] and one["ratio_low"] <= other["ratio_low"], (one, other)
        assert one["ratio_high"] >= other["ratio_high"], (one, other)
        for name in ("p", "q", "ratio_low", "ratio_high"):
            one.pop(name), other.pop(name)
    equal(got["comparison"], want)
    equal((got["old"]["profiles"], got["new"]["profiles"]), (3, 3))


@check("absolute values")
def diff_absolute(server):
    got = server.get("diff", **WEB, old="version=1.0", new="version=1.1", per="all")
    equal(got["comparison"]["compared"], "per-run")
    rows = {f["name"]: f for f in got["comparison"]["functions"]}
    equal((rows["rec"]["old"], rows["rec"]["new"], rows["rec"]["delta"]), (1200000000, 1350000000, 150000000))


@check("a difference as a profile, with base labels")
def diff_profile(server):
    path = saved("diff.pb.gz", server.get("diff", **WEB, old="version=1.0", new="version=1.1", per="all", format="pprof"))
    want = kiln("-top", "-diff_base=" + saved("old.pb.gz", server.get("merge", **WEB, query="version=1.0")),
                saved("new.pb.gz", server.get("merge", **WEB, query="version=1.1")))
    equal(kiln("-top", path), want)
    if shutil.which("go"):
        r = subprocess.run(["go", "tool", "pprof", "-top", path], capture_output=True, text=True)
        equal([l.split() for l in r.stdout.splitlines() if l.endswith(" c")],
              [["-900ms", "30.00%", "30.00%", "-900ms", "30.00%", "c"]], "go tool pprof")


@check("a difference as a flame graph, with old and new")
def diff_flame(server):
    flame = server.get("diff", **WEB, old="version=1.0", new="version=1.1", per="all", format="flame")
    equal(stacks_of(flame, 3)["main;rec;rec;rec"], 1350000000)
    equal(stacks_of(flame, 5)["main;c"], 900000000)


@check("differences that make no sense")
def diff_refused(server):
    query = "diff?" + urllib.parse.urlencode(WEB)
    server.refuses(query + "&old=version%3D7", "old", status=404)
    server.refuses(query + "&old=version", "old", "column 8")
    server.refuses(query + "&old_from=2026-11-12", "old_from is after old_to")


# ---- over all services

@check("functions over all services")
def top(server):
    got = server.get("top", type="cpu", **DAY)
    a, b = 1000000000, 700000000
    equal((got["unit"], got["total"], got["profiles"]), ("nanoseconds", 4 * a + 3 * b, 7))
    rows = {r["function"]: r for r in got["rows"]}
    def plain(row):
        return {k: row[k] for k in ("function", "file", "module", "flat", "cum", "services")}

    equal(plain(rows["rec"]), {"function": "rec", "file": "/src/rec.c", "module": "/bin/prog", "flat": 2950000000, "cum": 2950000000, "services": 2})
    equal(round(rows["rec"]["share"], 6), round(2950 / 6100, 6))
    equal(round(sum(r["cores"] for r in got["rows"]), 9), round(got["cores"], 9))
    equal(got["rows"][0]["function"], "rec")
    equal([plain(r) for r in server.get("top", type="cpu", **DAY, sort="cum", limit=1)["rows"]],
          [{"function": "main", "file": "/src/main.c", "module": "/bin/prog", "flat": 0, "cum": 6100000000, "services": 2}])
    got = server.get("top", type="cpu", **DAY, search="A", limit=1)
    equal([got["found"], [r["function"] for r in got["rows"]]], [2, ["a"]])
    equal([server.get("top", type="cpu", **DAY, search=text)["found"] for text in (".", "(", "\\", "MAI")], [0, 0, 0, 1])


@check("groups of functions, the services of one, and times that have come to rest")
def groups(server):
    got = server.get("top", type="cpu", **DAY, group="category")
    equal([(r["function"], r["flat"], r["cum"], r["services"]) for r in got["rows"]], [("other", 6100000000, 0, 2)])
    equal([r["function"] for r in server.get("top", type="cpu", **DAY, group="module")["rows"]], ["prog"])
    got = server.get("top", type="cpu", **DAY, function="rec", by="service", sort="services")
    equal({(r["function"], r["by"]) for r in got["rows"]}, {("rec", "web"), ("rec", "db")})
    fresh, settled = [server.get("top", type="cpu", from_="2026-11-10", to="2026-11-12", fresh=f) for f in ("true", "false")]
    again = server.get("top", type="cpu", from_="2026-11-10", to="2026-11-12", fresh="false")
    equal(settled["rows"], again["rows"])
    equal(settled["rows"], fresh["rows"])
    # What comes later is not left out, though the sums were kept.
    server.push(DATA + "/worked_a.pb", "late", "cpu", 7)
    later = server.get("top", type="cpu", from_="2026-11-10", to="2026-11-12", fresh="false")
    equal((later["services"], later["profiles"]), (3, 8))
    status, _, text = server.ask("/api/1/delete?service=late", "POST")
    equal(status, 200, text)
    equal(server.get("top", type="cpu", from_="2026-11-10", to="2026-11-12", fresh="false")["rows"], settled["rows"])


@check("what there is at a moment: instances and services are added, and nothing is per second")
def gauges(server):
    own = Serve("gauges")
    window = {"from_": "2026-11-10T12:00:00Z", "to": "2026-11-10T12:09:59Z"}
    try:
        for minute in range(10):
            for pod in "ab":
                own.push(DATA + "/worked_a.pb", "web", "threads", minute, pod=pod)
        own.push(DATA + "/worked_a.pb", "db", "threads", 3)
        a = 1000000000
        got = own.get("top", type="threads", **window)
        equal((got["per_second"], got["total"], round(got["cores"])), (False, 3 * a, 3 * a))
        equal([(r["flat"], round(r["cores"]), r["trend"]) for r in got["rows"] if r["function"] == "rec"], [(1200000000, 1200000000, 0)])
        got = own.get("top", type="threads", by="service", **window)
        equal(round(sum(r["share"] for r in got["rows"]), 6), 1)
        equal({r["by"]: r["cum"] for r in got["rows"] if r["function"] == "main"}, {"web": 2 * a, "db": a})
        # Levels of series are the same; their values, and merges, are averages.
        line = own.get("series", type="threads", service="web", levels="true", step="1h", **DAY)["lines"][0]
        equal((line["per_second"], line["points"][0][1], line["points"][0][3]), (False, a, 2 * a))
        equal(own.get("merge", type="threads", service="web", format="top", **DAY)["total"], a)
        equal(server.get("top", type="cpu", **DAY)["per_second"], True)
    finally:
        own.process.kill()


@check("owners of functions, by rules of the file")
def owners(server):
    rules = 'owners:\n  - {match: "^re", owner: core}\n  - {service: "^db$", owner: storage}\n  - {match: "^(a|b)$", owner: "team \\u00fc"}\n'
    own = Serve("owned", "--config", saved("owners.yaml", rules.encode()))
    try:
        fill(own)
        equal((server.get("stats")["owners"], own.get("stats")["owners"]), (0, 3))
        equal(any("owner" in r for r in server.get("top", type="cpu", **DAY)["rows"]), False)
        functions = own.get("top", type="cpu", **DAY)["rows"]
        by = {}
        for r in own.get("top", type="cpu", by="service", **DAY)["rows"]:
            by.setdefault(r["function"], []).append((-r["cores"], -r["cum"], r["owner"]))
        want = {f: list(dict.fromkeys(owner for _, _, owner in sorted(rows))) for f, rows in by.items()}
        equal({r["function"]: [r["owner"], *r.get("other_owners", [])] for r in functions}, want)
        equal({r["function"]: r["owners"] for r in functions}, {f: len(o) for f, o in want.items()})
        equal((want["rec"], sorted(want["c"]), sorted(want["a"])), (["core"], ["(no owner)", "storage"], ["storage", "team \u00fc"]))
        equal({r["owner"] for r in own.get("top", type="cpu", service="db", **DAY)["rows"]}, {"core", "storage"})
        by = {(r["function"], r["by"]): r["owner"] for r in own.get("top", type="cpu", by="service", **DAY)["rows"]}
        equal((by["c", "db"], by["c", "web"], by["rec", "db"]), ("storage", "(no owner)", "core"))
        # Groups: what the rows by service say, summed up. Asked again, as groups of functions are kept.
        want = {}
        for r in own.get("top", type="cpu", by="service", **DAY)["rows"]:
            want[r["owner"]] = want.get(r["owner"], 0) + r["flat"]
        for _ in range(3):
            got = own.get("top", type="cpu", group="owner", **DAY)["rows"]
            equal({r["function"]: r["flat"] for r in got}, want)
            equal([r["owner"] for r in got if "owner" in r], [])
            equal(sum(r["flat"] for r in own.get("top", type="cpu", group="package", **DAY)["rows"]), sum(want.values()))
        equal({r["function"] for r in own.get("top", type="cpu", group="owner", service="web", **DAY)["rows"]}, {"core", "team \u00fc", "(no owner)"})
        equal([r["by"] for r in own.get("top", type="cpu", group="owner", function="storage", by="service", **DAY)["rows"]], ["db"])
    finally:
        own.process.kill()
    for text, why in (("owners: [{owner: a, match: '('}]", "missing closing )"), ("owners: [{match: a}]", "line 1: an owner is a name")):
        r = subprocess.run([KILN, "serve", "--data", TMP + "/none", "--config", saved("wrong.yaml", text.encode())], capture_output=True, text=True)
        equal((r.returncode != 0, why in r.stderr), (True, True), r.stderr)


@check("functions by service, by version, by week")
def top_by(server):
    def rows(**params):
        return {(r["function"], r["by"]): r["flat"] for r in server.get("top", type="cpu", **DAY, **params)["rows"]}
    by_service = rows(by="service")
    equal((by_service[("rec", "db")], by_service[("rec", "web")]), (400000000, 2550000000))
    by_version = rows(by="version")
    equal((by_version[("rec", "1.0")], by_version[("rec", "1.1")]), (1200000000, 1350000000))
    equal({by for _, by in rows(by="week")}, {"2026-W46"})


@check("totals over time")
def series(server):
    got = server.get("series", **WEB, step="1m")
    points = [(t, v, n) for t, v, n in got["lines"][0]["points"] if n]
    start = int((NOON - datetime.datetime(1970, 1, 1)).total_seconds())
    equal([(t - start, v, n) for t, v, n in points],
          [(60 * m, v, 1) for m, v in ((0, 1e9), (1, 1e9), (2, 1e9), (10, 7e8), (11, 7e8), (12, 7e8))])
    equal((got["step"], got["total"], got["lines"][0]["unit"]), (60, 1, "nanoseconds"))
    got = server.get("series", **WEB, step="1h")
    equal([(t - start, v, n) for t, v, n in got["lines"][0]["points"]], [(0, 5.1e9, 6)])
    equal(server.get("series", service="nobody")["lines"], [])


@check("lines by label, and of one function")
def series_by(server):
    got = server.get("series", type="cpu", **DAY, step="1h", by="service")
    equal({l["name"]: l["points"][0][1] for l in got["lines"]}, {"web": 5.1e9, "db": 1e9})
    equal([l["name"] for l in got["lines"]], ["web", "db"], "the highest first")
    equal([l["name"] for l in server.get("series", type="cpu", **DAY, step="1h", by="service", limit=1)["lines"]], ["web"])
    got = server.get("series", **WEB, step="1h", by="version", function="a")
    equal({l["name"]: l["points"][0][1] for l in got["lines"]}, {"1.0": 9e8, "1.1": 7.5e8})
    got = server.get("series", **WEB, step="1h", by="version", function="a", flat="true")
    equal({l["name"]: l["points"][0][1] for l in got["lines"]}, {"1.0": 3e8, "1.1": 4.5e8})
    server.refuses("series?from=2026-01-01&to=2026-12-31&step=1s", "step", "11000")


# ---- wrong requests

@check("errors say which parameter is wrong, and why")
def errors(server):
    server.refuses("services?form=now", '"form"', "query, service, type, from, to, limit")
    server.refuses("services?limit=1&limit=2", "limit is given twice")
    server.refuses("services?limit=-1", "limit", "not between 1 and")
    server.refuses("services?limit=99999999999999999999", "limit")
    server.refuses("services?limit=%zz", "not well formed")
    server.refuses("profiles?from=yesterday", "from", '"yesterday" is no time')
    server.refuses("profiles?from=now&to=now-1h", "from is after to")
    server.refuses("profiles?to=1794312360000", "to", "milliseconds?")
    server.refuses("services?query=" + urllib.parse.quote('{service<"a"}'), "query: selector, column 9, after \"{service\"")
    server.refuses("services?query=" + urllib.parse.quote('{service=~"("}'), "missing closing )")
    server.refuses("merge?format=jpeg", "format", "none of: pprof folded")
    server.refuses("merge?service=web&type=cpu&from=2026-11-10&format=text&focus=(", "focus")
    server.refuses("top?sort=down", "sort")
    for what in "top", "series":
        server.refuses(what + "?type=cpu&from=2026-11-10&sample_type=wall", 'no profile has the sample type "wall", but there are', "cpu")
    server.refuses("nosuch", status=404)
    status, headers, _ = server.ask("/api/1/delete")
    equal((status, headers["allow"]), (405, "POST"))


@check("reading takes the role read, deleting the role admin")
def roles(server):
    reads, writes, owns, unknown = ("%s-token-for-tests-%d" % (t, os.getpid()) for t in ("read", "write", "admin", "no"))
    path = saved("tokens", ("read %s reader\nwrite %s writer\nadmin %s owner\n" % (reads, writes, owns)).encode())
    os.chmod(path, 0o600)
    guarded = Serve("guarded", "--tokens", path)
    try:
        def status(token, target, method="GET"):
            return guarded.ask("/api/1/" + target, method, headers={"Authorization": "Bearer " + token})[0]
        equal(guarded.ask("/api/1/services")[0], 401)
        equal([status(t, "services") for t in (reads, writes, owns, unknown)], [200, 403, 200, 401])
        equal([status(t, "delete?query=service=x", "POST") for t in (reads, writes, owns)], [403, 403, 200])
        equal([status(t, "annotations?text=a", "POST") for t in (reads, writes, owns)], [403, 200, 200])
        equal([status(t, "annotations?id=1", "DELETE") for t in (reads, writes, owns)], [403, 403, 200])
        may = [json.loads(guarded.ask("/api/1/annotations", headers={"Authorization": "Bearer " + t})[2]) for t in (reads, owns)]
        equal([(m["may_add"], m["may_drop"]) for m in may], [(False, False), (True, True)])
        equal([(a["text"], a["who"]) for a in may[0]["annotations"]], [("a", "owner")])
    finally:
        guarded.process.kill()


@check("who goes away does not hold up others")
def abandoned(server):
    for _ in range(20):
        s = socket.create_connection(("127.0.0.1", server.port))
        s.sendall(b"GET /api/1/merge?%s HTTP/1.1\r\nHost: x\r\n\r\n" % urllib.parse.urlencode(WEB).encode())
        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        s.close()
    equal(server.get("services")["total"], 2)


# ---- the description

# What OpenAPI 3.1 says of the parts that we use; nothing else may be there.
DOCUMENT = {
    "type": "object", "additionalProperties": False,
    "required": ["openapi", "info", "paths", "components"],
    "properties": {
        "openapi": {"const": "3.1.0"},
        "info": {"type": "object", "additionalProperties": False, "required": ["title", "version"], "properties": {
            "title": {"type": "string"}, "version": {"type": "string"}, "description": {"type": "string"}}},
        "security": {"type": "array", "items": {"type": "object", "additionalProperties": {"type": "array"}}},
        "paths": {"type": "object", "patternProperties": {"^/": {
            "type": "object", "minProperties": 1, "additionalProperties": False,
            "patternProperties": {"^(get|post|put|delete)$": {"$ref": "#/$defs/operation"}}}},
            "additionalProperties": False},
        "components": {"type": "object", "additionalProperties": False, "properties": {
            "schemas": {"type": "object", "additionalProperties": {"$ref": "https://json-schema.org/draft/2020-12/schema"}},
            "securitySchemes": {"type": "object", "additionalProperties": {
                "type": "object", "required": ["type", "scheme"], "properties": {"type": {"const": "http"}}}}}}},
    "$defs": {
        "operation": {
            "type": "object", "additionalProperties": False, "required": ["summary", "responses"],
            "properties": {
                "summary": {"type": "string", "minLength": 3}, "description": {"type": "string"},
                "x-role": {"enum": ["none", "read", "write", "admin"]},
                "parameters": {"type": "array", "items": {"$ref": "#/$defs/parameter"}},
                "responses": {"type": "object", "required": ["200"], "additionalProperties": {
                    "type": "object", "required": ["description"], "additionalProperties": False, "properties": {
                        "description": {"type": "string"},
                        "content": {"type": "object", "propertyNames": {"pattern": r"^[\w+.-]+/[\w+.-]+$"}}}}}}},
        "parameter": {
            "type": "object", "additionalProperties": False, "required": ["name", "in", "schema"],
            "properties": {"name": {"type": "string"}, "in": {"enum": ["query", "path"]},
                           "required": {"type": "boolean"}, "description": {"type": "string"},
                           "schema": {"$ref": "https://json-schema.org/draft/2020-12/schema"}},
            "if": {"properties": {"in": {"const": "path"}}}, "then": {"properties": {"required": {"const": True}}}}}}


@check("the OpenAPI description is one")
def openapi(server):
    doc = server.description()
    jsonschema.validate(doc, DOCUMENT, cls=jsonschema.Draft202012Validator)
    for name, schema in doc["components"]["schemas"].items():
        jsonschema.Draft202012Validator.check_schema(schema)
    known = {"#/components/schemas/" + name for name in doc["components"]["schemas"]}
    used = set(re.findall(r'"\$ref": "([^"]+)"', json.dumps(doc)))
    equal(used - known, set(), "references to nothing")
    equal(known - used, set(), "schemas that nothing uses")
    for path, methods in doc["paths"].items():
        for operation in methods.values():
            names = [p["name"] for p in operation.get("parameters", [])]
            equal(len(set(names)), len(names), path)
            equal(re.findall(r"{(\w+)}", path), [p["name"] for p in operation.get("parameters", []) if p["in"] == "path"])


@check("every path of it is served, and every parameter taken")
def described(server):
    for path, methods in server.description()["paths"].items():
        if not path.startswith("/api/1/") or "get" not in methods:
            continue
        path = path.replace("{label}", "version").replace("{id}", server.ids[0])
        for p in methods["get"].get("parameters", []):
            if p["in"] == "path":
                continue
            value = p["schema"].get("default", p["schema"].get("minimum", ""))
            status, _, text = server.ask(path + "?" + urllib.parse.urlencode({p["name"]: value}))
            if status not in (200, 400, 404) or b"no parameter" in text:
                raise AssertionError("%s %s: %d %s" % (path, p["name"], status, text))


ODD = ["", "0", "-1", "1", "1e308", "nan", "inf", "9223372036854775807", "99999999999999999999", "now", "now-1w", "2026-11-10",
       "2026-11-11T00:00:00Z", "1s", "0s", "200y", "{", "{}", "{a=b", "service=web", "version=~.*", "version!~(", "type=cpu",
       "service=~" + "a?" * 500, "x" * 5000, "\0", "\xff\xfe", "\u00e9\u2028", "a", "rec", ".*", "(", "(a*)*b", "cpu", "samples", "k=x",
       "lat=10ms:", "1mb:2mb", "%", "&", "=", ";", "true", "week", "service"]


@check("any values of any parameters get an answer that makes sense")
def odd_values(server):
    random.seed(7)
    operations = [(path, o["parameters"]) for path, methods in server.description()["paths"].items()
                  for method, o in methods.items() if method == "get" and "description" in o and "parameters" in o]
    nfine = 0
    for _ in range(600):
        path, params = random.choice(operations)
        query = {p["name"]: random.choice(p["schema"].get("enum", ODD)) for p in random.sample(params, min(3, len(params))) if p["in"] == "query"}
        if random.random() < 0.8:
            query = {**{k: v for k, v in WEB.items() if k in [p["name"] for p in params]}, **query}
        path = path.replace("{label}", random.choice(["version", "a%2Fb", "%00", "service"])).replace("{id}", server.ids[0])
        target = path + "?" + urllib.parse.urlencode(query, errors="surrogateescape")
        status, headers, text = server.ask(target)
        if status not in (200, 400, 404, 414):
            raise AssertionError("%s: %d %s" % (target, status, text[:200]))
        if headers["content-type"] == "application/json":
            json.loads(text)
        nfine += status == 200
    equal(nfine > 100, True, "%d were right" % nfine)


@check("how much there is")
def stats(server):
    got = server.get("stats")
    equal((got["services"], got["series"], got["profiles"]), (2, 4, 8))
    equal((got["oldest"], got["newest"], got["full"]), ("2026-11-10T12:00:00Z", "2026-11-10T12:12:00Z", False))


@check("annotations are said, found, dropped, and durable")
def annotations(server):
    own = Serve("annotated")
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    say = lambda **p: own.get("annotations", "POST", urllib.parse.urlencode(p), form)["annotations"][0]
    first = say(text="  deployed \u00fc <b> ", service="web", tags="deploy, eu", time="2026-11-10T12:00:00Z")
    equal((first["text"], first["service"], first["tags"], first["time"], first["end"]),
          ("deployed \u00fc <b>", "web", ["deploy", "eu"], "2026-11-10T12:00:00Z", None))
    outage = say(text="outage", time="2026-11-10T13:00:00Z", end="2026-11-10T15:00:00Z")
    recent = say(text="now")
    equal(abs(datetime.datetime.fromisoformat(recent["time"][:19]) - datetime.datetime.utcnow()).total_seconds() < 60, True)
    texts = lambda **p: [a["text"] for a in own.get("annotations", **p)["annotations"]]
    equal(texts(), ["now", "outage", "deployed \u00fc <b>"])
    equal(texts(from_="2026-11-10T14:00:00Z", to="2026-11-10T14:01:00Z"), ["outage"], "it lasts")
    equal(texts(service="web", to="2026-11-11"), ["outage", "deployed \u00fc <b>"], "of all services is of each")
    equal((texts(service="batch", to="2026-11-11"), texts(tag="eu")), (["outage"], ["deployed \u00fc <b>"]))
    equal((texts(limit=1), own.get("annotations", limit=1)["more"]), (["now"], True))
    for bad, why in (({}, "text is missing"), ({"text": "x" * 501}, "501 bytes"), ({"text": "a\nb"}, "control characters"), ({"text": "a", "tags": "a,,b"}, "empty"),
                     ({"text": "a", "end": "now-1h"}, "before"), ({"text": "a", "time": "2100-01-01"}, "more than a year"), ({"text": "a", "color": "red"}, "no parameter")):
        status, _, text = own.ask("/api/1/annotations", "POST", urllib.parse.urlencode(bad), form)
        equal((status, why in text.decode()), (400, True), (bad, text))
    equal(own.ask("/api/1/annotations", "POST", "text=" + "x" * 100000, form)[0], 413)
    own.get("annotations", "DELETE", id=outage["id"])
    equal(own.ask("/api/1/annotations?id=%d" % outage["id"], "DELETE")[0], 404)
    equal(own.ask("/api/1/annotations", "DELETE")[0], 400)
    own.process.kill()
    own.process.wait()
    again = Serve("annotated")
    equal([a["text"] for a in again.get("annotations")["annotations"]], ["now", "deployed \u00fc <b>"])
    again.process.kill()


# ---- the manual

def examples():
    """Commands of the manual, with what it says that they print."""
    command, out = None, []
    with open(MANUAL) as f:
        for line in f:
            line = line.rstrip("\n").replace("\\\\", "\\")
            if line.startswith("$ "):
                command, out = line[2:], []
            elif command and line == "```":
                yield command, "\n".join(out)
                command = None
            elif command is not None:
                out.append(line)


@check("the manual's examples do what it says")
def manual(server):
    n = 0
    for command, want in examples():
        n += 1
        r = subprocess.run(["bash", "-c", command.replace("localhost:10100", "localhost:%d" % server.port)],
                           capture_output=True, text=True, env={**os.environ, "PATH": TMP + "/bin:" + os.environ["PATH"]})
        equal(r.returncode, 0, command + ": " + r.stdout + r.stderr)
        equal(r.stdout.strip(), want.strip(), command)
    equal(n >= 8, True, "examples")


@check("the manual has every path and every parameter")
def manual_is_complete(server):
    text = kiln("serve", "--scdoc-api").replace("\\", "")
    for path, methods in server.description()["paths"].items():
        if not any("description" in operation for operation in methods.values()):
            continue # not of these tables
        if re.sub(r"{(\w+)}", lambda m: "_%s_" % m[1], path) not in text:
            raise AssertionError("%s is missing" % path)
        for operation in methods.values():
            for p in operation.get("parameters", []):
                if "*%s*" % p["name"] not in text and "_%s_" % p["name"] not in text:
                    raise AssertionError("%s of %s is missing" % (p["name"], path))


# ---- less; last, as it takes away what others need

@check("delete, after a dry run")
def delete(server):
    server.refuses("delete", "all=true", method="POST")
    got = server.get("delete", "POST", query="version=1.0", dry_run="true")
    equal(got, {"dry_run": True, "profiles": 3})
    equal(server.get("stats")["profiles"], 8)
    form = urllib.parse.urlencode({"query": "version=1.0", "to": "2026-11-10T12:01:00Z"})
    got = server.get("delete", "POST", form, {"Content-Type": "application/x-www-form-urlencoded"})
    equal(got, {"dry_run": False, "profiles": 2})
    equal(server.get("labels/version", service="web")["values"][0]["profiles"], 1)
    equal(server.get("merge", **WEB, format="top", query="version=1.0")["total"], 1000000000)
    equal(server.get("delete", "POST", service="db")["profiles"], 2)
    equal([s["name"] for s in server.get("services")["services"]], ["web"])
    equal(server.get("delete", "POST", all="1")["profiles"], 4)
    equal(server.get("services")["services"], [])


if __name__ == "__main__":
    os.mkdir(TMP + "/bin")
    os.symlink(KILN, TMP + "/bin/kiln")
    server = Serve("data")
    try:
        fill(server)
    except BaseException:
        server.process.kill()
        raise
    run_checks(server)
