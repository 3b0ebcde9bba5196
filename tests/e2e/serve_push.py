import base64
import gzip
import json
import os
import re
import struct
import subprocess
import time
import urllib.parse

from serve_lib import CPU, HEAP, IS_SLOW, TMP, Server, check, done, equal, field, names, profile, raw, values, varint

HERE = os.path.dirname(os.path.abspath(__file__))
CLIENT = TMP + "/push"
SECOND = 1000000000
NOW = int(time.time())
T = NOW * SECOND
ALL = {"from": "2000-01-01T00:00:00", "to": "2100-01-01T00:00:00"}
server = Server()


def build():
    # Its runtime has no functions for what is new in the language.
    subprocess.run(["go", "build", "-o", CLIENT, HERE + "/serve_push.go"], check=True,
                   env={**os.environ, "GO111MODULE": "off", "GOFLAGS": ""})


def go(command, body, at=None, **options):
    """Status and text."""
    path = "%s/body%d" % (TMP, next(names))
    with open(path, "wb") as f:
        f.write(body)
    args = [CLIENT, command, "-addr", (at or server).url, "-file", path] + ["-%s=%s" % o for o in options.items()]
    out = subprocess.run(args, check=True, capture_output=True, text=True).stdout
    status, _, text = out.partition("\n")
    return int(status), text.strip()


def found(service, at=None, **params):
    """Metadata of a service's profiles."""
    status, answer = (at or server).get("/api/0/profiles", **{**ALL, "service": service, **params})
    return answer["body"] if status == 200 else []


def only(service, **params):
    metas = found(service, **params)
    equal(len(metas), 1)
    return metas[0]


def labels(meta):
    return {l["key"]: l["value"] for l in meta.get("labels", [])}


def stored(meta):
    return server.ask("/api/0/profiles/" + meta["id"])[2]


def error(answer):
    """Status, code and message of Connect's."""
    status, headers, body = answer
    equal(headers["content-type"], "application/json")
    e = json.loads(body)
    return status, e["code"], e["message"]


def header(text, name):
    """A line of -raw: 'Period: 10000000'."""
    return [line.split(": ", 1)[1] for line in text.splitlines() if line.startswith(name + ":")]


# ---- Pyroscope's SDKs

GO_CPU = {"work;main": (3, 30000000), "rest;main": (1, 10000000)}


def ingest(body=b"", method="POST", path="/ingest", headers=None, at=None, **params):
    return (at or server).ask(path + "?" + urllib.parse.urlencode(params), method, body, headers or {})


def sdk_cpu():
    body = profile(GO_CPU, time=T, duration=15 * SECOND, period=("cpu", "nanoseconds", 10000000))
    equal(go("pyroscope", body, name="shop.web{region=eu,__session_id__=abc123,pod=web-1}",
             config='{"samples":{"units":"samples","display-name":"cpu","sampled":true}}'), (200, ""))
    meta = only("shop.web")
    equal((meta["type"], labels(meta)), ("cpu", {"region": "eu", "pod": "web-1"}))
    equal(raw(stored(meta)), raw(body))


def sdk_memory():
    stacks = {"new;main": (10, 1000, 5, 500)}
    body = profile(stacks, types=HEAP, time=T)
    equal(go("pyroscope", body, name="sdk.memory", config=json.dumps({
        "alloc_objects": {"units": "objects"}, "inuse_space": {"units": "bytes", "aggregation": "average"}})), (200, ""))
    meta = only("sdk.memory")
    equal(meta["type"], "heap")
    equal(values(stored(meta), 4), stacks)
    # What an SDK pushes is of the last seconds, not since the start: a duration says so.
    assert header(raw(stored(meta)), "Duration") == ["15s"], raw(stored(meta))


def sdk_names_types():
    for types, config, want in (
            ((("contentions", "count"), ("delay", "nanoseconds")), {"contentions": "mutex_count", "delay": "mutex_duration"}, "mutex"),
            ((("contentions", "count"), ("delay", "nanoseconds")), {"contentions": "block_count", "delay": "block_duration"}, "block"),
            ((("goroutine", "count"), ("x", "count")), {"goroutine": "goroutines"}, "goroutine"),
            ((("wall", "nanoseconds"), ("cpu", "nanoseconds")), {}, "wall"),
            ((("exceptions", "count"), ("y", "count")), {}, "exceptions")):
        body = profile({"f;main": (1, 2)}, types=types, time=T)
        equal(go("pyroscope", body, name="typed." + want,
                 config=json.dumps({k: {"display-name": v} for k, v in config.items()})), (200, ""))
        equal(only("typed." + want)["type"], want)


def time_forms():
    for i, (text, want) in enumerate((
            ("1700000000", 1700000000), ("1700000000123", 1700000000), ("1700000000123456", 1700000000),
            ("1700000000123456789", 1700000000), ("20231114", 1699920000), ("2023-11-14T22:13:20Z", 1700000000))):
        equal(ingest(b"main;f 1\n", name="when%d" % i, **{"from": text, "until": "now"})[0], 200)
        got = only("when%d" % i)["created_at"]
        equal(got, time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(want)))
    equal(ingest(b"main;f 1\n", name="ago", **{"from": "now-3h", "until": "now"})[0], 200)
    created = time.mktime(time.strptime(only("ago")["created_at"], "%Y-%m-%dT%H:%M:%SZ"))
    assert abs(created - (time.time() - 3 * 3600)) < 60, created


def near_1970():
    """Agents whose clock starts with themselves: the request says when it was."""
    body = profile(GO_CPU, time=5 * SECOND, duration=SECOND)
    equal(ingest(body, name="early", format="pprof", **{"from": "1700000000", "until": "1700000015"})[0], 200)
    equal(only("early")["created_at"], "2023-11-14T22:13:20Z")


