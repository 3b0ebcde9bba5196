#!/usr/bin/env python3
"""API servers that answer with anything but what they should: errors are clear, and nothing grows or spins."""
import base64
import hashlib
import http.server
import json
import os
import re
import socket
import subprocess
import threading
import time

from cluster import ROOT, done, ok, until

DRIVER = os.environ.get("DRIVER", ROOT + "/build/release/tests/kube/driver")
MAX_RSS_KB = 64 << 10 if os.environ.get("BUILD", "release") == "release" else 1 << 30
NPODS = 10000
POD = json.dumps({
    "metadata": {"name": "shop-5d4f-%05d", "namespace": "shop-%02d", "uid": "0" * 36, "resourceVersion": "123456789",
                 "labels": {"app.kubernetes.io/name": "shop", "app.kubernetes.io/instance": "shop", "pod-template-hash": "5d4f"},
                 "annotations": {"kiln.dev/scrape": "true", "kubectl.kubernetes.io/restartedAt": "2026-01-01T00:00:00Z",
                                 "checksum/config": "0" * 64},
                 "managedFields": [{"manager": "kubelet", "fieldsV1": {"f:x%d" % i: {"f:y": {}} for i in range(100)}}]},
    "spec": {"nodeName": "node-7", "containers": [
        {"name": n, "image": "registry.example/shop/%s:1.2.3" % n, "ports": [{"name": "http", "containerPort": 8080}],
         "env": [{"name": "VARIABLE_%d" % i, "value": "x" * 20} for i in range(20)]} for n in ("main", "sidecar")]},
    "status": {"phase": "Running", "podIP": "10.1.%d.%d", "hostIP": "10.0.0.1", "containerStatuses": [
        {"name": "main", "ready": True}, {"name": "sidecar", "ready": True}]}})
