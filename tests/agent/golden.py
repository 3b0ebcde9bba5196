#!/usr/bin/env python3
"""Answers byte for byte as Go's net/http/pprof gives them, where they do not depend on the program.

tests/agent/golden has what a Go 1.19 server answered, but for the date:
    golden.py record PORT     writes it anew; the server has a profile "my.custom" and nothing else."""
import re, socket, sys

HEAD = b"Host: x\r\nConnection: close\r\n\r\n"


def get(path, method="GET", fields="", body=b""):
    return f"{method} {path} HTTP/1.1\r\n{fields}".encode() + HEAD + body


CASES = {
    "head-of-index": get("/debug/pprof/", "HEAD"),
    "redirect": get("/debug/pprof?x=1&y='<"),
    "redirect-head": get("/debug/pprof", "HEAD"),
    "redirect-post": get("/debug/pprof", "POST", "Content-Length: 0\r\n"),
    "redirect-dots": get("/debug/../x/./debug/pprof/cmdline"),
    "redirect-slashes": get("/debug//pprof/cm%20dline/?a=b"),
    "other-path": get("/"),
    "other-path-of-debug": get("/debug/"),
    "other-path-below-profile": get("/debug/pprof/heap/x"),
    "unknown-profile": get("/debug/pprof/nosuch"),
    "seconds-zero": get("/debug/pprof/heap?seconds=0"),
    "seconds-negative": get("/debug/pprof/heap?seconds=-1"),
    "seconds-fraction": get("/debug/pprof/heap?seconds=0.5"),
    "seconds-text": get("/debug/pprof/goroutine?seconds=x&debug=1"),
    "seconds-huge": get("/debug/pprof/heap?seconds=99999999999999999999"),
    "seconds-escaped": get("/debug/pprof/hea%70?seconds=%30"),
    "seconds-and-debug": get("/debug/pprof/heap?seconds=1&debug=1"),
    "seconds-custom": get("/debug/pprof/my.custom?seconds=1"),
    "seconds-custom-zero": get("/debug/pprof/my.custom?seconds=0"),
    "seconds-unknown": get("/debug/pprof/nosuch?seconds=1"),
    "post-query": get("/debug/pprof/heap?seconds=0", "POST", "Content-Length: 0\r\n"),
    "post-form": get("/debug/pprof/heap", "POST", "Content-Type: application/x-www-form-urlencoded\r\n"
                     "Content-Length: 9\r\n", b"seconds=0"),
    "symbol": get("/debug/pprof/symbol"),
    "symbol-head": get("/debug/pprof/symbol", "HEAD"),
    "symbol-unknown": get("/debug/pprof/symbol?0x1+2+zz++"),
    "symbol-post": get("/debug/pprof/symbol", "POST", "Content-Length: 5\r\n", b"0x1+2"),
    "symbol-chunked": get("/debug/pprof/symbol", "POST", "Transfer-Encoding: chunked\r\n", b"3;x=y\r\n0x1\r\n0\r\n\r\n"),
    "symbol-keep-alive": b"GET /debug/pprof/symbol HTTP/1.1\r\nHost: x\r\n\r\n" * 3 + get("/debug/pprof/symbol"),
    "symbol-1.0": b"GET /debug/pprof/symbol HTTP/1.0\r\n\r\n",
    "symbol-bare-newlines": b"GET /debug/pprof/symbol HTTP/1.1\nHost: x\nConnection: close\n\n",
    "symbol-absolute": get("http://x/debug/pprof/symbol"),
    "no-host": b"GET /debug/pprof/symbol HTTP/1.1\r\n\r\n",
    "two-hosts": get("/debug/pprof/symbol", fields="Host: y\r\n"),
    "garbage": b"\x00\x01\x02garbage\r\n\r\n",
    "no-version": b"GET /\r\n\r\n",
    "no-target": b"GET\r\n\r\n",
    "wrong-version": b"GET / HTTP/9.1\r\nHost: x\r\n\r\n",
    "wrong-protocol": b"GET / HTPT/1.1\r\nHost: x\r\n\r\n",
    "wrong-field": b"GET / HTTP/1.1\r\nHost: x\r\nnocolon\r\n\r\n",
    "wrong-length": b"POST /debug/pprof/symbol HTTP/1.1\r\nHost: x\r\nContent-Length: zz\r\n\r\n",
    "wrong-encoding": b"POST /debug/pprof/symbol HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: foo\r\n\r\n",
    "wrong-escape": get("/debug/pprof/hea%7"),
    "huge-head": b"GET /" + b"a" * 2000000 + b" HTTP/1.1\r\n" + HEAD,
}


def mask(data):
    return re.sub(rb"\r\nDate: [A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d GMT\r\n",
                  b"\r\nDate: DATE\r\n", data)


def ask(port, data):
    with socket.create_connection(("127.0.0.1", port), timeout=10) as s:
        s.settimeout(10)
        answer = b""
        try:
            s.sendall(data)
        except OSError:
            pass
        try:
            while some := s.recv(1 << 16):
                answer += some
        except OSError:
            pass
        return mask(answer)


def path_of(name):
    import os
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), "golden", name)


def record(port):
    for name, data in CASES.items():
        with open(path_of(name), "wb") as f:
            f.write(ask(port, data))


def index_without_rows(page):
    """Rows and descriptions are the program's."""
    page = re.sub(r"(<thead>.*</thead>\n)(<tr><td>\d+</td><td><a href='[^']*\?debug=1'>[^<]*</a></td></tr>\n)+",
                  r"\1ROWS\n", page)
    return re.sub(r"(<ul>\n)(<li><div class=profile-name>[^<]*: </div> [^<]*</li>\n)+", r"\1TEXTS\n", page)


def test():
    sys.path.insert(0, path_of("../lib"))
    from served import Folder, Served, done, ok
    with Folder() as folder, Served(folder) as s:
        for name, data in CASES.items():
            with open(path_of(name), "rb") as f:
                want = f.read()
            got = ask(s.port, data)
            ok(got == want, f"as Go: {name}", f"want {want!r}", f"got  {got!r}")
        page = s.get("/debug/pprof/")[2].decode()
        with open(path_of("index.html")) as f:
            want = f.read()
        ok(index_without_rows(page) == index_without_rows(want), "as Go: index but for its rows", page)
        names = re.findall(r"'>([^<]*)</a></td>", page)
        texts = re.findall(r"profile-name>([^<]*): ", page)
        ok(names == sorted(names) == texts, "rows are in order of names, and each is described", names, texts)
        ok(set(re.findall(r"'>([^<]*)</a></td>", want)) <= set(names), "all of Go's profiles are there", names)
        got = s.get("/debug/pprof/cmdline")[2]
        ok(got == (folder + "/served").encode(), "cmdline has no NUL at its end", got)
    done()


if __name__ == "__main__":
    if sys.argv[1:2] == ["record"]:
        record(int(sys.argv[2]))
    else:
        test()
