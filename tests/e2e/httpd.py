"""The web page's server: what it answers, and what it must refuse. Numbers are http_oracle.py's.

Prints TAP. Needs KILN and DATA in the environment.
"""
import base64
import gzip
import json
import os
import re
import signal
import socket
import subprocess
import tempfile
import threading
import time

from http_lib import API, DATA, IS_SLOW, KILN, TMP, Flame, Server, check, cli, equal, number, run_checks, top_lines, traces

PROFILES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "recorded", "profiles")


# ---- profiles

def field(number, value):
    """A field of a protobuf message."""
    def varint(v):
        out = b""
        while v > 0x7f:
            out, v = out + bytes([v & 0x7f | 0x80]), v >> 7
        return out + bytes([v])
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def make_profile(name, rows, duration=0):
    """A profile with a sample for each (function, file, line, weight)."""
    strings, out = ["", "samples", "count", "/bin/made", "c0ffee"], b""

    def string(text):
        if text not in strings:
            strings.append(text)
        return strings.index(text)
    out += field(1, field(1, 1) + field(2, 2)) + field(3, field(1, 1) + field(2, 4096) + field(3, 1 << 20) + field(5, 3) + field(6, 4))
    for i, (function, file, line, weight) in enumerate(rows, 1):
        out += field(2, field(1, i) + field(2, weight))
        out += field(4, field(1, i) + field(2, 1) + field(3, 4096 + i) + field(4, field(1, i) + field(2, line)))
        out += field(5, field(1, i) + field(2, string(function)) + field(3, string(function)) + field(4, string(file)))
    out += b"".join(field(6, text.encode()) for text in strings) + field(10, duration)
    path = os.path.join(TMP, name)
    with open(path, "wb") as f:
        f.write(gzip.compress(out))
    return path


@check("label frames, by parameters tr and tl")
def label_frames(server):
    path = DATA + "/labels.pb"
    p = server.add(path)
    key = server.get("labels", a=p["id"])["keys"][0]["key"]
    for param, flag in (("tr", "tagroot"), ("tl", "tagleaf")):
        top = server.get("top", a=p["id"], unit="count", **{param: key})
        names = {f[1]: f[5] for f in top["functions"]}
        equal(set(names), set(top_lines(path, "count", "-%s=%s" % (flag, key))), flag)
        assert any(flags & 4 for flags in names.values()), names
    server.post("profiles", method="DELETE", id=p["id"])


def with_stacks(server, text):
    path = TMP + "/own.folded"
    with open(path, "w") as f:
        f.write(text)
    return server.add(path)


@check("parts of trees: pivot, callers of it, recursion, root")
def parts(server):
    p = with_stacks(server, "main;f;g;f;h 10\nmain;g;f 3\nmain;f;f;f;x 5\nmain;y 2\n")["id"]
    names = {f[1]: f[0] for f in server.get("top", a=p)["functions"]}

    def selves(**params):
        return dict(Flame(server.get("flame", a=p, min=0, **params)).selves())
    equal(selves(pivot=names["f"]), {("f", "g", "f", "h"): 10, ("f",): 3, ("f", "f", "f", "x"): 5}, "pivot")
    equal(selves(pivot="f"), selves(pivot=names["f"]), "by name")
    equal(selves(pivot=names["f"], dir="callers"), {("f", "main"): 15, ("f", "g", "main"): 3}, "callers")
    equal(selves(rc=1), {("main", "f", "g", "f", "h"): 10, ("main", "g", "f"): 3, ("main", "f", "x"): 5, ("main", "y"): 2}, "recursion")
    part = Flame(server.get("flame", a=p, min=0, root="%d.%d" % (names["main"], names["f"])))
    equal(part.total[0], 20)
    equal(part.header["root"], [names["main"], names["f"]])
    equal({part.path(i): part.total[i] for i in range(part.n)},
          {(): 20, ("main",): 20, ("main", "f"): 15, ("main", "f", "g"): 10, ("main", "f", "g", "f"): 10, ("main", "f", "g", "f", "h"): 10,
           ("main", "f", "f"): 5, ("main", "f", "f", "f"): 5, ("main", "f", "f", "f", "x"): 5}, "root")
    equal(part.columns["lost"][1], 5)
    status, _, body = server.ask(API + "flame?a=%d&root=%d.%d" % (p, names["y"], names["y"]))
    equal(status, 400, body)
    whole = Flame(server.get("flame", a=p, min=0.2))
    equal(whole.total[0], 20)
    equal(sum(whole.columns["lost"]), whole.header["cut"]["weight"])
    server.post("profiles", method="DELETE", id=p)


@check("frames told apart otherwise: loops, inlined, groups; where to search")
def frames(server):
    p = with_stacks(server, "main;f;g;f;h 10\nmain;g;f 3\nmain;f;f 2\n")["id"]
    equal(dict(Flame(server.get("flame", a=p, min=0, rc=2)).selves()), {("main", "f", "h"): 10, ("main", "g", "f"): 3, ("main", "f"): 2}, "loops")
    server.post("profiles", method="DELETE", id=p)
    p = server.add(DATA + "/called_and_inlined.pb")["id"]
    flame = Flame(server.get("flame", a=p, min=0))
    equal([(flame.names[i], flame.total[i], flame.columns["inl"][i]) for i in range(1, flame.n)], [("main", 10, 0), ("work", 10, 70), ("deep", 6, 0)])
    flame = Flame(server.get("flame", a=p, min=0, inl=1))
    equal([(flame.names[i], flame.total[i], flame.columns["inl"][i]) for i in range(1, 4)], [("main", 10, 0), ("work", 7, 100), ("work", 3, 0)])
    for step, total in (("%di", 7), ("%d", 3)):
        part = Flame(server.get("flame", a=p, min=0, inl=1, root=("%d." + step) % (flame.ids[1], flame.ids[2])))
        equal((part.names[2], part.total[2]), ("work", total), step)
    for where, text, names in (("name", "work", ["work"]), ("file", "both.c", ["main", "work"]), ("module", "both", ["deep", "main", "work"]), ("file", "work", [])):
        ids = server.get("search", a=p, q=text, **{"in": where})["ids"]
        equal(sorted(f[1] for f in flame.header["functions"] if f[0] in ids), names, where)
    equal(server.ask(API + "search?q=a&in=nosuch")[0], 400)
    server.post("profiles", method="DELETE", id=p)
    p = server.add(DATA + "/mappings.pb")["id"]
    flame = Flame(server.get("flame", a=p, min=0, group=1))
    assert ("main", "work", "[libc.so.6]", "[vdso]") in flame.selves(), flame.selves()
    groups = [f[0] for f in flame.header["functions"] if f[5] & 8]
    equal(set(server.get("search", a=p, q="libc", group=1)["ids"]) - set(groups), set(), "groups are found")
    server.post("profiles", method="DELETE", id=p)


