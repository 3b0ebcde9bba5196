"""A fake program with /debug/pprof, which answers well, dies, hangs, and lies."""
import gzip
import http.server
import os
import socket
import ssl
import threading
import time
import urllib.parse

import serve_lib as lib

GOROUTINE = (("goroutine", "count"),)
MUTEX = (("contentions", "count"), ("delay", "nanoseconds"))
TYPES = {"profile": lib.CPU, "heap": lib.HEAP, "goroutine": GOROUTINE, "mutex": MUTEX, "block": MUTEX}


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Target:
    """A program with /debug/pprof. What it does is told by `mode`, or of a profile by `modes`."""

    def __init__(self, port=0, mode="ok", tls=None, host="127.0.0.1", **modes):
        self.mode, self.modes, self.asked, self.headers, self.elsewhere = mode, modes, [], {}, ""
        self.stall_bytes = self.nstalled = self.delay = 0
        self.now = self.most = 0  # CPU profiles at the same time
        self.lock, self.end = threading.Lock(), threading.Event()
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *args):
                pass

            def do_GET(self):
                outer.answer(self)

        class Http(http.server.ThreadingHTTPServer):
            daemon_threads = allow_reuse_address = True
            request_queue_size = 64

            def handle_error(self, *args):
                pass

        self.server = Http((host, port), Handler)
        if tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*tls)
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.port = self.server.server_port
        self.address = "%s:%d" % (host, self.port)
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def answer(self, h):
        url = urllib.parse.urlsplit(h.path)
        name = url.path.rsplit("/", 1)[1]
        seconds = dict(urllib.parse.parse_qsl(url.query)).get("seconds")
        with self.lock:
            self.asked.append((name, seconds, time.monotonic()))
            self.headers = dict(h.headers)
            self.now += name == "profile"
            self.most = max(self.most, self.now)
        try:
            self.reply(h, name, int(seconds or 0))
        finally:
            with self.lock:
                self.now -= name == "profile"

    def reply(self, h, name, seconds):
        mode = self.modes.get(name, self.mode)
        if mode == "hang":
            self.end.wait(60)
            h.close_connection = True
            return
        if mode == "die":
            h.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nhalf of it")
            h.close_connection = True
            return
        if mode == "endless":
            h.send_response(200)
            h.send_header("Content-Type", "application/octet-stream")
            h.end_headers()
            while not self.end.is_set():
                h.wfile.write(b"\x0a" * 65536)
            return
        if mode == "stall":  # after so many bytes that nobody has announced
            h.send_response(200)
            h.end_headers()
            h.wfile.write(b"\x0a" * self.stall_bytes)
            self.nstalled += 1
            self.end.wait(60)
            h.close_connection = True
            return
        if mode == "drip":
            h.send_response(200)
            h.end_headers()
            while not self.end.wait(0.1):
                h.wfile.write(b"\x0a")
            return
        if self.end.wait(seconds + self.delay):
            h.close_connection = True
            return
        body, status, headers = self.body(name, mode), 200, {}
        if mode == "absent":
            status, body = 404, b"404 page not found\n"
        elif mode == "busy":
            status, body = 500, b"Could not enable CPU profiling: \x1b[31mcpu profiling already in use\n"
            headers["Content-Type"] = "text/plain; charset=utf-8"
        elif mode == "redirect":
            status, body, headers["Location"] = 302, b"", "http://%s/debug/pprof/%s" % (self.elsewhere, name)
        elif mode == "bomb":
            headers["Content-Encoding"] = "gzip"
        h.send_response(status)
        for header in headers.items():
            h.send_header(*header)
        h.send_header("Content-Length", str(len(body)))
        h.end_headers()
        h.wfile.write(body)

    def body(self, name, mode):
        if mode == "garbage":
            return os.urandom(2000)
        if mode == "bomb":
            return BOMB
        if mode == "inner bomb":
            return BOMB
        types = TYPES["heap" if mode == "wrong" and name == "profile" else "profile" if mode == "wrong" else name]
        stacks = {} if mode == "empty" else {"work_%s;main" % name: (5,) * len(types)}
        return lib.profile(stacks, types, time=time.time_ns())

    def count(self, name):
        with self.lock:
            return sum(n == name for n, _, _ in self.asked)

    def close(self):
        self.end.set()
        self.server.shutdown()
        self.server.server_close()


class BlackHole:
    """An address to which nobody can connect, and that does not say so: its queue is full."""

    def __init__(self):
        self.server = socket.socket()
        self.server.bind(("127.0.0.1", 0))
        self.server.listen(0)
        self.address = "127.0.0.1:%d" % self.server.getsockname()[1]
        self.clients = []
        for _ in range(4):
            self.clients.append(socket.socket())
            self.clients[-1].setblocking(False)
            self.clients[-1].connect_ex(self.server.getsockname())

    def close(self):
        for s in self.clients + [self.server]:
            s.close()


BOMB = gzip.compress(bytes(400 << 20), 9)
