"""Hostile clients of kiln serve, as a program of its own: they must not slow down the client that measures.

  serve_attack.py KIND PORT [CA]    attacks until its input ends; with CA by TLS. Prints what it did.
"""
import gzip
import os
import random
import re
import select
import socket
import ssl
import sys
import threading
import time
import urllib.parse
import zlib

KIND, PORT = sys.argv[1], int(sys.argv[2])
TLS = ssl.create_default_context(cafile=sys.argv[3]) if len(sys.argv) > 3 else None
NSLOW = 1000
INTERVAL = float(os.environ.get("INTERVAL", "0.3"))  # between two bytes of who is slow
TLS_EVERY = int(os.environ.get("TLS_EVERY", "4"))  # of those who are slow shakes hands to the end, which costs both sides
PIECE_BYTES = 32 << 10
over = threading.Event()
counts = {}


def count(what):
    counts[what] = counts.get(what, 0) + 1


def connect(timeout=20, receive_bytes=None):
    s = socket.socket()
    if receive_bytes:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
    s.settimeout(timeout)
    s.bind(("127.0.0.2", 0))  # they are somebody else than the good client
    s.connect(("127.0.0.1", PORT))
    return s


def open_tls(s):
    return TLS.wrap_socket(s, server_hostname="localhost") if TLS else s


def send(s, data):
    """By pieces: the kernel copies megabytes at a stretch, on a core that the server would have to itself."""
    view = memoryview(data)
    for at in range(0, len(data), PIECE_BYTES):
        s.sendall(view[at:at + PIECE_BYTES])


def ask(s, head, body=b""):
    """Status of the answer; 0: the connection was shut."""
    try:
        if len(body) < PIECE_BYTES:
            s.sendall(head + body)
        else:
            s.sendall(head)
            send(s, body)
        got = s.recv(65536)
        while b"\r\n\r\n" not in got:
            more = s.recv(65536)
            if not more:
                break
            got += more
        length = re.search(rb"\r\nContent-Length: (\d+)\r\n", got)
        missing = int(length[1]) - len(got.split(b"\r\n\r\n", 1)[1]) if length else 0
        while missing > 0:
            missing -= len(s.recv(missing)) or missing
        return int(got.split(b" ", 2)[1]) if got.startswith(b"HTTP/1.1 ") else 0
    except OSError:
        return 0


