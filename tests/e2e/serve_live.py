"""GET /api/1/live: events as profiles come, how often, how many streams, and their end.

Prints TAP. Needs KILN in the environment.
"""
import json
import socket
import time

from serve_lib import CPU, Server, check, done, equal, profile


class Stream:
    """A connection that reads events."""

    def __init__(self, server, query, method="GET"):
        self.socket = socket.create_connection(("127.0.0.1", server.port), timeout=30)
        self.socket.sendall(("%s /api/1/live?%s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n" % (method, query, server.port)).encode())
        self.text = ""
        self.head = self.upto("\r\n\r\n")

    def upto(self, end):
        while end not in self.text:
            got = self.socket.recv(4096).decode()
            if not got:
                raise EOFError(self.text)
            self.text += got
        text, self.text = self.text.split(end, 1)
        return text

    def update(self):
        """The next one's data."""
        self.upto("event: update\ndata: ")
        return json.loads(self.upto("\n\n"))

    def is_silent(self, seconds):
        self.socket.settimeout(seconds)
        try:
            return not self.text.strip("\r\n") and not self.socket.recv(4096)
        except TimeoutError:
            return True
        finally:
            self.socket.settimeout(30)

    def close(self):
        self.socket.close()


def push(server, service="web", ago=1):
    server.push(profile({"copy;main": (1, 10**7)}, CPU, time=time.time_ns() - ago * 10**9, duration=10**9), service=service, type="cpu")


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
    equal(server.get("/api/1/profiles", service="web", **{"from": event["from"], "to": event["to"]})[1]["profiles"][0]["created"], event["newest"])
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
    assert stream.upto("0\r\n\r\n") is not None
    stream.close()


server = Server()
check("events tell what is new of the selection", tells_what_is_new)
check("not more than twice a second", is_told_twice_a_second)
check("a window moves on until there is nothing in it", slides_and_gets_empty)
check("all since a time", counts_from_a_time)
check("what is wrong is refused, and takes no place", refuses_what_is_wrong)
check("there is a limit, which is counted", has_a_limit)
check("streams take no threads", needs_no_threads)
check("they end with the server", ends_with_the_server)
done()