@check("search in labels: what samples that have one go through, and the filter that leaves just those")
def search_labels(server):
    path = DATA + "/labels.pb"
    p = server.add(path)["id"]
    names = {f[0]: f[1] for f in server.get("top", a=p)["functions"]}
    for text, is_regexp, samples, total, focus in (
            ("acme", 0, 3, 15, "(?i)acme"), ("tenant:a", 0, 3, 15, "(?i)tenant:a"), ("Acme", 0, 0, 0, None), ("TENANT", 0, 0, 0, None),
            ("^tenant:(acme|umbrella)$", 1, 4, 21, "(?:^tenant:(acme|umbrella)$)"), ("cart", 0, 2, 10, "(?i)cart"),
            ("quoted\" v", 0, 1, 1, "(?i)quoted\" v"), ("odd\\skey:", 1, 1, 1, "(?:odd\\skey:)"), ("endpoint:/list", 0, 1, 2, "(?i)endpoint:/list"),
            ("request:2kB", 0, 1, 9, "request=2048bytes"), ("latency", 0, 3, 19, "latency=3us:250us"), ("latency:250us", 0, 1, 4, "latency=250us"),
            ("4711", 1, 1, 1, "pid=4711pid"), ("a{1,2}cme", 1, 3, 15, ""), ("e|latency", 1, 5, 22, "(?:e|latency)"), ("nt:umb|latency:250us", 1, 2, 10, ""),
            ("a=c", 0, 0, 0, None), ("[,=]", 1, 0, 0, None)):
        got = server.get("search", a=p, q=text, re=is_regexp, si="samples", **{"in": "label"})
        equal((got["samples"], got["total"], got["self"]), (samples, total, total), text)
        equal(got["functions"], len(got["ids"]), text)
        if focus is None:
            continue
        equal(got["tagfocus"], focus, text)
        part = Flame(server.get("flame", a=p, min=0, q=text, re=is_regexp, si="samples", **{"in": "label"}))
        equal((part.total[0], {f[0] for f in part.header["functions"][1:]}), (total, set(got["ids"])), text)
        if focus:
            equal({names[i] for i in got["ids"]}, set(top_lines(path, "count", "-sample_index=samples", "-tagfocus=" + focus)), text)
            equal(part.selves(), Flame(server.get("flame", a=p, min=0, tf=focus, si="samples")).selves(), text)
    ids = {name: i for i, name in names.items()}
    part = Flame(server.get("flame", a=p, min=0, q="pid", si="samples", root="%d.%d.%d" % (ids["serve"], ids["handle"], ids["query"]), **{"in": "label"}))
    equal((part.header["root"], part.total[0], "query" in part.names), ([ids["serve"], ids["handle"], ids["query"]], 1, False), "none comes by")
    got = server.get("search", a=p, q="acme", si="samples", h="^(query|serve)$", **{"in": "label"})
    equal(([names[i] for i in got["ids"]], got["total"], got["self"]), (["handle"], 15, 15), "frames that are hidden")
    equal(server.ask(API + "search?in=label&re=1&q=(")[0], 400)
    server.post("profiles", method="DELETE", id=p)


@check("a function: callers, callees, labels")
def function(server):
    p = with_stacks(server, "main;f;g 10\nmain;h;g 3\nmain;g;x 5\n")["id"]
    names = {f[1]: f[0] for f in server.get("top", a=p)["functions"]}
    got = server.get("function", a=p, id=names["g"])
    equal((got["flat"], got["cum"], got["samples"], got["total"]), (13, 18, 3, 18))
    equal(got["callers"], [[names["f"], 10], [names["main"], 5], [names["h"], 3]])
    equal(got["callees"], [[names["x"], 5]])
    equal(got["function"][:2], [names["g"], "g"])
    equal(server.ask(API + "function?id=999999&a=%d" % p)[0], 404)
    server.post("profiles", method="DELETE", id=p)


@check("two profiles side by side")
def two(server):
    a = with_stacks(server, "main;f 100\nmain;g 50\nmain;old 7\n")["id"]
    b = with_stacks(server, "main;f 100\nmain;g 150\nmain;new 9\n")["id"]
    flame = Flame(server.get("flame", a=a, b=b, min=0))
    equal(flame.has_two, True)
    equal((flame.header["total"], flame.header["total_b"]), (157, 259))
    equal(dict(flame.selves()), {("main", "f"): 100, ("main", "g"): 50, ("main", "old"): 7})
    equal(dict(flame.selves("self_b")), {("main", "f"): 100, ("main", "g"): 150, ("main", "new"): 9})
    top = server.get("top", a=a, b=b)
    equal({f[1]: r[1:3] + r[4:] for f, r in zip(top["functions"], top["rows"])},
          {"f": [100, 100, 100, 100], "g": [50, 50, 150, 150], "old": [7, 7, 0, 0], "new": [0, 0, 9, 9], "main": [0, 157, 0, 259]})
    diff = server.get("diff", a=a, b=b)
    rows = {r["function"][1]: r for r in diff["rows"]}
    equal((diff["total_a"], diff["total_b"], diff["enough"]), (157, 259, True))
    equal((rows["g"]["a"], rows["g"]["b"], rows["g"]["significant"], rows["g"]["state"]), (50, 150, True, "changed"))
    equal((rows["new"]["state"], rows["old"]["state"]), ("new", "gone"))
    assert rows["g"]["z"] > 3 and rows["f"]["z"] < -3, rows
    equal(server.ask(API + "diff?a=%d&b=%d" % (a, a))[0], 400)
    for p in (a, b):
        server.post("profiles", method="DELETE", id=p)


