"""GET /api/1/live: events as profiles come and what they draw, how often, how many streams, and their end.

Prints TAP. Needs KILN in the environment.
"""
import json
import socket
import time
import urllib.parse

import jsonschema

from serve_lib import CPU, HEAP, TMP, Server, check, done, equal, profile


class Stream:
    """A connection that reads events, and applies them."""

    def __init__(self, server, query, method="GET", headers="", buffer=0):
        self.socket = socket.socket()
        if buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        self.socket.settimeout(30)
        self.socket.connect(("127.0.0.1", server.port))
        self.socket.sendall(("%s /api/1/live?%s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n%s\r\n" % (method, query, server.port, headers)).encode())
        self.raw, self.text, self.is_over = b"", "", False
        self.boxes, self.functions = {}, {}
        while b"\r\n\r\n" not in self.raw:
            self.raw += self.socket.recv(4096)
        head, self.raw = self.raw.split(b"\r\n\r\n", 1)
        self.head = head.decode()
        self.unpack()

    def unpack(self):
        """Chunks that are whole are text."""
        while b"\r\n" in self.raw and not self.is_over:
            size, rest = self.raw.split(b"\r\n", 1)
            n = int(size, 16)
            if len(rest) < n + 2:
                return
            self.text += rest[:n].decode()
            self.raw = rest[n + 2:]
            self.is_over = n == 0

    def read(self):
        got = self.socket.recv(1 << 16)
        if not got:
            raise EOFError(self.text)
        self.raw += got
        self.unpack()

    def event(self):
        """Its name and data."""
        while "\n\n" not in self.text:
            self.read()
        text, self.text = self.text.split("\n\n", 1)
        if text.startswith(":"):
            return self.event()
        name, data = text.split("\n", 1)
        self.size = len(data)
        return name.removeprefix("event: "), json.loads(data.removeprefix("data: "))

    def update(self):
        """The data of the next one."""
        name, data = self.event()
        equal(name, "update")
        jsonschema.validate(data, SCHEMA)
        if "reset" in data:
            self.apply(data)
        return data

    def apply(self, data):
        if data["reset"]:
            self.boxes, self.functions = {0: (None, None, 0, 0)}, {}
        self.functions.update((f[0], f[1]) for f in data["functions"])
        for id in data["gone"]:
            del self.boxes[id]
        for id, parent, function, first, second in data["new"]:
            assert id not in self.boxes and parent in self.boxes, data
            self.boxes[id] = (parent, self.functions[function], first, second)
        for id, first, second in data["changed"]:
            self.boxes[id] = (*self.boxes[id][:2], first, second)

    def stacks(self):
        """{"main;copy": value} of what was drawn."""
        def path(id):
            parent, name = self.boxes[id][:2]
            return (path(parent) + ";" if parent else "") + name

        return {path(id): box[2] for id, box in self.boxes.items() if id and box[2]}

    def is_silent(self, seconds):
        self.socket.settimeout(seconds)
        try:
            while not self.text.strip():
                self.read()
            return False
        except TimeoutError:
            return True
        finally:
            self.socket.settimeout(30)

    def close(self):
        self.socket.close()


def push(server, service="web", ago=1, stacks=None, types=CPU, type="cpu"):
    stacks = stacks or {"copy;main": (1, 10**7)}
    got = server.push(profile(stacks, types, time=time.time_ns() - ago * 10**9, duration=10**9), service=service, type=type)
    assert isinstance(got, dict), got


def folded(server, event, **params):
    """The same by another request."""
    status, _, body = server.ask("/api/1/merge?" + urllib.parse.urlencode({"format": "folded", "from": event["from"], "to": event["to"], **params}))
    equal(status, 200)
    return {stack: int(value) for stack, value in (line.rsplit(" ", 1) for line in body.decode().splitlines())}


def metric(server, name):
    text = server.ask("/metrics")[2].decode()
    return next(float(line.split()[-1]) for line in text.splitlines() if line.startswith(name))


def soon(is_so):
    for _ in range(200):
        if is_so():
            return
        time.sleep(0.05)
    raise AssertionError("it does not become so")


def tells_what_is_new():
    stream = Stream(server, "service=web&type=cpu&window=5m")
    assert stream.head.startswith("HTTP/1.1 200"), stream.head
    assert "Content-Type: text/event-stream" in stream.head and "X-Accel-Buffering: no" in stream.head, stream.head
    first = stream.update()
    equal((first["seconds"], first["newest"]), (300, None))
    assert stream.is_silent(1.5), stream.text
    push(server, "another")
    assert stream.is_silent(1.5), stream.text
    push(server)
    begin = time.monotonic()
    event = stream.update()
    assert event["from"] < event["newest"] < event["to"], event
    assert time.monotonic() - begin < 5
    equal(stream.stacks(), {"main;copy": 10**7})
    equal(server.get("/api/1/profiles", service="web", **{"from": event["from"], "to": event["to"]})[1]["profiles"][0]["created"], event["newest"])
    stream.close()