def folded():
    status, headers, body = ingest(b"main;work;deep 3\nmain;rest 1\n", name="text.cpu{k=v}", sampleRate="50", units="samples",
                                   spyName="x", aggregationType="sum", **{"from": "1700000000", "until": "1700000010"})
    equal((status, body), (200, b""))
    meta = only("text")
    equal((meta["type"], labels(meta)), ("cpu", {"k": "v"}))
    text = raw(stored(meta))
    equal(values(stored(meta)), {"deep;work;main": (3, 60000000), "rest;main": (1, 20000000)})
    equal((header(text, "Period"), header(text, "Duration"), header(text, "PeriodType")), (["20000000"], ["10s"], ["cpu nanoseconds"]))
    for fmt in "folded", "groups":
        equal(ingest(b"main;f 1\n", path="/pyroscope/ingest", name="fmt." + fmt, format=fmt)[0], 200)
        equal(only("fmt." + fmt)["type"], "cpu")


def lines():
    equal(ingest(b"main;work\nmain;work\n\nmain;rest 7\n", name="lines.wall", format="lines")[0], 200)
    meta = only("lines")
    equal(meta["type"], "wall")
    # A number at the end of a line is part of the frame's name.
    equal(values(stored(meta), 1), {"work;main": (10000000 * 2,), "rest 7;main": (10000000,)})


def folded_types():
    for suffix, unit, want in (("inuse_space", "bytes", "inuse_space"), ("alloc_objects", "objects", "alloc_objects"),
                               ("goroutines", "goroutines", "goroutine"), ("mutex_duration", "lock_nanoseconds", "mutex_duration")):
        equal(ingest(b"main;f 12\n", name="single.%s" % suffix, units=unit)[0], 200)
        meta = only("single", type=want)
        equal(values(stored(meta), 1), {"f;main": (12,)})


def raw_bodies():
    plain = profile(GO_CPU, time=T, duration=SECOND, pack=False)
    for i, (body, headers) in enumerate(((plain, {}), (gzip.compress(plain), {}),
                                         (gzip.compress(gzip.compress(plain)), {"Content-Encoding": "gzip"}))):
        for fmt in ({"format": "pprof"}, {}):
            name = "raw%d%s" % (i, fmt.get("format", ""))
            equal(ingest(body, name=name, headers=headers, **fmt)[0], 200)
            equal(values(stored(only(name))), GO_CPU)


def service_name():
    equal(ingest(b"main;f 1\n", name="app.cpu{service_name=real, k = v ,}")[0], 200)
    meta = only("real")
    equal(labels(meta), {"app_name": "app.cpu", "k": "v"})


def empty_profile():
    """An idle program has no samples. Only 200 makes an SDK go on."""
    equal(go("pyroscope", profile({}, time=T), name="idle"), (200, ""))
    equal(found("idle"), [])


def bad_names():
    for name, why in (("", "it is empty"), ("{k=v}", "it is empty"), ("app{k=v", "do not end in a '}'"), ("app{k}", "is no label")):
        status, code, message = error(ingest(b"main;f 1\n", name=name))
        equal((status, code), (400, "invalid_argument"))
        assert why in message and "name" in message, message
    for key, value in (("from", "yesterday"), ("until", "12x"), ("sampleRate", "0"), ("sampleRate", "-3"), ("from", "99999999999999999")):
        status, code, message = error(ingest(b"main;f 1\n", name="app", **{key: value}))
        equal((status, code), (400, "invalid_argument"))
        assert '"%s"' % key in message and value in message, message


def multipart(*parts, end=True):
    out = b""
    for name, body in parts:
        out += b'--XX\r\nContent-Disposition: form-data; name="%s"; filename="x"\r\n\r\n%s\r\n' % (name, body)
    return out + b"--XX--\r\n" * end, {"Content-Type": 'multipart/form-data; boundary="XX"'}


def not_accepted():
    pprof = profile(GO_CPU, time=T)
    form = {"Content-Type": "multipart/form-data; boundary=XX"}
    for body, headers, params, why in (
            (*multipart((b"profile", pprof), (b"prev_profile", pprof)), {}, "prev_profile"),
            (*multipart((b"jfr", b"FLR\0")), {}, "jfr"),
            (*multipart((b"other", b"x")), {}, 'called "profile"'),
            (*multipart((b"profile", pprof), end=False), {}, "does not end in the boundary"),
            (*multipart((b"profile", b"\1\2\3")), {}, "malformed profile"),
            (*multipart((b"profile", pprof[:-20])), {}, "malformed profile"),
            (*multipart((b"profile", pprof), (b"sample_type_config", b"{]")), {}, "sample_type_config"),
            (*multipart(*[(b"a", b"b")] * 9), {}, "more than 8 parts"),
            (b"--XX\r\nContent-Disposition: form-data; name=profile\r\n", form, {}, "headers do not end"),
            (b"nothing", form, {}, "no boundary"),
            (b"nothing", {"Content-Type": "multipart/form-data"}, {}, "no boundary"),
            (b"x", {}, {"format": "jfr"}, "not read"), (b"x", {}, {"format": "trie"}, "not read"),
            (b"x", {"Content-Type": "binary/octet-stream+tree"}, {}, "not read"),
            (b"x", {}, {"format": "new"}, "unknown format"), (b"", {}, {}, "empty"),
            (b"no counts here\n", {}, {}, "unrecognized"), (pprof[:50], {}, {"format": "pprof"}, "unexpected EOF")):
        status, code, message = error(ingest(body, headers=headers, name="bad", **params))
        equal((status, code, message if why not in message else why), (422, "invalid_argument", why))
    equal(error(ingest(b"x", headers={"Content-Encoding": "br"}, name="bad"))[0], 415)
    equal(found("bad"), [])
    equal(ingest(b"", method="GET", name="bad")[0], 405)


# ---- Alloy

def label_pairs(pairs):
    return b"".join(field(1, field(1, k.encode()) + field(2, v.encode())) for k, v in pairs.items())


def series(pairs, *bodies):
    return field(1, label_pairs(pairs) + b"".join(field(2, field(1, b) + field(2, b"some-id")) for b in bodies))


def push(message, kind="application/proto", at=None, **headers):
    headers = {"Content-Type": kind, "Connect-Protocol-Version": "1", **{k.replace("_", "-"): v for k, v in headers.items()}}
    return (at or server).ask("/push.v1.PusherService/Push", "POST", message, headers)