@check("one profile less another: the numbers of -base, -diff_base and -normalize")
def subtract(server):
    files = [DATA + "/worked_%s.pb" % x for x in "ab"]
    b = server.add(files[1])["id"]
    for mode in ("base", "diff_base"):
        for norm in ("", "1"):
            status, p = server.post("subtract", a=0, b=b, mode=mode, norm=norm)
            equal(status, 200, p)
            equal(p["name"], "worked_b.pb %s-%s=worked_a.pb" % ("-normalize " if norm else "", mode))
            top = server.get("top", a=p["id"])
            got = {f[1]: (r[1], r[2]) for f, r in zip(top["functions"], top["rows"])}
            args = ["-%s=%s" % (mode, files[0])] + ["-normalize"] * bool(norm)
            equal(got, top_lines(files[1], "ns", *args), mode + norm)
            total = re.search(r"of (\S+?)ns total", cli("-top", "-unit=ns", *args, files[1]).decode())
            equal(top["total"], number(total[1]), mode + norm)
            server.post("profiles", method="DELETE", id=p["id"])
    equal(server.post("subtract", a=0, b=0)[0], 400)
    equal(server.post("subtract", a=0, b=77)[0], 404)
    server.post("profiles", method="DELETE", id=b)


@check("both sides of one file: folded stacks with two counts, or what -diff_base wrote")
def sides(server):
    path = TMP + "/both.pb.gz"
    with open(path, "wb") as f:
        f.write(cli("-proto", "-diff_base=" + DATA + "/worked_a.pb", DATA + "/worked_b.pb"))
    two = cli("-folded", "-diff_base=" + DATA + "/worked_a.pb", DATA + "/worked_b.pb")
    with open(path, "rb") as f:
        files = {"both.pb.gz": f.read(), "two.folded": two}
    for name, content in files.items():
        status, got = server.post("profiles", content, name=name, sides=1)
        equal((status, got["before"]["name"], got["after"]["name"]), (200, name + ", before", name + ", after"))
        ids = [got[side]["id"] for side in ("before", "after")]
        equal([p["id"] for p in server.get("meta")["profiles"]], [0, *ids], "no other is open")
        for i, side in zip(ids, "ab"):
            top = server.get("top", a=i)
            rows = {f[1]: (r[1], r[2]) for f, r in zip(top["functions"], top["rows"])}
            equal(rows, top_lines(DATA + "/worked_%s.pb" % side, "ns"), name + side)
            equal("pprof::base" in str(server.get("labels", a=i)["keys"]), False)
        whole = Flame(server.get("flame", a=ids[0], b=ids[1], min=0))
        equal((whole.total[0], whole.total_b[0]), (10 ** 9, 7 * 10 ** 8))
        for i in ids:
            server.post("profiles", method="DELETE", id=i)
        status, got = server.post("profiles", content, name=name)
        equal((status, got["name"]), (200, name), "not asked for")
        top = server.get("top", a=got["id"])
        rows = {f[1]: (r[1], r[2]) for f, r in zip(top["functions"], top["rows"])}
        equal(rows, top_lines(DATA + "/worked_b.pb", "ns", "-diff_base=" + DATA + "/worked_a.pb"), "the difference")
        server.post("profiles", method="DELETE", id=got["id"])
    status, got = server.post("profiles", b"main;a 1\n", name="one.folded", sides=1)
    equal((status, got["name"]), (200, "one.folded"))
    extra = [got["id"]] + [with_stacks(server, "main 1\n")["id"] for _ in range(5)]
    status, got = server.post("profiles", two, name="two.folded", sides=1)
    equal((status, len(server.get("meta")["profiles"])), (413, 7), "no room for both")
    for i in extra:
        server.post("profiles", method="DELETE", id=i)


@check("compared per second, each side by its own duration")
def rates(server):
    a = server.add(make_profile("slow.pb", [("f", "f.c", 100, 500)], duration=10 ** 10))["id"]
    b = server.add(make_profile("quick.pb", [("f", "f.c", 100, 500)], duration=10 ** 9))["id"]
    for per, significant in (("", False), ("second", True)):
        row, = server.get("diff", a=a, b=b, per=per)["rows"]
        equal((row["a"], row["b"], row["delta"], row["significant"]), (500, 500, 0, significant), per)
    for p in (a, b):
        server.post("profiles", method="DELETE", id=p)


@check("-divide_by: pages divide what they show, files have it divided")
def divide_by(server):
    s = Server("-divide_by=7", DATA + "/worked_a.pb")
    equal((server.get("meta")["divide_by"], s.get("meta")["divide_by"]), (1, 7))
    equal(s.get("top")["rows"], server.get("top")["rows"])
    want = top_lines(DATA + "/worked_a.pb", "ns", "-divide_by=7")
    got = [line.split(",") for line in s.get("export/csv").decode().splitlines()[1:]]
    equal({row[0].strip('"'): (float(row[1]), float(row[3])) for row in got}, want)
    page = cli("-html", "-divide_by=7", DATA + "/worked_a.pb").decode()
    equal(json.loads(re.search(r"window\.__KILN_DATA__ = (\{.*?\});\n", page, re.S)[1])["meta"]["divide_by"], 7)
    equal(s.stop(), 0)