asked = []


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        asked.append((time.monotonic(), self.path))
        getattr(self, "do_" + self.path.split("/")[1])()
        self.close_connection = True

    def answer(self, body, status=200, headers=()):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Connection", "close")
        self.end_headers()
        try:
            for part in [body] if isinstance(body, bytes) else body:
                self.wfile.write(part)
        except OSError:
            pass

    def is_watch(self):
        return "watch=true" in self.path

    def do_garbage(self):
        self.answer(b"<html>\x1b[31mhello\x00")

    def do_cut(self):
        self.answer(b'{"metadata":{"resourceVersion":"1"},"items":[{"metadata":{"name":"a"')

    def do_deep(self):
        self.answer(b'{"items":' + b"[" * 100000)

    def do_refuse(self):
        self.answer(b'{"kind":"Status","message":"no\x1b[31m\\u0007 way' + b"x" * 100000 + b'"}', 500)

    def do_endless(self):
        self.answer((b'{"metadata":{"resourceVersion":"1"},"pad":"' if i == 0 else b"x" * 65536 for i in range(1 << 20)))

    def do_pages(self):
        self.answer(b'{"metadata":{"resourceVersion":"1","continue":"again"},"items":[]}')

    def do_many(self):
        items = ",".join('{"metadata":{"name":"p%d-%d","annotations":{"a":"%s"}},"status":{"phase":"Running"}}' % (
            len(asked), i, "x" * 4000) for i in range(500))
        self.answer(('{"metadata":{"resourceVersion":"1","continue":"%d"},"items":[%s]}' % (len(asked), items)).encode())

    def do_loop(self):
        self.answer(b"", 302, [("Location", "/loop")])

    def do_watchends(self):
        self.answer(b"" if self.is_watch() else b'{"metadata":{"resourceVersion":"1"}}')

    def do_bookmark(self):
        self.answer(b'{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"77"}}}\n' if self.is_watch() and "Version=1&" in self.path
                    else b"" if self.is_watch() else b'{"metadata":{"resourceVersion":"1"}}')

    def do_cluster(self):
        """10,000 pods as they are in real clusters, 6 kB each."""
        if self.is_watch():
            time.sleep(20)
            return self.answer(b"")
        found = re.search("continue=([0-9]+)", self.path)
        start = int(found[1]) if found else 0
        limit = int(re.search("limit=([0-9]+)", self.path)[1])
        assert limit <= 500
        pods = ",".join(POD % (i, i % 50, i >> 8, i & 255) for i in range(start, min(start + limit, NPODS)))
        more = start + limit < NPODS
        self.answer(('{"metadata":{"resourceVersion":"1","continue":"%s"},"items":[%s]}' % (start + limit if more else "", pods)).encode())

    def do_watch410(self):
        self.answer(b'{"type":"ERROR","object":{"code":410}}\n' if self.is_watch() else b'{"metadata":{"resourceVersion":"1"}}')

    def do_watchgarbage(self):
        self.answer(b'{"type":"ADDED","object":7}\n' if self.is_watch() else b'{"metadata":{"resourceVersion":"1"}}')

    def do_watchline(self):
        self.answer((b"x" * 65536 for i in range(1 << 20)) if self.is_watch() else b'{"metadata":{"resourceVersion":"1"}}')

    def do_ws200(self):
        self.answer(b"hello")

    def do_wsliar(self):
        self.answer(b"", 101, [("Upgrade", "websocket"), ("Sec-WebSocket-Accept", "no")])

    def agree(self, protocol, frames):
        key = self.headers["Sec-WebSocket-Key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
        accept = base64.b64encode(hashlib.sha1(key.encode()).digest()).decode()
        self.answer(frames, 101, [("Upgrade", "websocket"), ("Sec-WebSocket-Accept", accept),
                                  ("Sec-WebSocket-Protocol", protocol)])

    def do_wsother(self):
        self.agree("chat", b"")

    def do_wshuge(self):
        self.agree("v4.channel.k8s.io", b"\x82\x7f" + b"\xff" * 8)
        time.sleep(5)

    def do_wsheaders(self):
        self.answer(b"", 101, [("X", "y" * 60000)] * 5)

    def log_message(self, *args):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()


def config(name, port=None):
    return f"server=http://127.0.0.1:{port or server.server_address[1]}/{name}"


def fails(name, want, *command):
    it = subprocess.run([DRIVER, config(name), "timeout=20000", *(command or ["list"])], capture_output=True, text=True, stdin=subprocess.DEVNULL,
                        timeout=120, errors="replace")
    plain = not re.search("[\x00-\x09\x0b-\x1f]", it.stderr)
    ok(it.returncode == 1 and want in it.stderr and plain and len(it.stderr) < 1100, f"{name}: {want}", it.stderr[:2000])


fails("garbage", "this is no list of pods: unexpected character at byte 0")
fails("cut", "this is no list of pods: ")
fails("deep", "this is no list of pods: ")
fails("refuse", "GET /api/v1/pods: 500 Internal Server Error: ")
fails("endless", "the server sends more than 16777216 bytes")
fails("pages", "its list of pods does not end")
fails("loop", "GET /api/v1/pods: 302 Found")
for name, want in [("ws200", "200 OK: hello"), ("wsliar", "it agrees to a WebSocket, but not to ours"),
                   ("wsother", 'the WebSocket\'s protocol is "chat", not v4.channel.k8s.io'),
                   ("wsheaders", "the server's headers are too large")]:
    fails(name, want, "forward", "pod", "1")


def follow(name, seconds, *args, enough=lambda state: False, port=None):
    """The states it was in, and how often it asked. It has the time, or until there is enough."""
    asked.clear()
    states = []
    it = subprocess.Popen([DRIVER, config(name, port), *args, "follow"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    reader = threading.Thread(target=lambda: states.extend(map(json.loads, it.stdout)))
    reader.start()
    until(lambda: states and enough(states[-1]), seconds)
    it.stdin.close()
    it.wait(30)
    reader.join()
    return states, len(asked)


states, n = follow("watchends", 3)
ok(states and states[-1]["synced"] and n < 20, "a watch that ends at once is not begun all the time", f"{states} {n}")
states, n = follow("bookmark", 3)
ok("resourceVersion=77&" in asked[2][1] and not any("limit" in path for _, path in asked[1:3]), "a watch goes on after its last bookmark",
   asked)
states, n = follow("watch410", 3)
ok(states and states[-1]["synced"] and n < 20, "nor is one that is always too old", f"{states} {n}")
states, n = follow("watchgarbage", 3)
ok(any("an event has no metadata.resourceVersion" in s["problem"] for s in states) and n < 20, "an event that is none", f"{states} {n}")
states, n = follow("watchline", 60, enough=lambda s: s["problem"])
ok(any("an event has more than 8388608 bytes" in s["problem"] for s in states), "an event without an end", f"{states} {n}")
ok(states and max(s["peak_kb"] for s in states) < MAX_RSS_KB, "in bounded memory", states[-1:])
states, n = follow("many", 20, "max=100000")
print("#", states and states[-1]["npods"], "pods kept,", states and states[-1]["peak_kb"], "kB at most")
ok(states and any(s["npods"] for s in states) and states[-1]["peak_kb"] < 2 * MAX_RSS_KB,
   "pods without an end, in bounded memory", states[-1:])

states, n = follow("cluster", 90, enough=lambda s: s["synced"])
print(f"# {states[-1]['npods']} pods: {states[-1]['rss_kb']} kB now, {states[-1]['peak_kb']} kB at most")
ok(states[-1]["npods"] == NPODS and states[-1]["synced"] and states[-1]["peak_kb"] < MAX_RSS_KB, f"{NPODS} pods in less than 64 MB",
   states[-1:])



def answer_once(listener, waiting):
    """Then its queue is full: to whoever comes, the machine is gone."""
    connection = listener.accept()[0]
    connection.recv(65536)
    for s in waiting:
        s.setblocking(False)
        s.connect_ex(listener.getsockname())
    time.sleep(0.5)
    connection.sendall(b'HTTP/1.0 200 OK\r\n\r\n{"metadata":{"resourceVersion":"1"}}')
    connection.close()


with socket.socket() as listener:
    listener.bind(("127.0.0.1", 0))
    listener.listen(0)
    queue = [socket.socket() for _ in range(4)]
    threading.Thread(target=answer_once, args=(listener, queue), daemon=True).start()
    states, n = follow("", 30, "timeout=2000", enough=lambda s: s["problem"], port=listener.getsockname()[1])
ok(states and states[-1]["synced"] and "i/o timeout" in states[-1]["problem"], "a watch of a machine that is gone is told soon", states)

forward = subprocess.Popen([DRIVER, config("wshuge"), "forward", "pod", "1"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
port = forward.stdout.readline().strip()
it = subprocess.run(["curl", "-s", "-m", "10", f"http://127.0.0.1:{port}/"])
forward.stdin.write("?\n")
forward.stdin.flush()
problem = forward.stdout.readline().strip()
ok(it.returncode and problem == "the server's WebSocket frame is too large", "a frame without an end", f"{it} {problem}")
forward.stdin.close()
forward.wait(30)
done()