def alloy_cpu():
    body = profile(GO_CPU, time=T, duration=15 * SECOND, period=("cpu", "nanoseconds", 10000000))
    equal(go("alloy", body, labels="__name__=process_cpu,service_name=al/loy,namespace=prod,__delta__=false,__session_id__=x"), (200, ""))
    meta = only("al/loy")
    equal((meta["type"], labels(meta)), ("cpu", {"namespace": "prod"}))
    equal(raw(stored(meta)), raw(body))


def alloy_types():
    heap = profile({"f;main": (1, 2, 3, 4)}, types=HEAP, time=T)
    for name, delta, kind, duration in (("memory", {}, "heap", []), ("memory", {"__delta__": "false"}, "heap", ["15s"]),
                                        ("godeltaprof_memory", {}, "heap", ["15s"]), ("gpu", {}, "gpu", [])):
        service = "named-%s%d" % (name, len(delta))
        status, headers, body = push(series({"__name__": name, "service_name": service, **delta}, heap))
        equal((status, headers["content-type"], body), (200, "application/proto", b""))
        meta = only(service)
        equal((meta["type"], header(raw(stored(meta)), "Duration")), (kind, duration))


def push_json():
    body = profile(GO_CPU, time=T, duration=SECOND)
    message = {"series": [{"labels": [{"name": "__name__", "value": "process_cpu"}, {"name": "service_name", "value": "json"}],
                           "unknown": [{"deep": [1, None]}], "samples": [{"rawProfile": base64.b64encode(body).decode(), "ID": "u"}]}]}
    for i, text in enumerate((json.dumps(message), json.dumps(message).replace("rawProfile", "raw_profile"))):
        status, headers, answer = push(text.encode(), "application/json; charset=utf-8")
        equal((status, headers["content-type"], answer), (200, "application/json", b"{}"))
        metas = found("json")
        equal(len(metas), i + 1)
        equal(raw(stored(metas[i])), raw(body))


def push_many():
    """What is wrong with a profile keeps only that one out."""
    def body(n):
        return profile({"f;main": (n, n)}, time=T + n * SECOND, duration=SECOND)

    good = series({"__name__": "process_cpu", "service_name": "many-a"}, body(1), body(2)) + \
        series({"__name__": "memory", "service_name": "many-b"}, body(3))
    equal(push(good)[0], 200)
    equal([m["type"] for m in found("many-a") + found("many-b")], ["cpu", "cpu", "heap"])
    bad = series({"service_name": "kept-d"}, body(1)) + good.replace(b"many-", b"kept-") + \
        series({"__name__": "process_cpu", "service_name": "kept-c"}, body(1), b"\1\2", body(2)) + series({"a": "b" * 2000}, body(1))
    status, code, message = error(push(bad))
    equal((status, code), (400, "invalid_argument"))
    assert message.startswith("series 0: there is no label __name__"), message
    equal([len(found("kept-" + x)) for x in "abcd"], [2, 1, 2, 0])
    status, code, message = error(push(bad[len(series({"service_name": "kept-d"}, body(1))):]))
    assert (status, code) == (400, "invalid_argument") and message.startswith("series 2, sample 1: malformed profile"), message
    equal(len(found("kept-c")), 4)


def push_nameless():
    """As Pyroscope has it."""
    body = profile(GO_CPU, time=T, duration=SECOND)
    equal(push(series({"__name__": "process_cpu", "k": "v"}, body) + series({"__name__": "process_cpu", "app_name": "app"}, body))[0], 200)
    equal([labels(only(s)) for s in ("unspecified", "app")], [{"k": "v"}, {"app_name": "app"}])


def push_errors():
    ok = profile(GO_CPU, time=T)
    for message, kind, want in (
            (series({"service_name": "x"}, ok), "application/proto", "series 0: there is no label __name__"),
            (b"\xff\xff\xff", "application/proto", "no PushRequest"),
            (b'{"series":[{"samples":[{"rawProfile":"*"}]}]}', "application/json", "raw_profile: no base64 at byte"),
            (b'{"series":7}', "application/json", "an object is missing"), (b"", "application/json", "PushRequest")):
        status, code, text = error(push(message, kind))
        equal((status, code, text if want not in text else want), (400, "invalid_argument", want))
    equal(push(b"")[0], 200)  # a request without series
    for want, kind, headers in ((415, "application/grpc", {}), (415, "text/plain", {}), (415, "application/json; charset=latin1", {}),
                                (400, "application/proto", {"Connect_Protocol_Version": "2"}),
                                (400, "application/proto", {"Connect_Timeout_Ms": "12345678901"}),
                                (415, "application/proto", {"Content_Encoding": "zstd"}),
                                (400, "application/proto", {"Content_Encoding": "gzip"})):
        body = gzip.compress(series({"__name__": "cpu", "service_name": "x"}, ok))[:-9] if want == 400 else b"x"
        equal(error(push(body, kind, **headers))[:2], (want, "invalid_argument"))


# ---- OpenTelemetry

def fixed(number, *times):
    return field(number, b"".join(struct.pack("<Q", t) for t in times))


def packed(number, *all_values):
    return field(number, b"".join(varint(v) for v in all_values)) if all_values else b""