@check("-diff_base: both sides")
def diff_base(server):
    s = Server("-diff_base=" + DATA + "/worked_a.pb", DATA + "/worked_b.pb")
    flame = Flame(s.get("flame", min=0))
    equal(flame.has_two, True)
    a, b = (sum(w for w, _ in traces(DATA + "/worked_%s.pb" % x, "ns")) for x in "ab")
    equal((flame.total[0], flame.total_b[0]), (a, b))
    equal(s.stop(), 0)


@check("source: lines and weights as -list has them")
def source(server):
    path = PROFILES + "/go/cpu.t1.pb.gz"
    own, server = server, Server(path)
    p = {"id": 0}
    got = server.get("source", a=p["id"])
    for f in got["functions"]:
        equal(sum(line["flat"] for line in f["lines"]), f["flat"], f["function"][1])
        assert not f["path_found"] and f["tried"] and all(line["text"] == "" for line in f["lines"]), f
    hot = next(f for f in got["functions"] if sum(line["cum"] > 0 for line in f["lines"]) > 1)
    name, file = hot["function"][:2], hot["file"]
    src = os.path.join(TMP, "src")
    os.makedirs(os.path.dirname(os.path.join(src, file)))
    with open(os.path.join(src, file), "w") as f:
        f.writelines("line %d of it </script>\n" % i for i in range(1, 2000))
    one = server.get("source", a=p["id"], fn=name[0], source_path=src)
    equal({f["function"][1] for f in one["functions"]}, {name[1]})
    unit = one["unit"]
    args = ("-unit=" + unit, "-source_path=" + src, path)
    listed = cli("-list=^%s$" % re.escape(name[1]), *args).decode()
    web = subprocess.run([KILN, "-weblist=^%s$" % re.escape(name[1]), "-output=" + TMP + "/weblist", *args], capture_output=True)
    equal(web.returncode, 0)
    with open(TMP + "/weblist") as f:
        want = {int(n): (number("0" if flat == "." else flat), number(cum)) for n, flat, cum in
                re.findall(r"^<span class=line> +(\d+)</span> <span class=\w+> +(\S+) +(\d\S*) ", f.read(), re.M)}
    equal({n: cum for n, (_, cum) in want.items()},
          {int(n): number(cum) for cum, n in re.findall(r"^ *\S+ +(\d\S*) +(\d+):line", listed, re.M)}, "-list and -weblist")
    lines = {line["n"]: (line["flat"], line["cum"]) for f in one["functions"] for line in f["lines"] if line["cum"]}
    assert len(lines) > 1, (lines, name, listed)
    equal(lines, want, "lines of " + name[1])
    assert all(line["text"] == "line %d of it </script>" % line["n"] for f in one["functions"] for line in f["lines"])
    equal(server.ask(API + "source?f=nosuchfunction")[0], 400)
    equal(server.stop(), 0)
    p = own.add(path)  # there, the command line's profile names other files
    one = own.get("source", a=p["id"], fn=name[1], source_path=src)
    assert not any(f["path_found"] for f in one["functions"]) and "not shown" in one["functions"][0]["tried"][0], one["functions"][0]
    own.post("profiles", method="DELETE", id=p["id"])


@check("source: the calls of one frame")
def source_of_frame(server):
    p = with_stacks(server, "main;f;g 10\nmain;g 3\nmain;f;f;f;x 5\nmain;f;g;y 2\n")["id"]
    ids = {f[1]: str(f[0]) for f in server.get("top", a=p)["functions"]}

    def weights(fn, *path, **params):
        got = server.get("source", a=p, fn=ids[fn], root=".".join(ids[name] for name in path), **params)["functions"]
        return [(f["flat"], f["cum"]) for f in got]
    equal(weights("g"), [(13, 15)])
    equal(weights("g", "main"), [(13, 15)])
    equal(weights("g", "main", "f"), [(10, 12)])
    equal(weights("g", "main", "f", "g", "y"), [(0, 2)])
    equal(weights("g", "main", "g"), [(3, 3)])
    equal(weights("x", "main", "g"), [])
    equal(weights("x", "main", "f", "x"), [])
    equal(weights("x", "main", "f", "x", rc=1), [(5, 5)])
    equal(server.ask(API + "source?root=1.x")[0], 400)
    for f in server.get("source", a=p)["functions"]: # no file is wanted where none is named
        equal((f["file"], f["path_found"], f["tried"]), ("", False, []))
    server.post("profiles", method="DELETE", id=p)


@check("source: where a function was inlined, and the code of one place")
def source_sites(server):
    def sites(got):
        return [(s["caller"] and s["caller"][1], os.path.basename(s["file"]), s["line"], s["flat"], s["cum"]) for s in got["sites"]["rows"]]

    def lines(got):
        return {line["n"]: (line["flat"], line["cum"]) for f in got["functions"] for line in f["lines"] if line["cum"]}
    p = server.add(DATA + "/called_and_inlined.pb")["id"]
    got = server.get("source", a=p, fn="work")
    equal(sites(got), [("main", "both.c", 4, 3, 7), (None, "", 0, 1, 3)])
    equal((got["sites"]["flat"], got["sites"]["cum"], got["sites"]["more"]), (4, 10, 0))
    equal(lines(got), {12: (1, 3), 13: (3, 7)})
    main = got["sites"]["rows"][0]["caller"][0]
    for site, want in (("%d:4" % main, {13: (3, 7)}), ("main:4", {13: (3, 7)}), ("called", {12: (1, 3)}), ("main:5", {}), ("nosuch:4", {})):
        one = server.get("source", a=p, fn="work", site=site)
        equal((lines(one), one["sites"]), (want, got["sites"]), site)
    equal(sites(server.get("source", a=p, fn="main")), [], "never inlined")
    equal(sites(server.get("source", a=p, fn="work", noinlines="t")), [])
    equal(sites(server.get("source", a=p, fn="work", f="deep")), [("main", "both.c", 4, 0, 4), (None, "", 0, 0, 2)], "filtered")
    for bad in ("main", "main:", "main:x", ":"):
        equal(server.ask(API + "source?fn=work&a=%d&site=%s" % (p, bad))[0], 400, bad)
    server.post("profiles", method="DELETE", id=p)
    for path in (DATA + "/inlines.pb", PROFILES + "/go/cpu.t1.pb.gz"):
        p = server.add(path)["id"]
        top = server.get("top", a=p)
        inlined = [(r, f[1]) for f, r in zip(top["functions"], top["rows"]) if f[5] & 1]
        assert inlined, path
        for row, name in inlined[:40]:
            got = server.get("source", a=p, fn=row[0])["sites"]
            equal((got["flat"], got["cum"]), (row[1], row[2]), name)
            equal([s["cum"] for s in got["rows"]], sorted((s["cum"] for s in got["rows"]), reverse=True), name)
            assert any(s["caller"] for s in got["rows"]), name
        server.post("profiles", method="DELETE", id=p)


