"""Queries of Grafana's Pyroscope data source, in the bytes that it sends, and of Profiles Drilldown, in JSON.

Answers are read by a reader of protobuf that knows nothing of ours; sums are held against /api/1/ and kiln -top.
"""
import collections
import gzip
import json
import struct
import urllib.parse

from serve_lib import CPU, HEAP, TMP, Server, check, cli, done, equal, field, profile, values, varint

START = 1700000000 * 10**9  # not at a full minute: steps are
STEP = 15 * 10**9
TYPE = "process_cpu:cpu:nanoseconds:cpu:nanoseconds"
SAMPLES = "process_cpu:samples:count:cpu:nanoseconds"
SPACE = "memory:inuse_space:bytes:space:bytes"
ALLOCATED = "memory:alloc_space:bytes:space:bytes"
GRAFANA = {"Content-Type": "application/proto", "Connect-Protocol-Version": "1", "Accept-Encoding": "gzip",
           "User-Agent": "connect-go/1.18.1 (go1.24.3)"}
DRILLDOWN = {"Content-Type": "application/json", "X-Grafana-Org-Id": "1", "Sec-Fetch-Site": "same-origin"}
WINDOW = (START // 10**6, START // 10**6 + 600000)


# ---- protobuf, as its documentation has it

def double(number, value):
    return varint(number << 3 | 1) + struct.pack("<d", value)


def take_varint(data, at):
    shift = value = 0
    while True:
        value |= (data[at] & 127) << shift
        at, shift = at + 1, shift + 7
        if data[at - 1] < 128:
            return value, at


def signed(n):
    return n - (1 << 64) if n >> 63 else n


def fields(data):
    """{number: [value, ...]}: integers, floats and bytes."""
    out, at = collections.defaultdict(list), 0
    while at < len(data):
        key, at = take_varint(data, at)
        if key & 7 == 0:
            value, at = take_varint(data, at)
            value = signed(value)
        elif key & 7 == 1:
            value, at = struct.unpack_from("<d", data, at)[0], at + 8
        else:
            assert key & 7 == 2, key
            n, at = take_varint(data, at)
            value, at = data[at:at + n], at + n
            assert len(value) == n
        out[key >> 3].append(value)
    return out


def packed(data):
    out, at = [], 0
    while at < len(data):
        value, at = take_varint(data, at)
        out.append(signed(value))
    return out


def text(values):
    return [v.decode() for v in values]


# ---- asking

def unpacked(headers, body):
    return gzip.decompress(body) if headers.get("content-encoding") == "gzip" else body


def call(method, message, status=200):
    """As Grafana's backend does it."""
    got, headers, body = server.ask("/querier.v1.QuerierService/" + method, "POST", message, GRAFANA)
    body = unpacked(headers, body)
    assert got == status, (got, body)
    equal(headers["content-type"], "application/proto" if status == 200 else "application/json")
    return fields(body) if status == 200 else json.loads(body)


def ask(method, status=200, headers=None, **message):
    """As a page of Profiles Drilldown does it."""
    got, sent, body = server.ask("/querier.v1.QuerierService/" + method, "POST", json.dumps(message),
                                 {**DRILLDOWN, **(headers or {})})
    assert got == status, (got, body)
    equal(sent["content-type"], "application/json")
    return json.loads(unpacked(sent, body))


def window(first, end=None, start=None):
    """Fields of start and end, the number of the first given."""
    return field(first, start or WINDOW[0]) + field(first + 1, end or WINDOW[1])


def select(type_id=TYPE, selector="{}", max_nodes=None, **times):
    """SelectMergeStacktracesRequest."""
    return field(1, type_id.encode()) + field(2, selector.encode()) + window(3, **times) + \
        (field(5, max_nodes) if max_nodes is not None else b"")


Box = collections.namedtuple("Box", "name at total self children")


def boxes(names, levels):
    """The tree, as Grafana makes it of levels: who is below, and within, is a child."""
    above, root = [], None
    for number, level in enumerate(levels):
        here, end = [], 0
        for i in range(0, len(level), 4):
            offset, total, own, name = level[i:i + 4]
            box = Box(names[name], end + offset, total, own, [])
            end = box.at + total
            here.append(box)
            if not number:
                root = box
                continue
            while not (above[0].at <= box.at and end <= above[0].at + above[0].total):
                above.pop(0)
            above[0].children.append(box)
        above = here
    return root


def stacks(box, path=()):
    """{"leaf;caller;main": what it takes itself}"""
    path = (box.name,) + path
    out = {";".join(path[:-1]): box.self} if box.self else {}
    for child in box.children:
        out.update(stacks(child, path))
    return out


def flamegraph(message):
    got = fields(message)
    names, levels = text(got[1]), [packed(fields(level)[1][0]) for level in got[2]]
    root = boxes(names, levels)
    equal(root.name, "total")
    equal(got[3], [root.total])
    equal(got[4], [max(level[i + 2] for level in levels for i in range(0, len(level), 4))])
    return root


def merged(type_, selector, **more):
    """What kiln itself says: {stack: values}."""
    query = urllib.parse.urlencode({"query": selector, "type": type_, "from": "%d.0" % (START // 10**9),
                                    "to": str(START // 10**9 + 600), **more})
    status, _, body = server.ask("/api/1/merge?" + query)
    equal(status, 200)
    return body


# ---- what there is

def push(service, type_, of, time, stacks_, **more):
    got = server.push(profile(stacks_, time=time, **more), service=service, type=type_, instance_id="i",
                      labels=",".join("%s=%s" % label for label in of.items()))
    assert isinstance(got, dict), got


def fill():
    for i in range(20):
        for pod in "ab":
            push("shop", "cpu", {"version": "1.%d" % (i // 10), "pod": pod}, START + i * STEP,
                 {"work;handle;main": (2 + i, (2 + i) * 10**7), "idle;main": (1, 10**7),
                  "parse;handle;main": (3, 3 * 10**7)},
                 period=("cpu", "nanoseconds", 10**7), duration=STEP, labels={"span_id": "%016x" % (i % 2), "trace_id": "%032x" % (i % 2)})
        push("db", "heap", {"zone": "north"}, START + i * STEP,
             {"read;main": (5 + i, 100 + 10 * i, 2, 64 + i), "write;main": (1, 10, 1, 10)}, types=HEAP,
             period=("space", "bytes", 512 * 1024))
    push("odd", "queue", {"a.b/c-d": "x y"}, START, {"f;main": (7,)}, types=(("jobs", "count"),))
    server.ask("/api/0/profiles?service=odd&type=trace&instance_id=i", "POST", b"no profile at all")


# ---- names

def test_profile_types():
    got = [fields(t) for t in call("ProfileTypes", window(1))[1]]
    ids = [text(t[1])[0] for t in got]
    equal(ids, sorted(["memory:%s:%s:space:bytes" % t for t in HEAP] + [TYPE, SAMPLES, "queue:jobs:count::"]))
    cpu = got[ids.index(TYPE)]
    equal([text(cpu[i])[0] for i in (2, 4, 5, 6, 7)], TYPE.split(":"))
    # The button "Save & test", and Grafana before 11, send nothing at all.
    equal([text(fields(t)[1])[0] for t in call("ProfileTypes", b"")[1]], ids)
    equal([t["ID"] for t in ask("ProfileTypes", start=str(WINDOW[0]), end=WINDOW[1])["profileTypes"]], ids)
    equal(ask("ProfileTypes")["profileTypes"][ids.index(TYPE)],
          dict(zip(("ID", "name", "sampleType", "sampleUnit", "periodType", "periodUnit"), [TYPE] + TYPE.split(":"))))
    equal(call("ProfileTypes", field(1, 1000) + field(2, 2000)), {})


OWN = ["__name__", "__period_type__", "__period_unit__", "__profile_type__", "__type__", "__unit__"]


def test_label_names():
    equal(text(call("LabelNames", field(1, b"{}") + window(2))[1]),
          sorted(OWN + ["service_name", "version", "pod", "zone", "a.b/c-d"]))
    # What the query editor completes by.
    selector = '{__profile_type__="%s",service_name="shop"}' % TYPE
    equal(text(call("LabelNames", field(1, selector.encode()) + window(2))[1]), OWN + ["pod", "service_name", "version"])
    equal(ask("LabelNames", matchers=['{__profile_type__="%s"}' % SPACE], start=WINDOW[0], end=WINDOW[1]),
          {"names": OWN + ["service_name", "zone"]})
    equal(ask("LabelNames", matchers=['{service_name="nobody"}'], start=WINDOW[0], end=WINDOW[1]), {})


def test_label_values():
    def of(name, selector="", **times):
        message = field(1, name.encode()) + field(2, selector.encode()) + window(3, **times)
        return text(call("LabelValues", message)[1])

    equal(of("service_name", "{}"), ["db", "odd", "shop"])
    equal(of("service_name", '{__profile_type__="%s"}' % TYPE), ["shop"])
    equal(of("service_name", '{__type__=~"inuse.*"}'), ["db"])
    equal(of("__profile_type__", '{service_name="odd"}'), ["queue:jobs:count::"])
    equal(of("__name__", '{__name__!="memory"}'), ["process_cpu", "queue"])
    equal(of("version", '{service_name="shop"}'), ["1.0", "1.1"])
    equal(of("version", '{pod="a", version!~"1\\\\.0"}'), ["1.1"])
    equal(of("version", '{version=\'1.0\'}'), ["1.0"])
    equal(of("version", end=WINDOW[0] + 60000), ["1.0"])
    equal(of("nothing"), [])
    equal(ask("LabelValues", name="pod", matchers=[], start=str(WINDOW[0]), end=str(WINDOW[1])), {"names": ["a", "b"]})
    # Selectors of a list are alternatives.
    equal(ask("LabelValues", name="service_name", matchers=['{zone="north"}', '{pod="a"}']), {"names": ["db", "shop"]})


def test_series():
    got = ask("Series", matchers=[], labelNames=["service_name", "__profile_type__"], start=WINDOW[0], end=WINDOW[1])
    sets = [{label["name"]: label["value"] for label in s["labels"]} for s in got["labelsSet"]]
    want = [("db", "memory:%s:%s:space:bytes" % t) for t in HEAP] + \
        [("odd", "queue:jobs:count::"), ("shop", SAMPLES), ("shop", TYPE)]
    equal([(s["service_name"], s["__profile_type__"]) for s in sets], want)
    message = field(1, ('{service_name="shop",version="1.1",__type__="cpu"}').encode()) + window(3)
    got = [[tuple(text(fields(label)[i])[0] for i in (1, 2)) for label in fields(s)[1]]
           for s in call("Series", message)[2]]
    for labels, pod in zip(got, "ab"):
        equal(labels, [("__name__", "process_cpu"), ("__period_type__", "cpu"), ("__period_unit__", "nanoseconds"),
                       ("__profile_type__", TYPE), ("__type__", "cpu"), ("__unit__", "nanoseconds"), ("pod", pod),
                       ("service_name", "shop"), ("version", "1.1")])
    equal(len(got), 2)


def test_stats():
    got = call("GetProfileStats", b"")
    equal(got[1], [1])
    equal(got[2], [WINDOW[0]])
    assert got[3][0] >= WINDOW[0] + 19 * STEP // 10**6, got
    equal(ask("GetProfileStats")["dataIngested"], True)


# ---- flame graphs

def test_flamegraph():
    """Sums are those of /api/1/merge, and of kiln -top of what that gives."""
    for selector in ("{}", '{service_name="shop"}', '{service_name="shop",version="1.0"}', '{pod=~"a|c"}'):
        for column, type_id in enumerate((SAMPLES, TYPE)):
            root = flamegraph(call("SelectMergeStacktraces", select(type_id, selector, 16384))[1][0])
            own = merged("cpu", selector.replace("service_name", "service"))
            want = {k: v[column] for k, v in values(own).items()}
            equal(stacks(root), want)
            equal(root.total, sum(want.values()))
    with open(TMP + "/merged", "wb") as f:
        f.write(merged("cpu", "{}"))
    root = flamegraph(call("SelectMergeStacktraces", select())[1][0])
    total = cli("-top", "-unit=ns", "-sample_index=cpu", TMP + "/merged").split(" of ")[1].split("ns total")[0]
    equal(root.total, int(total))
    equal([c.name for c in root.children], ["main"])
    equal([c.name for c in root.children[0].children], ["handle", "idle"])


def test_flamegraph_of_gauges():
    """Memory in use is averaged, and allocations are differences, as /api/1/merge has them."""
    for column, type_id in ((3, SPACE), (1, ALLOCATED)):
        root = flamegraph(call("SelectMergeStacktraces", select(type_id, '{service_name="db"}'))[1][0])
        want = {k: v[column] for k, v in values(merged("heap", "{}"), 4).items() if v[column]}
        equal(stacks(root), want)
    assert root.total > 0


def test_flamegraph_json():
    got = ask("SelectMergeStacktraces", profileTypeID=TYPE, labelSelector="{}", start=WINDOW[0], end=str(WINDOW[1]),
              maxNodes="100", format="PROFILE_FORMAT_FLAMEGRAPH", nobodyKnows={"a": [1]})["flamegraph"]
    root = boxes(got["names"], [[int(v) for v in level["values"]] for level in got["levels"]])
    equal(root, flamegraph(call("SelectMergeStacktraces", select())[1][0]))
    equal((got["total"], got["levels"][0]["values"]), (str(root.total), ["0", str(root.total), "0", "0"]))
    # Names as in the .proto file, numbers for enums.
    equal(ask("SelectMergeStacktraces", profile_typeID=TYPE, label_selector="", start=WINDOW[0], end=WINDOW[1],
              max_nodes=100, format=1)["flamegraph"], got)


def test_max_nodes():
    """What is cut is there as "other", and no sum changes."""
    whole = flamegraph(call("SelectMergeStacktraces", select())[1][0])
    cut = flamegraph(call("SelectMergeStacktraces", select(max_nodes=2))[1][0])
    equal(cut.total, whole.total)
    equal(sum(stacks(cut).values()), whole.total)
    assert any(s.startswith("other;") for s in stacks(cut)), stacks(cut)
    assert len(stacks(cut)) < len(stacks(whole))
    # Nobody need wait for an answer that comes at once: "async" is a message.
    equal(flamegraph(call("SelectMergeStacktraces", select() + field(9, field(1, 1) + field(2, b"id")))[1][0]), whole)
    assert ask("SelectMergeStacktraces", profileTypeID=TYPE, labelSelector="{}", start=WINDOW[0], end=WINDOW[1],
               **{"async": {"type": "ASYNC_TYPE_DISABLED"}})["flamegraph"]
    error = call("SelectMergeStacktraces", select(max_nodes=10**9), 400)
    equal(error["code"], "invalid_argument")
    assert "max_nodes" in error["message"], error


def test_nothing():
    """No flame graph at all: Grafana takes that for an empty one."""
    for message in (select(selector='{service_name="nobody"}'), select(start=1000, end=2000),
                    select("wall:wall:nanoseconds:wall:nanoseconds"), select(selector='{__name__="memory"}')):
        equal(call("SelectMergeStacktraces", message), {})
    equal(ask("SelectMergeStacktraces", profileTypeID=TYPE, labelSelector='{a="b"}', start=1, end=2), {})
    equal(call("SelectMergeProfile", select(start=1000, end=2000)), {})


def test_formats():
    def one(format_):
        return call("SelectMergeStacktraces", select() + field(6, format_))

    tree, at, nodes = one(2)[2][0], 0, []
    while at < len(tree):
        n, at = take_varint(tree, at)
        name, at = tree[at:at + n].decode(), at + n
        own, at = take_varint(tree, at)
        n, at = take_varint(tree, at)
        nodes.append((name, own, n))

    def read_tree(path=()):
        name, own, n = nodes.pop(0)
        path = (name,) + path
        out = {";".join(path[:-1]): own} if own else {}
        for _ in range(n):
            out.update(read_tree(path))
        return out

    want = stacks(flamegraph(one(1)[1][0]))
    equal(read_tree(), want)
    assert one(3)[3][0].startswith(b"digraph"), one(3)
    equal({k: v[0] for k, v in values(fields(one(4)[5][0])[1][0], 1).items()}, want)
    equal(call("SelectMergeStacktraces", select() + field(6, 9), 400)["code"], "invalid_argument")


def test_call_site():
    def site(*names):
        return b"".join(field(1, field(1, name.encode())) for name in names)

    whole = stacks(flamegraph(call("SelectMergeStacktraces", select())[1][0]))
    got = call("SelectMergeStacktraces", select() + field(7, site("main", "handle")))
    equal(stacks(flamegraph(got[1][0])), {k: v for k, v in whole.items() if k.endswith("handle;main")})
    got = call("SelectMergeProfile", select() + field(6, site("main", "idle")))
    assert got[2], got
    series = call("SelectSeries", field(1, TYPE.encode()) + field(2, b"{}") + window(3) + double(6, 600) +
                  field(8, site("main", "handle")))
    total = sum(fields(p)[1][0] for p in fields(series[1][0])[2])
    equal(total, sum(v for k, v in whole.items() if k.endswith("handle;main")))
    error = call("SelectMergeProfile", select() + field(6, field(2, field(1, 5))), 400)
    assert "go_pgo" in error["message"], error


def test_spans():
    def spans(*ids):
        return field(1, TYPE.encode()) + field(2, b"{}") + b"".join(field(3, i.encode()) for i in ids) + window(4) + \
            field(6, 16384)

    both = [flamegraph(call("SelectMergeSpanProfile", spans("%016x" % i))[1][0]).total for i in (0, 1)]
    equal(sum(both), flamegraph(call("SelectMergeStacktraces", select())[1][0]).total)
    assert both[0] < both[1], both
    got = ask("SelectMergeSpanProfile", profileTypeID=TYPE, labelSelector="{}", spanSelector=["%016X" % 1],
              start=WINDOW[0], end=WINDOW[1])
    equal(got["flamegraph"]["total"], str(both[1]))
    equal(flamegraph(call("SelectMergeStacktraces", select() + field(11, b"%016x" % 1))[1][0]).total, both[1])
    # By the trace, which each request has in a field of its own.
    trace = b"%032x" % 1
    equal(flamegraph(call("SelectMergeStacktraces", select() + field(10, trace))[1][0]).total, both[1])
    profile_ = call("SelectMergeProfile", select() + field(8, trace))
    equal(sum(fields(s)[2][0] for s in profile_[2]), both[1])
    got = ask("SelectMergeProfile", profileTypeID=TYPE, labelSelector="{}", traceIdSelector=[trace.decode()], start=WINDOW[0], end=WINDOW[1])
    equal(sum(int(s["value"][0]) for s in got["sample"]), both[1])


def test_profile_ids():
    status, got = server.get("/api/1/profiles", service="shop", limit=3, **{"from": START // 10**9})
    equal((status, len(got["profiles"])), (200, 3))
    ids = [p["id"] for p in got["profiles"]]
    message = select() + b"".join(field(8, i.encode()) for i in ids)
    status, _, body = server.ask("/api/0/profiles/" + "+".join(ids))
    equal(stacks(flamegraph(call("SelectMergeStacktraces", message)[1][0])), {k: v[1] for k, v in values(body).items()})
    error = call("SelectMergeStacktraces", select() + field(8, b"7c9e6679-7425-40de-944b-e07fc1f90ae7"), 400)
    assert "no id of a profile" in error["message"], error


def test_profile():
    """google.v1.Profile, of the sample type that was asked for alone."""
    _, headers, body = server.ask("/querier.v1.QuerierService/SelectMergeProfile", "POST", select(), GRAFANA)
    body = unpacked(headers, body)
    equal({k: v[0] for k, v in values(body, 1).items()},
          {k: v[1] for k, v in values(merged("cpu", "{}")).items()})
    got = ask("SelectMergeProfile", profileTypeID=TYPE, labelSelector="{}", start=WINDOW[0], end=WINDOW[1])
    table = got["stringTable"]
    equal([(table[int(t["type"])], table[int(t["unit"])]) for t in got["sampleType"]], [("cpu", "nanoseconds")])
    equal(sum(int(s["value"][0]) for s in got["sample"]),
          flamegraph(call("SelectMergeStacktraces", select())[1][0]).total)
    names = {f["id"]: table[int(f["name"])] for f in got["function"]}
    first = {l["id"]: names[l["line"][0]["functionId"]] for l in got["location"]}
    equal({first[s["locationId"][-1]] for s in got["sample"]}, {"main"})


def test_diff():
    left = select(selector='{version="1.0"}')
    right = select(selector='{version="1.1"}')
    got = fields(call("Diff", field(1, left) + field(2, right))[1][0])
    names, levels = text(got[1]), [packed(fields(level)[1][0]) for level in got[2]]

    def side(first):
        four = [[v for i in range(0, len(level), 7) for v in level[i + first:i + first + 3] + [level[i + 6]]]
                for level in levels]
        return stacks(boxes(names, four))

    totals = []
    for first, message in ((0, left), (3, right)):
        want = stacks(flamegraph(call("SelectMergeStacktraces", message)[1][0]))
        equal(side(first), want)
        totals.append(sum(want.values()))
    equal([got[5][0], got[6][0], got[3][0]], totals + [sum(totals)])
    as_json = ask("Diff", left={"profileTypeID": TYPE, "labelSelector": '{version="1.0"}', "start": WINDOW[0], "end": WINDOW[1]},
                  right={"profileTypeID": TYPE, "labelSelector": '{version="9"}', "start": WINDOW[0], "end": WINDOW[1]})
    equal([as_json["flamegraph"].get(k) for k in ("leftTicks", "rightTicks")], [str(totals[0]), None])
    equal(ask("Diff", 400, left={"profileTypeID": TYPE})["code"], "invalid_argument")


# ---- values over time

def lines(message):
    out = {}
    for series in call("SelectSeries", message)[1]:
        got = fields(series)
        labels = tuple(tuple(text(fields(label)[i])[0] for i in (1, 2)) for label in got[1])
        out[labels] = [(fields(p)[2][0], fields(p)[1][0]) for p in got[2]]
    return out


def series_request(type_id=TYPE, selector="{}", groups=(), step=15.0, more=b""):
    return field(1, type_id.encode()) + field(2, selector.encode()) + window(3) + \
        b"".join(field(5, g.encode()) for g in groups) + double(6, step) + more


def test_select_series():
    got = lines(series_request())
    equal(list(got), [()])
    equal(len(got[()]), 20)
    assert all(t % 15000 == 0 for t, _ in got[()]), got
    equal([v for _, v in got[()]], [2.0 * (2 + i + 4) * 10**7 for i in range(20)])
    status, ours = server.get("/api/1/series", type="cpu", sample_type="cpu", step="15s", from_="x")
    equal(status, 400)
    query = {"type": "cpu", "sample_type": "cpu", "step": "1m", "from": str(START // 10**9), "to": str(START // 10**9 + 600)}
    status, ours = server.get("/api/1/series", **query)
    equal([(t, v) for t, v in lines(series_request(step=60.0))[()]],
          [(int(p[0] * 1000), p[1]) for p in ours["lines"][0]["points"]])


def test_group_by():
    got = lines(series_request(groups=["service_name"]))
    equal(list(got), [(("service_name", "shop"),)])
    got = lines(series_request(groups=["version", "pod"], step=600.0))
    equal(set(got), {(("version", v), ("pod", p)) for v in ("1.0", "1.1") for p in "ab"})
    total = flamegraph(call("SelectMergeStacktraces", select())[1][0]).total
    equal(sum(v for points in got.values() for _, v in points), float(total))
    # A label that is not there is left out, and what the type says is the same for all.
    equal(list(lines(series_request(groups=["nothing"]))), [()])
    equal(list(lines(series_request(groups=["__type__", "pod"], step=600.0))),
          [(("__type__", "cpu"), ("pod", p)) for p in "ab"])
    # The highest alone.
    equal(list(lines(series_request(groups=["version"], step=600.0, more=field(9, 1)))), [(("version", "1.1"),)])


def test_aggregation():
    sums, means = (lines(series_request(step=600.0, more=field(7, i)))[()] for i in (0, 1))
    equal(sum(v for _, v in sums), 2.0 * 10**7 * sum(range(6, 26)))
    assert all(m[1] < s[1] for s, m in zip(sums, means)), (sums, means)
    # Memory in use of ten profiles is not ten times as much.
    space = lines(series_request(SPACE, step=600.0))[()]
    assert all(74 <= v <= 74 + 20 for _, v in space), space
    got = ask("SelectSeries", profileTypeID=TYPE, labelSelector="{}", start=WINDOW[0], end=WINDOW[1], step=600,
              aggregation="TIME_SERIES_AGGREGATION_TYPE_AVERAGE", groupBy=["pod"], limit=None)
    equal([s["labels"] for s in got["series"]], [[{"name": "pod", "value": p}] for p in "ab"])
    assert isinstance(got["series"][0]["points"][0]["value"], (int, float)), got
    assert isinstance(got["series"][0]["points"][0]["timestamp"], str), got


# ---- older requests

def render(path="/pyroscope/render", status=200, **params):
    params = {**({"from": WINDOW[0], "until": WINDOW[1]} if path.endswith("render") else {}), **params}
    got, headers, body = server.ask(path + "?" + urllib.parse.urlencode(params))
    assert got == status, (got, body)
    return json.loads(body) if headers["content-type"] == "application/json" else body


def test_render():
    got = render(query=TYPE + '{service_name="shop"}', format="json", maxNodes=100, groupBy="pod", refreshToken="x")
    bearer = got["flamebearer"]
    root = boxes(bearer["names"], bearer["levels"])
    equal(root, flamegraph(call("SelectMergeStacktraces", select())[1][0]))
    equal((got["version"], bearer["numTicks"]), (1, root.total))
    equal(got["metadata"], {"format": "single", "spyName": "", "sampleRate": 10**9, "units": "samples", "name": "cpu"})
    line = got["timeline"]
    equal((line["durationDelta"], line["startTime"] % 15), (15, 0))
    equal(sum(line["samples"]), root.total)
    at = {line["startTime"] * 1000 + i * 15000: v for i, v in enumerate(line["samples"]) if v}
    equal(at, {t: int(v) for t, v in lines(series_request())[()]})
    equal({k: sum(v["samples"]) for k, v in got["groups"].items()}, {"a": root.total // 2, "b": root.total // 2})
    # Times in seconds, a long window, and one without profiles.
    long = render(query=TYPE, **{"from": START // 10**9, "until": START // 10**9 + 86400 * 30})
    equal(long["flamebearer"], bearer)
    assert len(long["timeline"]["samples"]) <= 1501, len(long["timeline"]["samples"])
    equal(sum(long["timeline"]["samples"]), root.total)
    equal(render(query=TYPE, **{"from": "now-2h", "until": "now"})["flamebearer"],
          {"names": ["total"], "levels": [[0, 0, 0, 0]], "numTicks": 0, "maxSelf": 0})
    equal(render(query=SPACE)["metadata"]["units"], "bytes")


def test_render_formats():
    assert render(query=TYPE, format="dot", **{"max-nodes": 10}).startswith(b"digraph")
    equal(values(render(query=TYPE, format="pprof"), 1), {k: v[1:] for k, v in values(merged("cpu", "{}")).items()})
    for params, part in (({}, "query is missing"), ({"query": "cpu{}"}, "five parts"),
                         ({"query": TYPE + "{a}"}, "column"), ({"query": TYPE, "from": "yesterday"}, "from"),
                         ({"query": TYPE, "format": "svg"}, "json dot pprof")):
        error = render(status=400, **params)
        equal(error["code"], "invalid_argument")
        assert part in error["message"], error
    equal(render(status=404, query=TYPE, format="dot", **{"from": 1, "until": 2})["code"], "not_found")


def test_render_diff():
    got = render("/pyroscope/render-diff", leftQuery=TYPE + '{version="1.0"}', rightQuery=TYPE + '{version="1.1"}',
                 leftFrom=WINDOW[0], leftUntil=WINDOW[1], rightFrom=WINDOW[0], rightUntil=WINDOW[1])
    message = fields(call("Diff", field(1, select(selector='{version="1.0"}')) +
                          field(2, select(selector='{version="1.1"}')))[1][0])
    equal(got["flamebearer"]["levels"], [packed(fields(level)[1][0]) for level in message[2]])
    equal([got["leftTicks"], got["rightTicks"], got["metadata"]["format"]], [message[5][0], message[6][0], "double"])


def test_what_probes_ask():
    equal(render("/pyroscope/label-values", label="service_name"), ["db", "odd", "shop"])
    equal(render("/pyroscope/label-values", label="pod", query='{version="1.1"}'), ["a", "b"])
    equal(render("/pyroscope/label-values", 400)["code"], "invalid_argument")
    equal(server.ask("/ready")[0], 200)
    equal(render("/api/v1/status/buildinfo")["data"]["version"], server.get("/api/0/version")[1]["body"]["version"])


# ---- what is wrong

def test_errors():
    def says(method, message, *parts):
        error = call(method, message, 400)
        equal(error["code"], "invalid_argument")
        for part in parts:
            assert part in error["message"], (part, error)

    says("SelectMergeStacktraces", select("cpu"), "profile_typeID", "five parts")
    says("SelectMergeStacktraces", b"", "profile_typeID")
    says("SelectMergeStacktraces", select(selector='{a="b"'), "label_selector", "column")
    says("SelectMergeStacktraces", select(selector='{a=~"("}'), "label_selector")
    says("SelectMergeStacktraces", select("process_cpu:nothing:count:cpu:nanoseconds"), "nothing", "samples, cpu")
    says("SelectMergeStacktraces", field(1, TYPE.encode()) + field(2, b"{}"), "start and end")
    says("SelectMergeStacktraces", select(start=WINDOW[1], end=WINDOW[0]), "is after end")
    says("SelectMergeStacktraces", b"\x0a\xff", "protobuf")
    says("SelectMergeStacktraces", field(1, 5), "profile_typeID", "wire type")
    says("SelectMergeStacktraces", field(1, b"a\0b"), "NUL")
    says("SelectSeries", series_request(step=0.0), "step")
    says("SelectSeries", series_request(step=float("nan")), "step")
    says("SelectSeries", series_request(step=0.001), "longer step")
    says("SelectSeries", series_request(groups=["x"] * 17), "group_by")
    says("LabelValues", b"", "name")
    says("LabelNames", field(1, b"{}") * 17, "matchers")
    says("Series", field(2, b"pod") * 65, "label_names", "at most 64")
    says("Diff", field(1, select()), "right")

    def json_says(part, body, method="SelectSeries"):
        got, _, answer = server.ask("/querier.v1.QuerierService/" + method, "POST", body, DRILLDOWN)
        error = json.loads(answer)
        equal((got, error["code"]), (400, "invalid_argument"))
        assert part in error["message"], error

    json_says("JSON", "{")
    json_says("object", "[]")
    json_says("start", '{"start": true}')
    json_says("start", '{"start": "1x"}')
    json_says("start", '{"start": 1.5}')
    json_says("label_selector", '{"labelSelector": 5}')
    json_says("TIME_SERIES_AGGREGATION_TYPE_SUM", '{"aggregation": "MEDIAN"}')
    json_says("call_site", '{"stackTraceSelector": {"callSite": [5]}}')


def test_protocol():
    path = "/querier.v1.QuerierService/"
    for method in ("SelectHeatmap", "AnalyzeQuery", "Nothing"):
        got, headers, body = server.ask(path + method, "POST", b"", GRAFANA)
        equal((got, headers["content-type"]), (501, "application/json"))
        equal(json.loads(body)["code"], "unimplemented")
    got, headers, body = server.ask(path + "ProfileTypes", "POST", b"", {"Content-Type": "application/grpc"})
    equal(got, 415)
    got, _, body = server.ask(path + "ProfileTypes", "POST", gzip.compress(b""), {**GRAFANA, "Content-Encoding": "gzip"})
    equal(got, 200)
    got, _, body = server.ask(path + "ProfileTypes", "POST", b"\x1f\x8b", {**GRAFANA, "Content-Encoding": "gzip"})
    equal((got, json.loads(body)["code"]), (400, "invalid_argument"))
    got, _, body = server.ask(path + "LabelNames", "POST", b"\x0a" * 70000, GRAFANA)
    equal((got, json.loads(body)["code"]), (413, "invalid_argument"))
    got, headers, body = server.ask(path + "SelectMergeStacktraces", "POST", select(), GRAFANA)
    equal(got, 200)
    assert unpacked(headers, body), headers


def test_roles():
    """Grafana has a token that reads; errors of the gate are Connect's."""
    with open(TMP + "/tokens", "w") as f:
        f.write("read %s grafana\nwrite %s agent\n" % ("r" * 20, "w" * 20))
    guarded = Server("--tokens", TMP + "/tokens")
    path = "/querier.v1.QuerierService/ProfileTypes"
    for token, status, code in ((None, 401, "unauthenticated"), ("w" * 20, 403, "permission_denied"), ("r" * 20, 200, None)):
        headers = {**GRAFANA, **({"Authorization": "Bearer " + token} if token else {})}
        got, _, body = guarded.ask(path, "POST", b"", headers)
        equal((got, json.loads(body)["code"] if code else None), (status, code))
    guarded.stop()


def test_not_utf8():
    """Names that are no UTF-8: readers of proto3 would refuse the whole answer."""
    at = START - 3600 * 10**9
    body = profile({"caf\ufffd;main": (1, 10**7)}, time=at, pack=False).replace("\ufffd".encode(), b"\xe9\xe9\xe9")
    body = body.replace(b"samples", b"s\xe9mples")
    equal(server.ask("/api/0/profiles?service=latin&type=cpu&instance_id=i", "POST", body)[0], 200)
    message = select(selector='{service_name="latin"}', start=at // 10**6, end=at // 10**6 + 1000)
    want = "caf" + 3 * "\ufffd"
    equal(stacks(flamegraph(call("SelectMergeStacktraces", message)[1][0])), {want + ";main": 10**7})
    assert want in text(call("SelectMergeProfile", message)[6])
    assert want in call("SelectMergeStacktraces", message + field(6, 3))[3][0].decode()
    assert want in text(fields(fields(call("SelectMergeStacktraces", message + field(6, 4))[5][0])[1][0])[6])
    types = [fields(t) for t in call("ProfileTypes", window(1, start=at // 10**6, end=at // 10**6 + 1000))[1]]
    equal([text(t[4]) for t in types], [["cpu"], ["s\ufffdmples"]])
    assert "s\ufffdmples" in text(call("LabelValues", field(1, b"__type__") + field(2, b'{service_name="latin"}'))[1])
    # A profile by itself comes back as it was.
    status, got = server.get("/api/0/profiles", service="latin", type="cpu", **{"from": "2023-11-14T20:00:00", "to": "2023-11-14T22:00:00"})
    assert b"caf\xe9" in gzip.decompress(server.ask("/api/0/profiles/" + got["body"][0]["id"])[2])


server = Server("--access-log=false")
fill()
for test in [f for name, f in list(globals().items()) if name.startswith("test_")]:
    check((test.__doc__ or test.__name__[5:].replace("_", " ")).split("\n")[0], test)
check("the server ends as it should", lambda: equal(server.stop(), 0))
done()
