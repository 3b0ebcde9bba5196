#!/usr/bin/env python3
"""A way to a pod's port through a real API server: WebSockets to Kubernetes' own port-forward, and the proxy; and all of
it through an HTTP proxy of the kubeconfig."""
import base64
import hashlib
import http.server
import json
import os
import socket
import socketserver
import subprocess
import threading
import time
import urllib.error
import urllib.request

from cluster import ROOT, Cluster, done, free_ports, ok, until

DRIVER = os.environ.get("DRIVER", ROOT + "/build/release/tests/kube/driver")
BIG = os.urandom(1 << 20) * 8


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self, body):
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self.answer(BIG if self.path == "/big" else b"hello " + self.path.encode())

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.answer(hashlib.sha256(body).hexdigest().encode())

    def log_message(self, *args):
        pass


def serve(address):
    server = http.server.ThreadingHTTPServer((address, 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.server_address[1]


class ProxyHandler(socketserver.StreamRequestHandler):
    """CONNECT, and no more."""

    def handle(self):
        method, where, _ = self.rfile.readline().decode().split()
        headers = {}
        while line := self.rfile.readline().decode().strip():
            name, _, value = line.partition(": ")
            headers[name.lower()] = value
        self.server.asked.append((method, where, headers.get("proxy-authorization")))
        if self.server.refusal:
            self.wfile.write(self.server.refusal)
            return
        host, _, port = where.rpartition(":")
        with socket.create_connection((host, int(port))) as there:
            self.wfile.write(b"HTTP/1.1 200 Connected\r\n\r\n")
            back = threading.Thread(target=self.pump, args=(there, self.connection))
            back.start()
            self.pump(self.connection, there)
            back.join()

    @staticmethod
    def pump(source, sink):
        try:
            while chunk := source.recv(65536):
                sink.sendall(chunk)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            pass


class Proxy(socketserver.ThreadingTCPServer):
    daemon_threads, block_on_close = True, False

    def __init__(self):
        super().__init__(("127.0.0.1", 0), ProxyHandler)
        self.asked, self.refusal = [], b""
        self.address = "127.0.0.1:%d" % self.server_address[1]
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def config(self, user=""):
        """A kubeconfig that goes through it."""
        config = cluster.config()
        config["clusters"][0]["cluster"]["proxy-url"] = "http://" + user + self.address
        path = cluster.file("proxied%d" % len(user))
        with open(path, "w") as out:
            json.dump(config, out)
        return path


class Forward:
    def __init__(self, pod, port, *options):
        self.process = subprocess.Popen([DRIVER, f"kubeconfig={cluster.kubeconfig}", *options, "forward", pod, str(port)],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        self.port = int(line) if line else None
        self.error = "" if line else self.process.stderr.read().strip()

    def problem(self):
        self.process.stdin.write("?\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def get(self, path, body=None):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", body, timeout=60) as answer:
            return answer.read()

    def end(self):
        start = time.monotonic()
        self.process.stdin.close()
        self.process.wait(30)
        return time.monotonic() - start


cluster = Cluster(has_kubelet=True)
port = serve("127.0.0.1")
cluster.pod("web", ports=[("http", port)])

forward = Forward("web", port)
ok(forward.port, "there is a port", forward.error)
ok(forward.get("/x") == b"hello /x", "a request through a WebSocket")
ok(forward.get("/again") == b"hello /again", "and another")
ok(forward.get("/big") == BIG, "8 MB come whole")
ok(forward.get("/post", BIG).decode() == hashlib.sha256(BIG).hexdigest(), "8 MB go whole")
answers = []
threads = [threading.Thread(target=lambda: answers.append(forward.get("/big") == BIG)) for _ in range(10)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
ok(answers == [True] * 10, "ten at once", answers)
with socket.create_connection(("127.0.0.1", forward.port)) as s:
    for i in range(3):
        s.sendall(b"GET /kept HTTP/1.1\r\nHost: x\r\n\r\n")
        text = b""
        while not text.endswith(b"hello /kept"):
            text += s.recv(1000) or b"hello /kept EOF hello /kept"
        if b"EOF" in text:
            break
ok(b"EOF" not in text, "a connection that is kept", text)
with socket.create_connection(("127.0.0.1", forward.port)) as s:
    s.sendall(b"GET /half HTTP/1.0\r\n\r\n")
    s.shutdown(socket.SHUT_WR)
    text = b""
    while chunk := s.recv(1000):
        text += chunk
ok(text.endswith(b"hello /half"), "who has said all still gets an answer", text)
ok(forward.problem() == "", "nothing went wrong", forward.problem())
idle = socket.create_connection(("127.0.0.1", forward.port))
seconds = forward.end()
ok(seconds < 5, "it ends, though somebody is connected", seconds)
idle.close()
words = forward.process.stderr.read()
ok(forward.process.returncode == 0 and not words, "without a word", words)

closed = free_ports(1)[0]
forward = Forward("web", closed)
try:
    forward.get("/")
    ok(False, "a port where nobody listens")
except (OSError, urllib.error.URLError):
    ok(True, "a port where nobody listens")
ok(until(lambda: "connection refused" in forward.problem(), 10), "and why it failed", forward.problem())
forward.end()

forward = Forward("none", port)
ok(not forward.port and forward.error.startswith("2 ") and 'pods "none" not found' in forward.error, "a pod that is not there",
   forward.error)
forward = Forward("web", port, "token=viewer-token")
ok(not forward.port and 'User "viewer" cannot get resource "pods/portforward"' in forward.error, "somebody who may not",
   forward.error)
forward = Forward("web", port, "token=nobody")
ok(not forward.port and "401 Unauthorized" in forward.error, "somebody who is unknown", forward.error)
cluster.allow("viewer", ["get"], ["pods/portforward"])
ok(until(lambda: Forward("web", port, "token=viewer-token").port, 20), "`get` pods/portforward is enough")

# ---- proxy-url of a kubeconfig, which counts whatever the environment says


def pod_names(kubeconfig):
    it = subprocess.run([DRIVER, f"kubeconfig={kubeconfig}", "list"], capture_output=True, text=True, timeout=60,
                        env={**os.environ, "NO_PROXY": "127.0.0.1", "no_proxy": "*"})
    return [json.loads(line)["name"] for line in it.stdout.splitlines()], it.stderr


proxy, where = Proxy(), "127.0.0.1:%d" % cluster.port
names, error = pod_names(proxy.config())
ok(names == ["web"] and set(proxy.asked) == {("CONNECT", where, None)}, "requests go through the proxy of the kubeconfig", (names, error, proxy.asked))
del proxy.asked[:]
forward = Forward("web", port, "kubeconfig=" + proxy.config())
ok(forward.port and forward.get("/big") == BIG and len(proxy.asked) >= 1, "so do forwarded ports", (forward.error, proxy.asked))
forward.end()
del proxy.asked[:]
names, error = pod_names(proxy.config("ann:se%40same@"))
want = "Basic " + base64.b64encode(b"ann:se@same").decode()
ok(names == ["web"] and {a for _, _, a in proxy.asked} == {want}, "which is told who asks", (names, error, proxy.asked))
proxy.refusal = b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n"
names, error = pod_names(proxy.config("ann:sesame@"))
ok(not names and error and "sesame" not in error, "a proxy that refuses is an error", error)
print("# " + error.strip())
proxy.shutdown()
proxy.server_close()
names, error = pod_names(proxy.config())
ok(not names and "connection refused" in error, "and so is one that is not there: nobody goes around it", error)

# ---- the proxy of the API server; it refuses loopback, so the pod has an address of this machine


def own_address():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        try:
            s.connect(("192.0.2.1", 9))
            return s.getsockname()[0]
        except OSError:
            return "127.0.0.1"


address = own_address()
if address.startswith("127."):
    ok(True, "the proxy # SKIP this machine has no other address than loopback")
else:
    port = serve(address)
    cluster.pod("far", ip=address)
    it = subprocess.run([DRIVER, f"kubeconfig={cluster.kubeconfig}", "get", f"/api/v1/namespaces/default/pods/far:{port}/proxy/y?z=1"],
                        capture_output=True)
    ok(it.stdout == b"hello /y?z=1", "the proxy", it.stderr)
cluster.stop()
done()