class Otlp:
    """A request in the making, as protobuf of either version and as JSON."""

    def __init__(self, old=False):
        self.old = old
        self.tables = {k: [b""] for k in ("mapping", "location", "function", "link", "string", "attribute", "stack")}
        self.json = {k: [{}] for k in self.tables}
        self.json["string"] = [""]
        self.known = {}
        self.resources, self.json_resources = [], []

    def row(self, table, message, as_json):
        key = (table, message)
        if key not in self.known:
            self.known[key] = len(self.tables[table])
            self.tables[table].append(message)
            self.json[table].append(as_json)
        return self.known[key]

    def text(self, s):
        return self.row("string", s.encode(), s) if s else 0

    def attribute(self, key, value, unit=""):
        any_value, as_json = (field(3, value), {"intValue": str(value)}) if isinstance(value, int) else (field(1, value.encode()), {"stringValue": value})
        k, u = self.text(key), self.text(unit)
        return self.row("attribute", field(1, k) + field(2, any_value) + (field(3, u) if u else b""),
                        {"keyStrindex": k, "value": as_json, "unitStrindex": u})

    def stack(self, frames, build_id="abc123"):
        places = []
        for name in frames.split(";"):
            b = self.attribute("process.executable.build_id.gnu", build_id)
            f = self.text("/bin/" + name)
            m = self.row("mapping", field(1, 0x1000) + field(2, 0x9000) + field(4, f) + packed(5, b),
                         {"memoryStart": "4096", "memoryLimit": "36864", "filenameStrindex": f, "attributeIndices": [b]})
            n, file = self.text(name), self.text("/src/%s.c" % name)
            fn = self.row("function", field(1, n) + field(3, file) + field(4, 7),
                          {"nameStrindex": n, "filenameStrindex": file, "startLine": "7"})
            places.append(self.row("location", field(1, m) + field(2, 0x2000 + len(name)) + field(3, field(1, fn) + field(2, 11)),
                                   {"mappingIndex": m, "address": 0x2000 + len(name), "lines": [{"functionIndex": fn, "line": "11"}]}))
        return self.row("stack", packed(1, *places), {"locationIndices": places})

    def link(self, trace, span):
        return self.row("link", field(1, bytes.fromhex(trace)) + field(2, bytes.fromhex(span)), {"traceId": trace, "spanId": span})

    def sample(self, frames, all_values=(), attributes=(), link=0, times=()):
        s = self.stack(frames)
        out = field(1, s) if s else b""
        if self.old:
            out += packed(2, *all_values) + packed(3, *attributes) + (field(4, link) if link else b"")
        else:
            out += packed(2, *attributes) + (field(3, link) if link else b"") + packed(4, *all_values)
        return out + (fixed(5, *times) if times else b""), {
            "stackIndex": s, "values": [str(v) for v in all_values], "attributeIndices": list(attributes), "linkIndex": link,
            "timestampsUnixNano": [str(t) for t in times]}

    def profile(self, kind, samples, period=None, attributes=(), start=T, duration=5 * SECOND):
        """`kind` and `period` are (type, unit); period has a value too."""
        k = [self.text(t) for t in kind]
        out = field(1, field(1, k[0]) + field(2, k[1])) + b"".join(field(2, s) for s, _ in samples)
        out += varint(3 << 3 | 1) + struct.pack("<Q", start) + field(4, duration)
        j = {"sampleType": {"typeStrindex": k[0], "unitStrindex": k[1]}, "samples": [s for _, s in samples],
             "timeUnixNano": str(start), "durationNano": str(duration), "attributeIndices": list(attributes)}
        if period:
            p = [self.text(t) for t in period[:2]]
            out += field(5, field(1, p[0]) + field(2, p[1])) + field(6, period[2])
            j.update(periodType={"typeStrindex": p[0], "unitStrindex": p[1]}, period=str(period[2]))
        return out + field(7, b"0123456789abcdef") + packed(11, *attributes), j

    def key_value(self, key, value, by_index):
        """As protobuf and JSON; the Collector refers to the dictionary for all texts of resources."""
        if isinstance(value, int):
            v, j = field(3, value), {"intValue": value}
        elif by_index:
            v, j = field(8, self.text(value)), {"stringValueStrindex": self.text(value)}
        else:
            v, j = field(1, value.encode()), {"stringValue": value}
        if by_index:
            return field(3, self.text(key)) + field(2, v), {"keyStrindex": self.text(key), "value": j}
        return field(1, key.encode()) + field(2, v), {"key": key, "value": j}

    def resource(self, attributes, *profiles, by_index=False):
        pairs = [self.key_value(k, v, by_index) for k, v in attributes.items()]
        self.resources.append(field(1, b"".join(field(1, p) for p, _ in pairs)) +
                              field(2, field(1, field(1, b"scope")) + b"".join(field(2, p) for p, _ in profiles)))
        self.json_resources.append({"resource": {"attributes": [j for _, j in pairs]},
                                    "scopeProfiles": [{"scope": {"name": "scope"}, "profiles": [j for _, j in profiles]}]})

    def protobuf(self):
        order = ("mapping", "location", "function", "link", "string", "attribute", "stack")
        tables = b"".join(field(i + 1, row) for i, t in enumerate(order) for row in self.tables[t])
        return b"".join(field(1, r) for r in self.resources) + field(2, tables)

    def as_json(self):
        return json.dumps({"resourceProfiles": self.json_resources,
                           "dictionary": {t + "Table": rows for t, rows in self.json.items()}}).encode()


def otlp(body, kind="application/x-protobuf", at=None, **headers):
    return (at or server).ask("/v1development/profiles", "POST", body,
                              {"Content-Type": kind, **{k.replace("_", "-"): v for k, v in headers.items()}})


def ebpf(old, service, by_index=False):
    """As the eBPF profiler has it: counts of samples, 50 ms apart."""
    o = Otlp(old)
    thread = o.attribute("thread.name", "worker")
    cpu = o.attribute("cpu.logical_number", 3, "1")
    link = o.link("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331")
    o.resource({"service.name": service, "k8s.pod.name": "web-1", "process.pid": 4711, "host.arch": "amd64"},
               o.profile(("samples", "count"), [o.sample("work;main", [3], [thread, cpu], link), o.sample("rest;main", [1], [thread])],
                         period=("cpu", "nanoseconds", 50000000), attributes=[o.attribute("profile.kind", "on")]), by_index=by_index)
    return o


def otlp_versions():
    got = []
    for service, body, kind in (
            ("otel-1.9", ebpf(True, "otel-1.9").protobuf(), "application/x-protobuf"),
            ("otel-1.10", ebpf(False, "otel-1.10").protobuf(), "application/protobuf"),
            ("otel-json", ebpf(False, "otel-json").as_json(), "application/json"),
            ("otel-index", ebpf(False, "otel-index", True).protobuf(), "application/x-protobuf"),
            ("otel-json-index", ebpf(False, "otel-json-index", True).as_json(), "application/json"),
            ("otel-gzip", gzip.compress(ebpf(False, "otel-gzip").protobuf()), "application/x-protobuf")):
        status, headers, answer = otlp(body, kind, **({"Content_Encoding": "gzip"} if body[:2] == b"\x1f\x8b" else {}))
        equal((status, headers["content-type"], answer), (200, kind.replace("n/p", "n/x-p"), b"{}" if "json" in kind else b""))
        meta = only(service)
        equal((meta["type"], labels(meta)), ("cpu", {"k8s_pod_name": "web-1", "host_arch": "amd64", "profile_kind": "on"}))
        got.append(raw(stored(meta)))
    equal(got[1:], got[:1] * 5)
    for part in ("samples/count cpu/nanoseconds", "3  150000000: 1 2", "1   50000000: 3 2", "trace_id:[0af7651916cd43dd8448eb211c80319c]",
                 "span_id:[b7ad6b7169203331]", "thread.name:[worker]", "cpu.logical_number:[3", "work /src/work.c:11", "abc123",
                 "Period: 50000000"):
        assert part in got[0], (part, got[0])