def tells_what_comes_late():
    """Which is older than what it has told of."""
    for window in ("window=5m", "since=%d" % (time.time() - 60)):
        service = "late-" + window.partition("=")[0]
        push(server, service)
        stream = Stream(server, "service=%s&type=cpu&%s" % (service, window))
        newest = stream.update()["newest"]
        push(server, service, ago=9, stacks={"late;main": (1, 10**7)})
        stream.socket.settimeout(5)
        equal(stream.update()["newest"], newest)
        equal(stream.stacks(), {"main;copy": 10**7, "main;late": 10**7})
        stream.close()


def is_told_twice_a_second():
    stream = Stream(server, "service=often&window=10s")
    stream.update()
    begin, n = time.monotonic(), 0
    while time.monotonic() - begin < 3:
        push(server, "often")
    stream.socket.settimeout(0.7)
    try:
        while stream.update():
            n += 1
    except TimeoutError:
        pass
    assert 1 <= n <= 8, n
    stream.close()


def sends_what_changes():
    stream = Stream(server, "service=delta&type=cpu&window=5m")
    equal("reset" in stream.update(), False)
    push(server, "delta", stacks={"copy;main": (1, 10**7), "parse;main": (2, 2 * 10**7), "sort;run;main": (1, 10**7)})
    event = stream.update()
    equal((event["reset"], event["type"], event["unit"], event["total"], event["cut"]), (True, "cpu", "nanoseconds", 4 * 10**7, 0))
    equal((len(event["new"]), event["gone"], {f[1] for f in event["functions"]}), (5, [], {"main", "copy", "parse", "run", "sort"}))
    equal(stream.stacks(), folded(server, event, service="delta"))
    push(server, "delta", stacks={"copy;main": (1, 10**7), "free;main": (1, 10**7)})
    event = stream.update()
    equal((event["reset"], event["total"], len(event["new"]), len(event["changed"]), event["gone"]), (False, 6 * 10**7, 1, 1, []))
    equal([f[1] for f in event["functions"]], ["free"])
    equal(stream.stacks(), folded(server, event, service="delta"))
    stream.close()


def subtracts_what_has_left():
    push(server, "moves", ago=1, stacks={"old;main": (1, 10**7), "both;main": (1, 10**7)})
    stream = Stream(server, "service=moves&type=cpu&window=10s")
    stream.update()
    push(server, "moves", ago=-3, stacks={"both;main": (1, 10**7), "new;main": (1, 10**7)})
    seen = []
    while len(seen) < 3:
        event = stream.update()
        stacks = stream.stacks()
        equal(stacks, folded(server, event, service="moves"))
        if stacks not in seen:
            seen.append(stacks)
    equal(seen[1], {"main;old": 10**7, "main;both": 2 * 10**7, "main;new": 10**7})
    equal(seen[2], {"main;both": 10**7, "main;new": 10**7})
    stream.close()


def has_tables_and_other_values():
    push(server, "heap", stacks={"a;main": (1, 100, 3, 30), "b;a;main": (2, 200, 5, 70)}, types=HEAP, type="heap")
    for query, want in (("", {"main": (0, 100), "a": (30, 100), "b": (70, 70)}), ("&sample_type=alloc_space", {"main": (0, 300), "a": (100, 300), "b": (200, 200)})):
        stream = Stream(server, "service=heap&type=heap&view=top&window=5m" + query)
        event = stream.update()
        equal((event["total"], event["unit"]), (want["main"][1], "bytes"))
        equal({box[1]: box[2:] for id, box in stream.boxes.items() if id}, want)
        stream.close()
    # Memory in use is a mean, so that nothing is added.
    stream = Stream(server, "service=heap&type=heap&window=5m")
    stream.update()
    push(server, "heap", ago=0, stacks={"a;main": (1, 100, 1, 10), "c;main": (1, 100, 4, 40)}, types=HEAP, type="heap")
    event = stream.update()
    equal(stream.stacks(), folded(server, event, service="heap"))
    equal((event["total"], stream.stacks()["main;a"]), (75, 20))
    stream.close()


def tells_what_is_wrong():
    stream = Stream(server, "service=heap&type=heap&window=5m&sample_type=nonsense")
    name, data = stream.event()
    equal(name, "problem")
    assert "nonsense" in data["error"], data
    stream.close()


def is_bounded():
    """Many boxes with long names, and all of them others each time."""
    stream = Stream(server, "service=wide&type=cpu&window=5m")
    stream.update()
    for turn in range(3):
        push(server, "wide", stacks={"%s%d_%d;main" % ("n" * 400, turn, i): (1, 10**7) for i in range(2000)})
        event = stream.update()
        assert stream.size < 260 << 10, stream.size
        assert len(stream.boxes) <= 3001, len(stream.boxes)
        equal(event["total"], (turn + 1) * 2000 * 10**7)
        equal(sum(box[2] + box[3] for box in stream.boxes.values()), event["total"])
    assert event["cut"] > 1000, event["cut"]
    stream.close()