@check("source: only regular files, below where it is to look")
def source_safety(server):
    where, secret = os.path.join(TMP, "open"), os.path.join(TMP, "secret.c")
    os.makedirs(where + "/dir.c")
    with open(secret, "w") as f:
        f.write("secret\n")
    with open(where + "/good.c", "w") as f:
        f.write("good\n")
    os.symlink("good.c", where + "/link.c")
    os.symlink("../secret.c", where + "/out.c")
    os.symlink("/proc/version", where + "/proc.c")
    os.mkfifo(where + "/fifo.c")
    outside, other = "outside of the directories", "not a regular file"
    want = {"good.c": "", "link.c": "", where + "/good.c": "", "out.c": outside, "../secret.c": outside, "proc.c": "system's own",
            "fifo.c": other, where + "/fifo.c": other, "dir.c": other, "/dev/zero": other, "/dev/tty": "", "/proc/self/environ": "system's own",
            "/proc/self/fd/0": "", "none.c": "could not find", "a\0b.c": ""}
    profile = make_profile("files.pb", [("f%d" % i, name, 1, i + 1) for i, name in enumerate(want)])
    s = Server("-source_path=" + where, profile)
    names = {f["function"][1]: f for f in s.get("source")["functions"]}
    for i, (name, why) in enumerate(want.items()):
        f = names["f%d" % i]
        equal(f["path_found"], name.endswith(("good.c", "link.c")), name)
        equal([line["text"] for line in f["lines"]], ["good" if f["path_found"] else ""], name)
        assert why in "".join(f["tried"]), (name, f)
        equal((f["binary"], f["build_id"]), ("/bin/made", "c0ffee"))
    equal(s.get("meta")["profiles"][0]["build_id"], "c0ffee")
    equal(s.stop(), 0)


@check("graph: what -dot shows, drawn")
def graph(server):
    got = server.get("graph")
    dot = cli("-dot", DATA + "/worked_a.pb").decode()
    equal(len(got["nodes"]), len(re.findall(r"^N\d+ \[label", dot, re.M)))
    equal(len(got["edges"]), len(re.findall(r"^N\d+ -> N\d+ ", dot, re.M)))
    assert got["svg"].startswith("<svg") and 'id="node1"' in got["svg"] and "cluster_L" not in got["svg"]
    assert any(line.startswith("Showing nodes") for line in got["legend"]), got["legend"]
    equal(len(server.get("graph", n=1)["nodes"]), 1)


def dot_directory(script):
    path = tempfile.mkdtemp(dir=TMP)
    with open(path + "/dot", "w") as f:
        f.write("#!/bin/sh\n" + script)
    os.chmod(path + "/dot", 0o755)
    return path


@check("graph without Graphviz: 501, in pprof's words")
def no_dot(server):
    s = Server(DATA + "/worked_a.pb", env={**os.environ, "PATH": "/nonexistent"})
    status, _, body = s.ask(API + "graph")
    equal((status, json.loads(body)["error"]), (501, "Could not execute dot; may need to install graphviz."))
    equal(s.stop(), 0)


def is_running(pid):
    try:
        with open("/proc/%d/stat" % pid) as f:
            return f.read().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):  # it may end between the two
        return False


@check("who goes away ends the work for him, and holds up nobody")
def abandoned(server):
    mark = TMP + "/dot.pid"
    path = dot_directory("echo $$ >%s.new\nmv %s.new %s\nexec sleep 60\n" % (mark, mark, mark))
    s = Server(DATA + "/worked_a.pb", env={**os.environ, "PATH": path + ":" + os.environ["PATH"]})
    c = socket.create_connection(("127.0.0.1", s.port))
    c.sendall(("GET %sgraph HTTP/1.1\r\nHost: %s\r\n\r\n" % (API, s.host)).encode())
    start = time.time()
    while not os.path.exists(mark) and time.time() - start < 10:
        time.sleep(0.01)
    pid = int(open(mark).read())
    assert is_running(pid)
    s.get("top")  # works meanwhile
    c.close()
    start = time.time()
    while is_running(pid) and time.time() - start < 10:
        time.sleep(0.005)
    took = time.time() - start
    assert took < (1 if IS_SLOW else 0.3), "dot ran on for %.3f s" % took
    c = socket.create_connection(("127.0.0.1", s.port))  # and the end of the server waits for nobody
    c.sendall(("GET %sgraph?n=3 HTTP/1.1\r\nHost: %s\r\n\r\n" % (API, s.host)).encode())
    time.sleep(0.2)
    start = time.time()
    equal(s.stop(signal.SIGINT), 0)
    assert time.time() - start < 2
    c.close()


# ---- pages, addresses, settings