def otlp_events():
    """Without values each time is an event; with both, values are of those times."""
    o = Otlp()
    mark = o.attribute("thread.name", "t")
    o.resource({"service.name": "events"},
               o.profile(("off_cpu", "nanoseconds"), [o.sample("wait;main", [5, 7], [mark], times=[T, T + 1])]),
               o.profile(("events", "count"), [o.sample("hit;main", [], [mark], times=[T, T + 1, T + 2])], period=("hits", "count", 0)))
    # What the eBPF profiler calls the time in which threads wait.
    o.resource({"service.name": "waits"}, o.profile(("events", "nanoseconds"), [o.sample("wait;main", [5, 7], times=[T, T + 1])]))
    equal(otlp(o.protobuf())[0], 200)
    meta = only("waits", type="off_cpu")
    equal((values(stored(meta), 1), "off_cpu/nanoseconds" in raw(stored(meta))), ({"wait;main": (12,)}, True))
    equal(values(stored(only("events", type="off_cpu")), 1), {"wait;main": (12,)})
    equal(values(stored(only("events", type="hits")), 1), {"hit;main": (3,)})


def view(meta, request):
    """What a page of the viewer asks for one profile."""
    status, _, body = server.ask("/ui/api/v1/%s?%s" % (request, urllib.parse.urlencode({"a": "id=" + meta["id"]})))
    equal(status, 200)
    return json.loads(body)


def otlp_times():
    """Each observation is a sample, which has its time; the viewer finds it."""
    got = []
    for service, old, is_json in ("times-1.9", True, False), ("times-1.10", False, False), ("times-json", False, True):
        o = Otlp(old)
        mark = o.attribute("thread.name", "t")
        o.resource({"service.name": service}, o.profile(("wall", "nanoseconds"), [
            o.sample("f;main", [5, 7], [mark], times=[T + 100, T + 1000000]), o.sample("g;main", [], [mark], times=[T, T + 2000000]),
            o.sample("h;main", [9, 4])]))
        equal(otlp(o.as_json(), "application/json")[0] if is_json else otlp(o.protobuf())[0], 200)
        meta = only(service)
        got.append(raw(stored(meta)))
        equal(values(stored(meta), 1), {"f;main": (12,), "g;main": (2,), "h;main": (13,)})
        about, heat = view(meta, "meta")["profiles"][0], view(meta, "heat")
        equal((about["ticks"], about["span_nanos"], sum(heat["cells"])), (4, 2000000, 14))
        equal(len(view(meta, "chart")["lanes"]), 1)
    equal(got[1:], got[:1] * 2)
    for value, at in (5, T + 100), (7, T + 1000000), (1, T), (1, T + 2000000):
        assert re.search(r" %d: \S+ 2\s+thread.name:\[t\]\s+timestamp:\[%d nanoseconds\]" % (value, at), got[0]), (value, at, got[0])


def otlp_bad_times():
    """They are as many as values, and such that a profile can have them."""
    for sample, why in ((lambda o: o.sample("f;main", [5, 7], times=[T]), "2 values and 1 timestamps, which are one for each value"),
                        (lambda o: o.sample("f;main", [5], times=[T, T]), "1 values and 2 timestamps, which are one for each value"),
                        (lambda o: o.sample("f;main", [5], times=[2**63]), "timestamp 9223372036854775808 is after the year 2262"),
                        (lambda o: (o.sample("f;main", [5])[0] + field(5, b"1234567"), {}), "Sample: no protobuf"),
                        (lambda o: (o.sample("f;main", [5])[0] + field(5, 7), {}), "Sample: no protobuf")):
        o = Otlp()
        fine = o.profile(("wall", "nanoseconds"), [o.sample("f;main", [5])])
        o.resource({"service.name": "bad-times"}, fine, o.profile(("wall", "nanoseconds"), [o.sample("f;main", [5]), sample(o)]))
        equal(otlp(o.protobuf())[::2], (200, field(1, field(1, 1) + field(2, b"sample 1: " + why.encode()))))
    equal(len(found("bad-times")), 5)


def otlp_oddities():
    """What profile.proto cannot say is left out: lines without a function, zeros without a unit, empty texts."""
    o = Otlp()
    nowhere = o.row("location", field(2, 0x77) + field(3, field(2, 5)), {"address": "119", "lines": [{"line": 5}]})
    stack = o.row("stack", packed(1, nowhere, 0), {"locationIndices": [nowhere, 0]})
    marks = [o.attribute("zero", 0), o.attribute("empty", ""), o.attribute("unit", 0, "ms"), 0]
    o.resource({"service.name": "odd"}, o.profile(("", ""), [
        (field(1, stack) + packed(2, *marks) + packed(4, 9), {"stackIndex": stack, "attributeIndices": marks, "values": [9]})]))
    for body, kind in (o.protobuf(), "application/x-protobuf"), (o.as_json(), "application/json"):
        equal(otlp(body, kind)[::2], (200, b"{}" if "json" in kind else b""))
    metas = found("odd", type="other")
    first, second = (raw(stored(m)) for m in metas)
    equal(first, second)
    assert "9: 1 \n" in first and "unit:[0 ms]" in first and "zero" not in first and "1: 0x77 M=1 \n" in first, first


