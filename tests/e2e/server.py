#!/usr/bin/env python3
"""A server of profiles for tests, and one that does everything a server should not.

Usage: server.py DATA PORTS [CERT KEY CA]: serves the profiles in DATA on free ports of the loopback
interface and writes their numbers to the file PORTS: plain, TLS, TLS that wants a client's certificate.
"""
import gzip
import http.server
import os
import re
import ssl
import sys
import threading
import time
import urllib.parse

data, ports = sys.argv[1:3]
PROFILES = {"profile": "worked_a.pb", "heap": "heap.pb.gz", "allocs": "heap.pb.gz", "goroutine": "goroutine.count"}
# A contention profile has addresses and no names: they are what /symbolz is asked for.
CONTENTION = b"--- contention:\ncycles/second = 1000000000\nsampling period = 1\n100 2 @ 0x1001 0x2002\n50 1 @ 0x3003\n"


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def reply(self, body, status=200, **headers):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        if self.close_connection:
            self.send_header("Connection", "close")
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def begin(self, *headers):
        self.wfile.write("\r\n".join(("HTTP/1.1 200 OK",) + headers + ("", "")).encode())

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        if not self.path.endswith(("/symbol", "/symbolz")) or "nosymbols" in self.path:
            return self.reply(b"no\n", 404)
        names = ["%s\tat_%s" % (a, a) for a in re.findall("0x[0-9a-f]+", body)]
        self.reply(("num_symbols: 1\n%s\n" % "\n".join(names)).encode())

    def do_GET(self):
        url = urllib.parse.urlsplit(self.path)
        hostile = getattr(self, "bad_" + url.path.strip("/").replace("-", "_"), None)
        if hostile:
            self.close_connection = True
            return hostile()
        name = url.path.rsplit("/", 1)[-1]
        if name == "contention":
            return self.reply(CONTENTION)
        if name == "slow" or name == "profile":
            time.sleep(float(urllib.parse.parse_qs(url.query).get("seconds", ["0"])[0]))
        file = PROFILES.get("profile" if name == "slow" else name, name)
        path = os.path.join(data, os.path.basename(file))
        if not os.path.isfile(path):
            return self.reply(b"404 page not found\n", 404)
        with open(path, "rb") as f:
            self.reply(f.read())

    def forever(self, piece):
        try:
            while True:
                self.wfile.write(piece)
        except OSError:
            pass

    def bad_silent(self):
        time.sleep(60)

    def bad_stall(self):
        self.begin("Content-Length: 1000")
        self.wfile.write(b"x" * 100)
        time.sleep(60)

    def bad_trickle(self):
        self.begin("Content-Length: 1000000000")
        try:
            while True:
                self.wfile.write(b"x")
                time.sleep(0.2)
        except OSError:
            pass

    def bad_close(self):
        pass

    def bad_short(self):
        self.begin("Content-Length: 1000")
        self.wfile.write(b"x" * 100)

    def bad_endless(self):
        self.begin("Content-Type: application/octet-stream")
        self.forever(b"x" * 100000)

    def bad_headers(self):
        self.wfile.write(b"HTTP/1.1 200 OK\r\n")
        self.forever(b"X-More: %s\r\n" % (b"y" * 1000))

    def bad_bomb(self):
        self.begin("Content-Encoding: gzip")
        self.forever(gzip.compress(bytes(100 << 20), 1))

    def bad_packed_bomb(self):
        self.reply(gzip.compress(bytes(30 << 20), 1))

    def bad_loop(self):
        self.reply(b"", 302, Location="/loop")

    def bad_elsewhere(self):
        self.reply(b"", 302, Location="file:///etc/passwd")

    def bad_moved(self):
        self.reply(b"", 302, Location="/debug/pprof/heap")

    def bad_garbage(self):
        self.wfile.write(b"SSH-2.0-OpenSSH\r\n")

    def bad_html(self):
        self.reply(b"<html>Welcome</html>", Content_Type="text/html")

    def bad_busy(self):
        self.reply(b"Could not enable CPU profiling: \x1b[31mcpu profiling already in use\n", 500,
                   Content_Type="text/plain; charset=utf-8", X_Go_Pprof="1")


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 300

    def handle_error(self, request, address):
        pass


def start(context=None):
    server = Server(("127.0.0.1", 0), Handler)
    if context:
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.server_address[1]


def tls(cert, key, ca=None):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    if ca:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(ca)
    return context


numbers = [start()]
if len(sys.argv) > 3:
    cert, key, ca = sys.argv[3:]
    numbers += [start(tls(cert, key)), start(tls(cert, key, ca))]
with open(ports + ".tmp", "w") as f:
    print(*numbers, file=f)
os.rename(ports + ".tmp", ports)
sys.stdin.read()  # until whoever started it is gone