@check("addresses: pprof's words")
def addresses(server):
    profile = DATA + "/worked_a.pb"
    for address, want in (("nonsense", "could not split http address: address nonsense: missing port in address"),
                          ("a:b:c", "could not split http address: address a:b:c: too many colons in address"),
                          ("localhost:abc", 'invalid port number: strconv.Atoi: parsing "abc": invalid syntax'),
                          ("localhost:%d" % server.port, "listen tcp 127.0.0.1:%d: bind: address already in use" % server.port)):
        equal(cli("-no_browser", "-http=" + address, profile, ok=False), "pprof: %s\n" % want)
    got = subprocess.run([KILN, "-no_browser", "-http=:", profile], capture_output=True, text=True,
                         env={k: v for k, v in os.environ.items() if k != "HOME"})
    equal((got.returncode, got.stderr), (2, "pprof: neither $XDG_CONFIG_HOME nor $HOME are defined\n"))
    got = cli("-no_browser", "-http=:", "-top", profile, ok=False)
    equal(got, "pprof: -http is not compatible with an output format on the command line\n")


@check("redirects, pages, and what there is not")
def redirects(server):
    for path, status, where in (("/", 307, "ui/"), ("/?f=x", 307, "ui/?f=x"), ("/top", 307, "ui/"), ("/a/b?c", 307, "../ui/?c"),
                                ("/ui", 301, "ui/"), ("/ui/", 301, "flamegraph"), ("/ui/flamegraph2?f=a", 301, "flamegraph?f=a"),
                                ("/ui/flamegraphold", 301, "flamegraph")):
        got, headers, _ = server.ask(path)
        equal((got, headers.get("location")), (status, where), path)
    for path in ("/ui/nosuch", "/ui/static/nosuch.js", "/ui/static/../index.html", "/ui/static/%2e%2e%2findex.html", "/ui/top/x"):
        status, _, body = server.ask(path)
        equal((status, body), (404, b"404 page not found\n"), path)
    equal(server.ask("/ui/api/v1/nosuch")[0], 404)
    equal(server.ask("/ui/%zz")[0], 400)


@check("download: the profile as it was loaded")
def download(server):
    for path in ("/ui/download", API + "export/original", "/ui/download?f=nosuch"):
        status, headers, body = server.ask(path)
        equal((status, headers["content-type"]), (200, "application/vnd.google.protobuf+gzip"))
        assert headers["content-disposition"].startswith("attachment")
        equal(gzip.decompress(body), gzip.decompress(cli("-proto", DATA + "/worked_a.pb")))


@check("errors: pprof's words")
def errors(server):
    for path, want in (("top?n=abc", 'error setting config field nodecount: strconv.Atoi: parsing "abc": invalid syntax'),
                       ("top?f=(", "parsing focus regexp: error parsing regexp: missing closing ): `(`"),
                       ("top?sort=x", 'error setting config field sort: invalid "sort" value "x"'),
                       ("peek?f=nosuch", "no matches found for regexp: nosuch"),
                       ("search?re=1&q=[", "error parsing regexp: missing closing ]: `[`")):
        status, headers, body = server.ask(API + path)
        equal((status, json.loads(body)["error"]), (400, want), path)
        equal(headers["content-type"], "application/json")


@check("the same again: 304; gzip if it is accepted")
def tags(server):
    path = API + "export/dot"
    status, headers, body = server.ask(path)
    equal(status, 200)
    equal(server.ask(path, headers={"If-None-Match": headers["etag"]})[0::2], (304, b""))
    equal(headers["cache-control"], "no-cache")
    _, packed, bytes_ = server.ask(path, headers={"Accept-Encoding": "gzip, br"})
    equal((packed["content-encoding"], gzip.decompress(bytes_)), ("gzip", body))
    status, headers, none = server.ask(path, method="HEAD")
    equal((status, none, int(headers["content-length"])), (200, b"", len(body)))


@check("settings: saved, read by pprof's rules, deleted")
def settings(server):
    file = os.environ["HOME"] + "/.config/pprof/settings.json"
    assert not os.path.exists(file)
    status, got = server.post("saveconfig", config="one", f="main", n="30", trim="f")
    equal((status, [c["name"] for c in got["configs"]]), (200, ["one"]))
    with open(file) as f:
        equal(f.read(), '{\n  "configs": [\n    {\n      "name": "one",\n      "unit": "minimum",\n      "sort": "flat",\n'
              '      "nodecount": 30,\n      "nodefraction": 0.005,\n      "edgefraction": 0.001,\n      "focus": "main"\n    }\n  ]\n}')
    equal((os.stat(file).st_mode & 0o777, os.stat(os.path.dirname(file)).st_mode & 0o777), (0o644, 0o700))
    server.post("saveconfig", config='t"<wo', call_tree=1, calltree="t")
    query = {c["name"]: c["query"] for c in server.get("meta")["configs"]}
    equal(query, {"one": "n=30&trim=f&f=main", 't"<wo': "calltree=t"})
    equal(server.post("saveconfig", config="")[0], 400)
    status, got = server.post("deleteconfig", method="DELETE", config="nosuch")
    equal((status, got["error"]), (400, "config nosuch not found"))
    status, _, _ = server.ask("/ui/deleteconfig?config=one", "DELETE", headers={"X-Kiln-Token": server.get("meta")["token"]})
    equal(status, 200)
    equal([c["name"] for c in server.get("configs")["configs"]], ['t"<wo'])
    with open(file, "w") as f:
        f.write("[1")
    assert server.get("meta")["configs_error"].startswith("could not parse settings: "), server.get("meta")
    equal(server.post("saveconfig", config="x")[0], 400)
    with open(file) as f:
        equal(f.read(), "[1", "a file that cannot be read stays")
    os.unlink(file)