def otlp_services():
    """By sample, else by resource, else the executable."""
    o = Otlp()
    a, b = (o.attribute("service.name", s) for s in ("by-sample-a", "by-sample-b"))
    mixed = [o.sample("f%d;main" % i, [i], [(a, b)[i % 2]] if i < 5 else []) for i in range(1, 7)]
    o.resource({"service.name": "by-resource"}, o.profile(("wall", "nanoseconds"), mixed))
    o.resource({"process.executable.name": "nginx"}, o.profile(("wall", "nanoseconds"), mixed[5:]))
    o.resource({}, o.profile(("mutex", "nanoseconds"), mixed[5:], attributes=[o.attribute("process.executable.name", "java")]),
               o.profile(("wall", "nanoseconds"), mixed[5:]))
    equal(otlp(o.as_json(), "application/json")[0], 200)
    equal([values(stored(only(s, type="wall")), 1) for s in ("by-sample-a", "by-sample-b", "by-resource")],
          [{"f2;main": (2,), "f4;main": (4,)}, {"f1;main": (1,), "f3;main": (3,)}, {"f5;main": (5,), "f6;main": (6,)}])
    for name in "unknown_service:nginx", "unknown_service:java", "unknown_service":
        equal(values(stored(only(name)), 1), {"f6;main": (6,)})


def otlp_partial():
    """What is wrong with one profile does not keep others out."""
    o = Otlp()
    good = o.profile(("cpu", "nanoseconds"), [o.sample("f;main", [5])])
    bad = o.profile(("cpu", "nanoseconds"), [(field(1, 77) + packed(4, 1), {"stackIndex": 77, "values": [1]})])
    many = o.profile(("cpu", "nanoseconds"), [o.sample("f;main", [5])], attributes=[o.attribute("k%d" % i, "v") for i in range(70)])
    o.resource({"service.name": "partial"}, good, bad, many)
    status, _, answer = otlp(o.as_json(), "application/json")
    said = json.loads(answer)["partialSuccess"]
    equal((status, said["rejectedProfiles"]), (200, "2"))
    assert "sample 0: it names stack 77, and the dictionary has 2" in said["errorMessage"], said
    status, _, answer = otlp(o.protobuf())
    text = said["errorMessage"].encode()
    equal((status, answer), (200, field(1, field(1, 2) + field(2, text))))
    equal(len(found("partial")), 2)
    refused = server.get("/api/1/refusals")[1]
    assert [t for t in refused["totals"] if t["limit"] == "max-labels" and t["count"] == 2], refused["totals"]
    equal([{r["reason"]: r["count"] for r in s["reasons"]} for s in refused["services"] if s["service"] == "partial"], [{"format": 2, "max-labels": 2}])


def otlp_errors():
    status, headers, body = otlp(b"\xff\xff")
    equal((status, headers["content-type"], body[:2]), (400, "application/x-protobuf", b"\x08\x03"))
    status, headers, body = otlp(b"{", "application/json")
    equal((status, headers["content-type"], json.loads(body)["code"]), (400, "application/json", 3))
    equal(otlp(b"", "text/plain")[0], 415)
    equal(otlp(b"")[0], 200)
    equal(otlp(b"{}", "application/json")[0], 200)
    mixed = Otlp()
    mixed.resource({"service.name": "mixed"}, mixed.profile(("cpu", "ns"), [
        (field(1, 0) + packed(2, 1) + packed(3, 1), {}), (field(1, 0) + packed(4, 1), {})]))
    status, _, body = otlp(mixed.protobuf())
    equal((status, b"as in v1.9 of OTLP, and 1 as in v1.10" in body), (400, True))
    # A resource that is wrong is that of its own profiles.
    o = Otlp()
    fine = o.profile(("wall", "nanoseconds"), [o.sample("f;main", [5])])
    o.resource({"service.name": "wrong-resource", "k": "v" * 2000}, fine, fine)
    o.resource({"service.name": "right-resource"}, fine)
    answer = json.loads(otlp(o.as_json(), "application/json")[2])["partialSuccess"]
    equal((answer["rejectedProfiles"], answer["errorMessage"].split(":")[0]), ("2", "max-label-bytes"))
    equal([len(found(s + "-resource")) for s in ("wrong", "right")], [0, 1])