def post(query, nbytes):
    return ("POST /api/0/profiles?%s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % (query, nbytes)).encode()


# ---- many who are slow: a byte now and then, and again when they are shut

def slow(begin):
    """`begin` opens a connection and says so much that the server waits for more."""
    peers = []
    while not over.is_set():
        while len(peers) < NSLOW and not over.is_set():
            try:
                peers.append(begin())
                peers[-1].setblocking(False)
                count("connections")
            except OSError:
                count("failed")
        kept = []
        for s in peers:
            try:
                s.send(b"a")
                kept.append(s)
            except (BlockingIOError, ssl.SSLWantWriteError):
                kept.append(s)
            except OSError:
                count("shut")
                s.close()
        peers = kept
        over.wait(INTERVAL)


def begin_request(first):
    if TLS and counts.get("connections", 0) % TLS_EVERY:
        return begin_handshake()
    s = open_tls(connect())
    s.sendall(first)
    return s


def slow_heads():
    slow(lambda: begin_request(b"GET /api/0/services HTTP/1.1\r\nHost: localhost\r\nX-a: "))


def slow_bodies():
    slow(lambda: begin_request(post("service=slow&type=cpu", 50_000_000) + b"x" * 1000))


def begin_handshake():
    """Without TLS it is a head that has no end, either."""
    s = connect()
    s.sendall(b"\x16\x03\x01\x20\x00\x01\x00\x1f\x00\x03\x03" if TLS else b"G")
    return s


def slow_handshakes():
    slow(begin_handshake)


# ---- those who ask and do not read

def never_read():
    peers = []
    request = b"GET /api/0/profiles/merge?service=large&type=cpu&from=2020-01-01T00:00:00&to=2030-01-01T00:00:00 HTTP/1.1\r\nHost: localhost\r\n\r\n"
    while not over.is_set():
        while len(peers) < NSLOW and not over.is_set():
            try:
                s = open_tls(connect(receive_bytes=4096))
                s.sendall(request * 20)
                peers.append(s)
                count("connections")
            except OSError:
                count("failed")
        over.wait(0.3)
        for s in select.select(peers, [], [], 0)[0][:3]:
            try:
                s.recv(1)
            except OSError:
                peers.remove(s)
                count("shut")


# ---- what is small and unpacks to 10 GB

def bomb(nmegabytes):
    """One stream of so many megabytes of zeros: a flushed piece, again and again."""
    c = zlib.compressobj(9, zlib.DEFLATED, -15)
    start = c.compress(bytes(1 << 20)) + c.flush(zlib.Z_FULL_FLUSH)
    piece = c.compress(bytes(1 << 20)) + c.flush(zlib.Z_FULL_FLUSH)
    return b"\x1f\x8b\x08\0\0\0\0\0\0\xff" + start + piece * (nmegabytes - 1) + c.flush() + bytes(8)


def gzip_bombs():
    ten_gigabytes = bomb(10_000)
    members = gzip.compress(bytes(10 << 20)) * 1000
    liar = bomb(200)[:-4] + (1000).to_bytes(4, "little")
    bombs = [ten_gigabytes, members, liar]

    def run():
        while not over.is_set():
            body = random.choice(bombs)
            try:
                s = open_tls(connect())
                count("status %d" % ask(s, post("service=bomb&type=cpu", len(body)), body))
                s.close()
            except OSError:
                count("failed")
    run_many(run, 4)


# ---- labels without end

def labels():
    with open(os.environ["PROFILE"], "rb") as f:
        body = f.read()
    r = random.Random(1)

    def query(i):
        kind = i % 4
        if kind == 0:
            pairs = ["request=%d" % r.getrandbits(60)]
        elif kind == 1:
            pairs = ["k%d=v" % k for k in range(500)]
        elif kind == 2:
            pairs = ["k=" + "v" * 20000]
        else:
            pairs = ["%s=1" % ("k" * 5000)]
        return "service=labels&type=cpu&labels=" + urllib.parse.quote(",".join(pairs))

    def run():
        s = None
        i = 0
        while not over.is_set():
            i += 1
            try:
                s = s or open_tls(connect())
                status = ask(s, post(query(i), len(body)), body)
                count("status %d" % status)
                if status in (0, 414, 431):
                    s = None
            except OSError:
                s = None
                count("failed")
    run_many(run, 4)


# ---- what is no HTTP

SEEDS = [
    b"GET /api/0/services HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"POST /api/0/profiles?service=f&type=cpu HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhello",
    b"POST /api/0/profiles?service=f&type=cpu HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    b"GET /api/0/profiles/merge?service=f&type=cpu&from=2020-01-01T00:00:00&to=2030-01-01T00:00:00&labels=a=b HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET /api/1/merge?query={service=~\"f.*\"} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Basic YTpi\r\n\r\n",
    b"DELETE /api/0/profiles/dbth5se49i4j1lbb432g HTTP/1.0\r\nAuthorization: Bearer x\r\nExpect: 100-continue\r\n\r\n",
]
PIECES = [b"\r\n", b"\0", b"%00", b"%zz", b"../", b"//", b" ", b"\t", b":", b"A" * 3000, b"\r\n\r\n", b"Content-Length: -1\r\n",
          b"Content-Length: 99999999999999999999\r\n", b"Content-Length: 5\r\nContent-Length: 6\r\n", b"Transfer-Encoding: chunked\r\n", b"\xff\xfe",
          b"ffffffffffffffff\r\n", b"HTTP/9.9", b"?", b"&&&", b"=", b"\n", b"Host:\r\n", b"Connection: upgrade\r\n", b"X: y\r\n" * 200]


def mutate(r):
    b = bytearray(r.choice(SEEDS))
    for _ in range(r.randrange(1, 6)):
        at = r.randrange(len(b) + 1)
        what = r.randrange(5)
        if what == 0:
            b[at:at] = r.choice(PIECES)
        elif what == 1:
            del b[at:at + r.randrange(1, 20)]
        elif what == 2 and at < len(b):
            b[at] = r.randrange(256)
        elif what == 3:
            b[at:at] = bytes(r.randrange(256) for _ in range(r.randrange(20)))
        else:
            b += r.choice(SEEDS)
    return bytes(b)


def malformed():
    def run():
        r = random.Random(threading.get_ident())
        while not over.is_set():
            try:
                s = connect(1)
                if r.randrange(4) or not TLS:
                    s = open_tls(s)
                s.settimeout(0.2)
                count("status %d" % ask(s, mutate(r)))
                s.close()
            except OSError:
                count("failed")
    run_many(run, 4)


def run_many(f, n):
    threads = [threading.Thread(target=f, daemon=True) for _ in range(n)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()


threading.Thread(target=lambda: (sys.stdin.read(), over.set()), daemon=True).start()
print("ready", flush=True)
{f.__name__: f for f in (slow_heads, slow_bodies, slow_handshakes, never_read, gzip_bombs, labels, malformed)}[KIND]()
print(" ".join("%s=%d" % x for x in sorted(counts.items())).replace("status ", ""), flush=True)
os._exit(0)