@check("-html, and export: one file with everything in it")
def html(server):
    page = cli("-html", DATA + "/hostile.pb").decode()
    assert "src=" not in re.sub(r"<script>.*</script>", "", page, flags=re.S)
    data = re.search(r"window\.__KILN_DATA__ = (\{.*?\});\n", page, re.S)
    if data:  # the page's own files may not be there yet
        data = json.loads(data[1])
        flame = Flame(base64.b64decode(data["flame"]))
        equal(flame.total[0], sum(r[1] for r in data["top"]["rows"]))
        equal(data["meta"]["profiles"][0]["id"], 0)
        equal(len(re.findall(r"</script", page)), 1)
    status, headers, body = server.ask(API + "export/html")
    equal((status, headers["content-type"]), (200, "text/html; charset=utf-8"))
    assert b"Content-Security-Policy" in body


# ---- what must not work

@check("other names than ours: 403")
def hosts(server):
    for host, want in (("localhost:%d" % server.port, 200), ("127.0.0.1", 200), ("[::1]:80", 200), ("LOCALHOST", 200), ("127.1.2.3:5", 200),
                       ("evil.example", 403), ("localhost.evil.example", 403), ("10.0.0.1", 403), ("[::2]", 403), ("", 403), ("[", 403)):
        equal(server.ask(API + "meta", headers={"Host": host})[0], want, host)


@check("writes of other sites, without the token, or by GET: refused")
def writes(server):
    token = {"X-Kiln-Token": server.get("meta")["token"]}
    own = "http://" + server.host
    for headers, want in (({}, 403), ({"X-Kiln-Token": "0" * 32}, 403), ({**token, "Origin": "http://evil.example"}, 403),
                          ({**token, "Origin": "null"}, 403), ({**token, "Sec-Fetch-Site": "cross-site"}, 403),
                          ({**token, "Sec-Fetch-Site": "same-site"}, 403), ({**token, "Origin": own, "Sec-Fetch-Site": "same-origin"}, 200)):
        for path in (API + "saveconfig?config=x", "/ui/saveconfig?config=x"):
            equal(server.ask(path, "POST", headers=headers)[0], want, headers)
    for path in ("saveconfig", "deleteconfig", API[4:] + "saveconfig", API[4:] + "deleteconfig"):
        equal(server.ask("/ui/%s?config=x" % path, headers=token)[0], 405, path)
    equal([c["name"] for c in server.get("configs")["configs"]], ["x"])
    server.post("deleteconfig", config="x")
    equal(server.ask(API + "top", "PUT", headers=token)[0], 405)
    equal(server.ask(API + "top", "POST", headers=token)[0], 405)
    equal(server.ask(API + "meta", "OPTIONS", headers=token)[0], 405)


@check("every answer has its safety headers")
def headers(server):
    for path in ("/", "/ui/top", API + "meta", API + "nosuch", "/ui/nosuch"):
        got = server.ask(path)[1]
        assert "default-src 'none'" in got["content-security-policy"] and "frame-ancestors 'none'" in got["content-security-policy"], path
        equal((got["x-content-type-options"], got["referrer-policy"]), ("nosniff", "no-referrer"), path)
        assert "access-control-allow-origin" not in got
    equal(server.ask("/", headers={"Host": "evil"})[1]["x-content-type-options"], "nosniff")


@check("profiles: what is no profile, too many, urls that are files")
def uploads(server):
    status, got = server.post("profiles", b"hello world", name="x.pb")
    equal(status, 400)
    assert "/proc" not in got["error"] and "x.pb" in got["error"], got
    equal(server.post("profiles", b"")[0], 400)
    for url in ("/etc/passwd", "file:///etc/passwd", DATA + "/worked_a.pb"):
        equal(server.post("profiles", url=url)[0], 400, url)
    ids = [server.add(DATA + "/worked_b.pb")["id"] for _ in range(7)]
    with open(DATA + "/worked_b.pb", "rb") as f:
        equal(server.post("profiles", f.read())[0], 413)
    for id in ids:
        equal(server.post("profiles", method="DELETE", id=id)[0], 200)
    equal(server.post("profiles", method="DELETE", id=0)[0], 404)
    equal(len(server.get("profiles")["profiles"]), 1)
    equal(server.ask(API + "top?a=%d" % ids[0])[0], 404)


@check("profiles that come and go leave nothing behind")
def comings(server):
    def come_and_go(number):
        p = with_stacks(server, "".join("main;profile_%d_has_a_function_of_its_own_%d 1\n" % (number, i) for i in range(2000)))["id"]
        functions = server.get("top", a=p)["functions"]
        server.get("top", a=p, g="lines")
        server.post("profiles", method="DELETE", id=p)
        equal(len(functions), 2001)
        return max(f[0] for f in functions)
    for i in range(20):
        highest = come_and_go(i)
    before = server.rss()
    for i in range(20, 60 if IS_SLOW else 220):
        equal(come_and_go(i) <= highest, True, "numbers of functions are used again")
    grown = server.rss() - before
    assert IS_SLOW or grown < 8 << 20, "%d bytes more" % grown
    files = len(os.listdir("/proc/%d/fd" % server.process.pid))
    assert files < 60, "%d files are open" % files
    kept = {f[1]: f[0] for f in server.get("top")["functions"]}
    for name, id in kept.items():
        equal(server.get("function", id=id)["function"][1], name)


def raw(server, data, wait=5):
    with socket.create_connection(("127.0.0.1", server.port), timeout=wait) as c:
        out = b""
        try:
            c.sendall(data)
            while True:
                more = c.recv(65536)
                if not more:
                    break
                out += more
        except (TimeoutError, socket.timeout, ConnectionError):
            pass
        return out