def peak(s):
    """Memory that the server had at most, in MB."""
    with open("/proc/%d/status" % s.process.pid) as f:
        return [int(line.split()[1]) // 1024 for line in f if line.startswith("VmHWM")][0]


def cpu(s):
    """Seconds that it has worked."""
    with open("/proc/%d/stat" % s.process.pid) as f:
        return sum(int(n) for n in f.read().rsplit(")", 1)[1].split()[11:13]) / os.sysconf("SC_CLK_TCK")


def otlp_bombs():
    """Small requests that would be gigabytes, or take minutes."""
    s = Server()
    often, long = 60000, "x" * 60000

    def send(attributes=(), of_samples=(), nprofiles=1, stack="f;main", resource=None):
        o = make()
        one = [o.sample(stack, [1], of_samples)]
        o.resource(resource or {"service.name": "bomb"}, *[o.profile(("wall", "nanoseconds"), one, attributes=attributes)] * nprofiles)
        start, before = cpu(s), peak(s)
        status, _, body = otlp(gzip.compress(o.protobuf(), 1), at=s, Content_Encoding="gzip")
        took, grown = cpu(s) - start, peak(s) - before
        print("# %.1f s of CPU time, %d MB more" % (took, grown))
        equal(status, 200)
        assert IS_SLOW or (took < 10 and grown < 300), (took, grown)
        return body

    def make():
        o = Otlp()
        o.attribute("k", long)                                             # 1
        o.attribute("process.pid", long)                                   # 2
        o.attribute(long, "v")                                             # 3
        o.row("attribute", field(1, o.text("many")) + field(3, 0) * 30000 + field(2, field(1, b"v")), {})  # 4
        o.attribute("service.name", "")                                    # 5
        o.attribute(long + "a", "v")                                       # 6
        return o

    for number in 1, 3:
        assert b"max-label-bytes" in send([number] * often)
    equal(send([2] * often), b"")
    assert b"max-labels" in send([4] * often)
    for number in 1, 4, 5:
        equal(send(of_samples=[number] * often), b"")
    # Labels are sorted by their keys.
    assert b"max-unpacked" in send(of_samples=[6, 3] * (often // 2))
    # Many profiles, each of which has a long name; only so much is made of them.
    assert b"max-unpacked" in send(stack="z" * 600000 + ";main", nprofiles=9000)
    equal(s.stop(), 0)
    # Samples without a stack do not have the one before.
    o = Otlp()
    deep = o.sample(";".join("f%d" % i for i in range(2000)), [1])
    o.resource({"service.name": "shallow"}, o.profile(("wall", "nanoseconds"), [deep] + [(packed(4, 1), {})] * 50000))
    equal(otlp(o.protobuf())[::2], (200, b""))
    equal(len(found("shallow")), 1)
    # A deep stack, named very often.
    o = Otlp()
    deep = ";".join("f%d" % i for i in range(2000))
    o.resource({"service.name": "bomb"}, o.profile(("cpu", "nanoseconds"), [o.sample(deep, [1])] * 100000))
    status, _, body = otlp(gzip.compress(o.protobuf(), 1), Content_Encoding="gzip")
    equal((status, b"max-unpacked" in body, found("bomb")), (200, True, []))
    # And one that is there at many times.
    o = Otlp()
    o.resource({"service.name": "bomb"}, o.profile(("cpu", "nanoseconds"), [o.sample(deep, times=[T] * 100000)]))
    status, _, body = otlp(gzip.compress(o.protobuf(), 1), Content_Encoding="gzip")
    equal((status, b"max-unpacked" in body, found("bomb")), (200, True, []))
    # Which a shallow one may be.
    o = Otlp()
    o.resource({"service.name": "often"}, o.profile(("cpu", "nanoseconds"), [o.sample("f;main", times=range(T, T + 200000))]))
    equal(otlp(o.protobuf())[::2], (200, b""))
    equal(view(only("often"), "meta")["profiles"][0]["ticks"], 200000)


def not_utf8():
    """Grafana could not read any answer with them in it."""
    body = profile(GO_CPU, time=T, duration=SECOND)
    bad = b"caf\xe9"
    status, code, message = error(push(series({"__name__": "process_cpu", "service_name": "utf8-a"}, body).replace(b"utf8-a", bad + b"ab")))
    equal((status, code, message), (400, "invalid_argument", "series 0, sample 0: utf-8: the service is no valid UTF-8"))
    status, code, message = error(push(series({"__name__": "process_cpu", "service_name": "utf8", "k": "abcd"}, body).replace(b"abcd", bad)))
    equal(message, "series 0, sample 0: utf-8: the value of a label is no valid UTF-8")
    status, _, answer = server.ask("/api/0/profiles?service=caf%E9&type=cpu", "POST", body)
    equal((status, json.loads(answer)["error"]), (400, "utf-8: the service is no valid UTF-8"))
    status, _, answer = server.ask("/ingest?name=utf8%7Bk%FF%3Dv%7D&format=pprof", "POST", body)
    equal((status, json.loads(answer)["message"]), (422, "utf-8: the name of a label is no valid UTF-8"))
    o = Otlp()
    o.resource({"service.name": "utf8", "k": "abcd"}, o.profile(("wall", "nanoseconds"), [o.sample("f;main", [5])]))
    equal(otlp(o.protobuf().replace(b"abcd", bad))[::2],
          (200, field(1, field(1, 1) + field(2, b"utf-8: the value of a label is no valid UTF-8"))))
    equal(found("utf8"), [])
    refused = server.get("/api/1/refusals")[1]
    equal([t["count"] for t in refused["totals"] if t["limit"] == "utf-8"], [5])


# ---- older formats, wherever profiles come in

def legacy():
    words = [0, 3, 0, 10000, 0, 7, 2, 0x1000, 0x2000, 3, 1, 0x3000, 0, 1, 0]
    cpu = struct.pack("<%dQ" % len(words), *words) + b"00400000-00500000 r-xp 00000000 00:00 0 /bin/prog\n"
    heap = (b"heap profile: 3: 300 [ 5: 500] @ heap_v2/1\n 3: 300 [ 5: 500] @ 0x401000 0x402000\n\nMAPPED_LIBRARIES:\n"
            b"00400000-00500000 r-xp 00000000 00:00 0 /bin/prog\n")
    threads = b"--- threadz 1 ---\nskipped\n--- Thread 1f (name: a/b/12) stack: ---\n  PC: @ 0x11 f\n 0x21\n--- Memory map: ---\n1-40: /bin/x\n"
    locks = (b"--- contentionz 1 ---\ncycles/second = 2000000000\nsampling period = 100\nms since reset = 1500\n"
             b"  300 2 @ 0x11 0x21\n--- Memory map: ---\n")
    go_count = b"goroutine profile: total 9\n8 @ 0x11 0x21\n1 @ 0x11\n"
    folded_text = b"main;f 3\nmain;g 4\n"
    with open(os.path.join(HERE, "../fuzz/seeds/perf-fp.data"), "rb") as f:
        perf = f.read()
    script = b"prog 1234 5678.123456:     250000 cpu-clock:u: \n\t    55d0c8a4f139 hot+0x9 (/usr/bin/prog)\n\t    55d0c8a4f200 main+0x20 (/usr/bin/prog)\n\n"
    for name, kind, body in ("perf", "cpu", perf), ("script", "cpu", script), ("cpu", "cpu", cpu), ("heap", "heap", heap), ("threads", "threads", threads), ("locks", "mutex", locks), \
            ("count", "goroutine", go_count), ("folded", "cpu", folded_text):
        want = raw(body)
        assert len(want.splitlines()) > 4, want
        meta = server.push(body, service="legacy-" + name, type=kind)
        equal(raw(stored(meta)), want)
        equal(raw(stored(server.push(gzip.compress(body), service="legacy-gz", type=kind))), want)
        if name != "folded":
            equal(ingest(body, name="legacy-i-" + name, format="pprof", **{"from": "now", "until": "now"})[0], 200)
            got = raw(stored(only("legacy-i-" + name)))
            equal([l for l in got.splitlines() if not l.startswith("Time:")], want.splitlines())
            equal(push(series({"__name__": kind, "service_name": "legacy-p-" + name}, body))[0], 200)
            equal(raw(stored(only("legacy-p-" + name))), want)


# ---- the same gate for all

def gate():
    with open(TMP + "/tokens", "w") as f:
        f.write("write write-token-0123456789 writer\nread read-token-0123456789 reader\n")
    s = Server("--tokens", TMP + "/tokens", "--max-body", "100KB", "--max-unpacked", "200KB", "--max-labels", "2",
               "--max-service-series", "2", "--max-label-bytes", "40")
    ask = {"Authorization": "Bearer write-token-0123456789"}
    body = profile(GO_CPU, time=T, duration=SECOND)
    alloy_ok = series({"__name__": "process_cpu", "service_name": "s"}, body)
    equal(go("pyroscope", body, at=s, name="s", bearer="write-token-0123456789"), (200, ""))
    equal(push(alloy_ok, at=s, **ask)[0], 200)
    o = ebpf(False, "s")
    for send in (lambda h: ingest(body, name="s", format="pprof", headers=h, at=s), lambda h: push(alloy_ok, at=s, **h)):
        equal(error(send({}))[:2], (401, "unauthenticated"))
        equal(error(send({"Authorization": "Bearer read-token-0123456789"}))[:2], (403, "permission_denied"))
    equal(json.loads(otlp(o.as_json(), "application/json", at=s)[2])["code"], 16)
    equal(otlp(o.protobuf(), at=s)[2][:2], b"\x08\x10")
    large = os.urandom(110 * 1000)
    for answer in ingest(large, name="s", headers=ask, at=s), push(large, at=s, **ask):
        equal(error(answer)[:2], (413, "invalid_argument"))
        equal(answer[1]["x-kiln-limit"], "max-body")
    bomb = gzip.compress(bytes(300 * 1000))
    for answer in (ingest(bomb, name="s", headers=ask, at=s), push(bomb, at=s, Content_Encoding="gzip", **ask),
                   push(series({"__name__": "cpu", "service_name": "s"}, bomb), at=s, **ask)):
        equal((error(answer)[:2], answer[1]["x-kiln-limit"]), ((413, "invalid_argument"), "max-unpacked"))
    equal(otlp(bomb, at=s, Content_Encoding="gzip", **ask)[0], 413)
    answer = ingest(body, name="s{a=1,b=2,c=3}", format="pprof", headers=ask, at=s)
    equal((error(answer)[:2], answer[1]["x-kiln-limit"]), ((422, "invalid_argument"), "max-labels"))
    answer = ingest(body, name="s" * 50, format="pprof", headers=ask, at=s)
    equal((error(answer)[:2], answer[1]["x-kiln-limit"]), ((422, "invalid_argument"), "max-label-bytes"))
    answers = [ingest(body, name="s{a=%d}" % i, format="pprof", headers=ask, at=s) for i in range(3)]
    equal((answers[0][0], error(answers[2])[:2], answers[2][1]["x-kiln-limit"]), (200, (429, "resource_exhausted"), "max-service-series"))
    metrics = s.ask("/metrics", headers={"Authorization": "Bearer read-token-0123456789"})[2].decode()
    for line in ('kiln_pushed_profiles_total{path="/ingest"} 2', 'kiln_refusals_total{limit="max-labels"} 1',
                 'kiln_refusals_total{limit="max-unpacked"} 4', 'kiln_refusals_total{limit="max-body"} 2'):
        assert line in metrics, line
    equal(s.stop(), 0)


def rates():
    """A request with many profiles counts as many."""
    s = Server("--rate-profiles", "2")
    bodies = [profile({"f;main": (n, n)}, time=T + n * SECOND) for n in range(1, 30)]
    equal(push(series({"__name__": "process_cpu", "service_name": "s"}, *bodies), at=s)[0], 200)
    status, headers, body = push(series({"__name__": "process_cpu", "service_name": "s"}, bodies[0]), at=s)
    equal((status, json.loads(body)["code"], headers["x-kiln-limit"]), (429, "resource_exhausted", "rate-profiles"))
    assert int(headers["retry-after"]) >= 5, headers
    equal(s.stop(), 0)


def described():
    """The OpenAPI description has all of it."""
    status, api = server.get("/api/1/openapi.json")
    for path in "/ingest", "/push.v1.PusherService/Push", "/v1development/profiles":
        post = api["paths"][path]["post"]
        assert post["x-role"] == "write" and len(post["description"]) > 100, post
    names_of = [p["name"] for p in api["paths"]["/ingest"]["post"]["parameters"]]
    equal(names_of[:3], ["name", "from", "until"])


def survives():
    """What agents were told 200 for is there after a restart."""
    counts = server.get("/api/1/stats")[1]
    server.stop()
    again = Server(data=server.data)
    equal(again.get("/api/1/stats")[1]["profiles"], counts["profiles"])
    equal(again.stop(), 0)


build()
check("pyroscope-go: a CPU profile comes back as it was, session ids do not", sdk_cpu)
check("pyroscope-go: memory", sdk_memory)
check("what a profile is, is told by its sample types and the SDK's names for them", sdk_names_types)
check("times in all forms", time_forms)
check("a time near 1970 is the request's", near_1970)
check("folded stacks", folded)
check("lines", lines)
check("folded stacks of other types", folded_types)
check("profiles without a form around them", raw_bodies)
check("a label names the service", service_name)
check("profiles without samples are fine", empty_profile)
check("bad names, times and rates", bad_names)
check("what is not accepted, and why", not_accepted)
check("Alloy: a CPU profile comes back as it was", alloy_cpu)
check("Alloy: types, and values that are differences already", alloy_types)
check("Alloy: JSON", push_json)
check("Alloy: one that is wrong keeps no other out", push_many)
check("Alloy: profiles without a service", push_nameless)
check("Alloy: errors", push_errors)
check("OTLP: v1.9, v1.10, JSON, gzip", otlp_versions)
check("OTLP: events and times", otlp_events)
check("OTLP: times of observations", otlp_times)
check("OTLP: times that cannot be", otlp_bad_times)
check("OTLP: what profiles cannot say", otlp_oddities)
check("OTLP: whose samples they are", otlp_services)
check("OTLP: a part is refused", otlp_partial)
check("OTLP: errors", otlp_errors)
check("OTLP: small requests that would be large", otlp_bombs)
check("services and labels are UTF-8", not_utf8)
check("older and other formats, wherever profiles come in", legacy)
check("who may, and how much", gate)
check("how fast", rates)
check("OpenAPI", described)
check("a restart loses nothing", survives)
done()