def waits_for_who_is_slow():
    """One that does not read gets the last of it, not all; and what it has is right."""
    stream = Stream(server, "service=slow&type=cpu&window=5m", buffer=4096)
    before = metric(server, "kiln_live_events_total")
    # Half of each picture are new names, so that an event is some 100 kB.
    for turn in range(12):
        push(server, "slow", stacks={"%s%d;main" % ("n" * 200, (turn * 250 + i) % 1000): (1, 10**7) for i in range(500)})
        time.sleep(0.6)
    assert metric(server, "kiln_live_events_total") - before < 8, "events are kept for who does not read"
    push(server, "slow", ago=0, stacks={"copy;main": (1, 10**9)})
    event = stream.update()
    while event.get("total") != 12 * 500 * 10**7 + 10**9:
        event = stream.update()
    assert stream.stacks() == folded(server, event, service="slow"), "it is not the same"
    stream.close()


def asks_who_it_is():
    with open(TMP + "/tokens", "w") as f:
        f.write("read reader-of-profiles r\nwrite writer-of-profiles w\n")
    closed = Server("--tokens", TMP + "/tokens")
    for token, want in ((None, 401), ("writer-of-profiles", 403), ("reader-of-profiles", 200)):
        stream = Stream(closed, "window=1m", headers="Authorization: Bearer %s\r\n" % token if token else "")
        equal(stream.head.split()[1], str(want))
        stream.close()
    closed.stop()


def slides_and_gets_empty():
    push(server, "leaves", ago=6)
    stream = Stream(server, "service=leaves&window=10s")
    event = stream.update()
    assert event["newest"], event
    begin = time.monotonic()
    while event["newest"]:
        event = stream.update()
    assert 2 < time.monotonic() - begin < 20
    stream.close()


def counts_from_a_time():
    begin = time.time()
    stream = Stream(server, "service=young&since=%.3f" % begin)
    equal(stream.update()["newest"], None)
    push(server, "young", ago=60)
    assert stream.is_silent(1.5), stream.text
    push(server, "young", ago=0)
    event = stream.update()
    assert event["newest"] and event["seconds"] > 0, event
    push(server, "young", ago=-4)
    assert stream.is_silent(1.5), stream.text  # its time has yet to come
    assert stream.update()["newest"] > event["newest"]
    stream.close()


def refuses_what_is_wrong():
    for query in ("window=0s", "window=2d", "window=x", "since=x", "query=%7B", "nothing=1"):
        status, body = server.get("/api/1/live?" + query)
        equal((query, status), (query, 400))
        assert body["error"], body
    soon(lambda: metric(server, "kiln_live_streams") == 0)
    head = Stream(server, "window=1m", method="HEAD")
    assert head.head.startswith("HTTP/1.1 200"), head.head
    head.close()
    soon(lambda: metric(server, "kiln_live_streams") == 0)


def has_a_limit():
    small = Server("--max-live", "3")
    streams = [Stream(small, "window=1m") for _ in range(3)]
    for stream in streams:
        stream.update()
    status, body = small.get("/api/1/live")
    equal(status, 503)
    assert "--max-live" in body["error"], body
    equal(metric(small, "kiln_live_streams"), 3)
    equal(metric(small, 'kiln_refusals_total{limit="max-live"}'), 1)
    streams[1].close()
    soon(lambda: metric(small, "kiln_live_streams") == 2)
    streams[1] = Stream(small, "window=1m")
    streams[1].update()
    assert metric(small, "kiln_live_events_total") >= 4
    small.stop()


def needs_no_threads():
    """More of them than there are threads for requests."""
    many = Server("--max-live", "100")
    streams = [Stream(many, "service=web&window=5m") for _ in range(100)]
    for stream in streams:
        stream.update()
    push(many)
    for stream in streams:
        assert stream.update()["newest"]
    for stream in streams[:50]:
        stream.close()
    equal(many.get("/api/1/services")[0], 200)
    soon(lambda: metric(many, "kiln_live_streams") == 50)
    many.stop()


def ends_with_the_server():
    short = Server("--exit-timeout", "30s")
    stream = Stream(short, "window=1m")
    stream.update()
    begin = time.monotonic()
    short.stop()
    assert time.monotonic() - begin < 10, time.monotonic() - begin
    while not stream.is_over:
        stream.read()
    stream.close()


server = Server()
document = server.get("/api/1/openapi.json")[1]
SCHEMA = {**document["components"]["schemas"]["LiveUpdate"], "components": document["components"]}
check("events tell what is new of the selection", tells_what_is_new)
check("of what comes late, too", tells_what_comes_late)
check("events have what changes of the flame graph", sends_what_changes)
check("what has left the window is subtracted", subtracts_what_has_left)
check("tables, other values, and means", has_tables_and_other_values)
check("what cannot be drawn is told", tells_what_is_wrong)
check("an event is not too large, whatever there is", is_bounded)
check("who reads slowly is told less often", waits_for_who_is_slow)
check("streams are for who may read", asks_who_it_is)
check("not more than twice a second", is_told_twice_a_second)
check("a window moves on until there is nothing in it", slides_and_gets_empty)
check("all since a time", counts_from_a_time)
check("what is wrong is refused, and takes no place", refuses_what_is_wrong)
check("there is a limit, which is counted", has_a_limit)
check("streams take no threads", needs_no_threads)
check("they end with the server", ends_with_the_server)
done()