@check("requests that are too large, or none: refused, and the server lives")
def hostile(server):
    host = ("Host: %s\r\n" % server.host).encode()
    big = raw(server, b"GET /ui/top HTTP/1.1\r\n" + host + b"X: " + b"a" * 300000 + b"\r\n\r\n")
    assert big == b"" or re.match(rb"HTTP/1.1 4(13|31|00)", big), big[:100]
    long = raw(server, b"GET /ui/top?" + b"a" * 300000 + b" HTTP/1.1\r\n" + host + b"\r\n")
    assert long == b"" or re.match(rb"HTTP/1.1 4(14|31|00|13)", long), long[:100]
    token = ("X-Kiln-Token: %s\r\n" % server.get("meta")["token"]).encode()
    much = raw(server, b"POST /ui/saveconfig?config=x HTTP/1.1\r\n" + host + token + b"Content-Length: 99999999\r\n\r\n")
    assert much.startswith(b"HTTP/1.1 413"), much[:100]
    refused = raw(server, b"POST /ui/api/v1/profiles HTTP/1.1\r\n" + host + b"Content-Length: 99999999\r\n\r\n")
    assert refused.startswith(b"HTTP/1.1 403"), refused[:100]  # before the body is read
    for data in (b"\0" * 1000, b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"\x16\x03\x01" * 100, b"GET / HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
                 b"POST /ui/saveconfig HTTP/1.1\r\n" + host + token + b"Transfer-Encoding: chunked\r\n\r\nzzzz\r\n"):
        raw(server, data, 0.3)
    for query in ("f=" + "(" * 5000, "q=%ff%fe%00&re=1", "min=nan", "min=-1", "root=1.x", "a=-1", "a=99999999999999999999", "n=" + "9" * 400,
                  "tf=%00", "g=%00", "si=nosuch", "unit=%00", "pivot=%00", "id=%ff", "fn=%ff%00", "&&&=&a&=;", "root=" + ".".join("1" * 2000)):
        for what in ("flame", "top", "search", "function", "source", "labels", "peek", "diff", "export/csv"):
            status = server.ask(API + what + "?" + query)[0]
            assert status in (200, 400, 404), (what, query, status)
    server.get("meta")


@check("slow clients hold up nobody")
def slow(server):
    slow_ones = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(100)]
    for c in slow_ones:
        c.sendall(b"GET /ui/top HTTP/1.1\r\nHost: ")
    start = time.time()
    for _ in range(20):
        server.get("top")
    assert time.time() - start < 5
    for c in slow_ones:
        c.close()


@check("50 clients at a time, some of whom go away: all are served, and memory does not grow")
def crowd(server):
    end, bad, served = [0.0], [], [0]
    requests = ["top", "flame?min=0", "search?q=a", "labels", "peek?f=main", "source?f=main", "export/dot", "flame?dir=callers", "meta"]

    def client(number):
        i = number
        while time.time() < end[0]:
            path = API + requests[i % len(requests)]
            if i % 7 == 0:  # new each time
                path += ("&" if "?" in path else "?") + "nf=0.0000%d" % (i % 100000)
            try:
                if i % 11 == 0:
                    with socket.create_connection(("127.0.0.1", server.port)) as c:
                        c.sendall(("GET %s HTTP/1.1\r\nHost: %s\r\n\r\n" % (path, server.host)).encode())
                else:
                    status = server.ask(path)[0]
                    served[0] += 1
                    if status != 200:
                        bad.append((path, status))
            except Exception as e:
                bad.append((path, repr(e)))
            i += 50

    def run(seconds):
        end[0] = time.time() + seconds
        threads = [threading.Thread(target=client, args=(n,)) for n in range(50)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    run(1)
    before = server.rss()
    run(2)
    equal(bad[:3], [])
    assert served[0] > 200, served
    grown = server.rss() - before
    assert IS_SLOW or grown < 30 << 20, "%d bytes more" % grown
    files = len(os.listdir("/proc/%d/fd" % server.process.pid))
    assert files < 60, "%d files are open" % files


@check("without libmicrohttpd: says what to install")
def no_library(server):
    lib = tempfile.mkdtemp(dir=TMP)
    open(lib + "/libmicrohttpd.so.12", "w").close()
    done = subprocess.run([KILN, "-no_browser", "-http=:", DATA + "/worked_a.pb"], capture_output=True, text=True,
                          env={**os.environ, "LD_LIBRARY_PATH": lib})
    equal(done.returncode, 2)
    assert "install the package libmicrohttpd12" in done.stderr, done.stderr


@check("localhost is known where no /etc/hosts names it")
def no_hosts(server):
    alone = ["unshare", "-rm", "sh", "-c", "for f in hosts resolv.conf; do mount --bind /dev/null /etc/$f || exit 9; done; exec \"$@\"", "sh"]
    if subprocess.run([*alone, "true"], capture_output=True).returncode:
        return print("# SKIP this machine lets nobody mount")
    it = subprocess.Popen([*alone, KILN, "-no_browser", "-http=localhost:", DATA + "/worked_a.pb"], stderr=subprocess.PIPE, text=True)
    line = it.stderr.readline()
    it.terminate()
    it.communicate()
    assert line.startswith("Serving web UI on http://localhost:"), line


@check("-ui_dir: files from a directory")
def ui_dir(server):
    where = tempfile.mkdtemp(dir=TMP)
    with open(where + "/index.html", "w") as f:
        f.write("mine")
    s = Server("-ui_dir=" + where, DATA + "/worked_a.pb")
    equal(s.ask("/ui/top")[2], b"mine")
    equal(s.ask("/ui/static/index.html")[2], b"mine")
    equal(s.ask("/ui/static/..%2fhome")[0], 404)
    equal(s.stop(), 0)
    for missing in (TMP + "/none", DATA + "/worked_a.pb"):
        done = subprocess.run([KILN, "-no_browser", "-http=:", "-ui_dir=" + missing, DATA + "/worked_a.pb"], capture_output=True, text=True)
        equal(done.returncode, 2)
        assert "-ui_dir=%s: there is no index.html" % missing in done.stderr, done.stderr


@check("the server ends by SIGTERM with status 0")
def ends(server):
    equal(server.stop(), 0)


run_checks(Server(DATA + "/worked_a.pb"))
