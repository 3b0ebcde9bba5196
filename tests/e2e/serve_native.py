"""A native program for tests of kiln serve: its parts, profiles of its addresses, uploads of its debug info.

Files are in TMP. Needs KILN in the environment.
"""
import gzip
import os
import re
import subprocess
import time

from serve_lib import TMP, cli, field

START = 0x7f1234500000


def run(*args, **kw):
    return subprocess.run(args, check=True, capture_output=True, text=True, **kw).stdout


def path(name):
    return os.path.join(TMP, name)


def content(name):
    with open(path(name), "rb") as f:
        return f.read()


def build_id(name):
    return re.search(r"Build ID: (\w+)", run("readelf", "-n", path(name)))[1]


def addresses(binary="shop.full", functions="price|^main$"):
    """Some of these functions, as they are in the file."""
    out = []
    for line in run("nm", "-S", "--defined-only", path(binary)).splitlines():
        parts = line.split()
        if len(parts) == 4 and re.search(functions, parts[3]):
            start, size = int(parts[0], 16), int(parts[1], 16)
            out += range(start, start + size, 3)
    return sorted(out)


def code_segment(binary):
    """Offset, address, bytes."""
    for line in run("readelf", "-lW", path(binary)).splitlines():
        parts = line.split()
        if parts[:1] == ["LOAD"] and "R E" in line:
            return int(parts[1], 16), int(parts[2], 16), int(parts[4], 16)


def native(file="/srv/shop", id_=None, which=None, time_ns=0, binary="shop.full"):
    """A profile of the program, without names: each address once."""
    offset, vaddr, size = code_segment(binary)
    limit = START + (size + 4095) // 4096 * 4096
    strings = ["", "samples", "count", "cpu", "nanoseconds", file, build_id(binary) if id_ is None else id_]
    out = field(1, field(1, 1) + field(2, 2)) + field(1, field(1, 3) + field(2, 4))
    out += field(3, field(1, 1) + field(2, START) + field(3, limit) + field(4, offset) + field(5, 5) + field(6, 6))
    for i, a in enumerate(which or addresses()):
        out += field(2, field(1, i + 1) + field(2, 1) + field(2, 10000000 + i))
        out += field(4, field(1, i + 1) + field(2, 1) + field(3, START + a - vaddr))
    out += b"".join(field(6, s.encode()) for s in strings) + field(9, time_ns or time.time_ns())
    return gzip.compress(out, 1)


def settle(server, service):
    """Slow machines take longer than a question waits for names."""
    until = time.time() + 60
    while time.time() < until:
        why = server.get("/api/1/unnamed", service=service, type="cpu")[1]
        if all(b["state"] != "pending" for b in why["binaries"]):
            return
        time.sleep(.05)


def upload(server, *files, ok=True):
    return cli("debuginfo", "upload", "--to", server.url, *(path(f) for f in files), ok=ok)
