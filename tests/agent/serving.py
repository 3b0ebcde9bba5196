#!/usr/bin/env python3
"""The agent as a server: many at once, slow ones, wrong ones, those who leave; sockets that are not in the way."""
import concurrent.futures, http.client, os, random, socket, subprocess, sys, time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))
from served import AGENT, Folder, Served, done, ok, read_all


def connect(s, data=b""):
    c = socket.create_connection(("127.0.0.1", s.port), timeout=10)
    c.sendall(data)
    return c


def request(path):
    return f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode()


def fds_of(pid):
    return sorted(int(n) for n in os.listdir(f"/proc/{pid}/fd"))


def test_parallel(s):
    with concurrent.futures.ThreadPoolExecutor(64) as pool:
        start = time.time()
        answers = list(pool.map(lambda i: s.get(["/debug/pprof/heap?seconds=2", "/debug/pprof/goroutine?debug=2",
                                                "/debug/pprof/threads", "/debug/pprof/"][i % 4]), range(64)))
        took = time.time() - start
    bad = [a[0] for a in answers if a[0] != 200 or not a[2]]
    ok(not bad, "64 requests at the same time", bad)
    ok(took < 10, "which wait side by side", took)


def test_full(s):
    """Whoever is there without asking makes room for those who ask."""
    idle = [connect(s, b"GET /debug/pp") for _ in range(64)]
    start = time.time()
    status = s.get("/debug/pprof/cmdline")[0]
    ok(status == 200 and time.time() - start < 5, "64 that send slowly are in nobody's way", status)
    time.sleep(0.1)
    idle[-1].sendall(b"rof/cmdline HTTP/1.0\r\n\r\n")
    ok(b"200 OK" in read_all(idle[-1]), "and are answered once they ask")
    for c in idle:
        c.close()


def address_of(s, name):
    """Where a function of the program is now."""
    symbols = subprocess.run(["nm", s.process.args[0]], capture_output=True, text=True).stdout.splitlines()
    address = next(line.split()[0] for line in symbols if line.endswith(" T " + name))
    with open(f"/proc/{s.process.pid}/maps") as f:
        return int(next(line for line in f if "/served" in line).split("-")[0], 16) + int(address, 16)


def test_slow_reader(s):
    word = b"%#x+" % address_of(s, "compute")
    n = 400000
    slow = socket.socket()
    slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    slow.settimeout(10)
    slow.connect(("127.0.0.1", s.port))
    slow.sendall(b"POST /debug/pprof/symbol HTTP/1.0\r\nContent-Length: %d\r\n\r\n" % (n * len(word)) + word * n)
    ok(s.get("/debug/pprof/cmdline")[0] == 200, "who does not read is in nobody's way")
    answer = read_all(slow)
    ok(answer.count(b"compute") == n, "and gets all later", answer[:200], len(answer))
    slow.close()


def test_defaults(s):
    c = connect(s, request("/debug/pprof/profile?seconds=x"))
    start = time.time()
    status = s.get("/debug/pprof/trace")[0]
    took = time.time() - start
    ok(status == 200 and 0.9 < took < 5, "a trace is of a second, if nothing else is said", status, took)
    c.settimeout(1)
    ok(read_all(c) == b"<open>", "a CPU profile of more")
    c.close()
    time.sleep(0.3)


def test_leaving(s):
    """The only CPU profile ends when its reader is gone."""
    c = connect(s, request("/debug/pprof/profile?seconds=60"))
    time.sleep(0.3)
    status, fields, text = s.get("/debug/pprof/profile?seconds=1")
    ok((status, text) == (500, b"Could not enable CPU profiling: cpu profiling already in use\n") and
       fields.get("X-Go-Pprof") == "1", "one CPU profile at a time", status, text)
    c.close()
    time.sleep(0.3)
    ok(s.get("/debug/pprof/profile?seconds=1")[0] == 200, "it ends when the client leaves")
    c = connect(s, request("/debug/pprof/trace?seconds=60"))
    time.sleep(0.3)
    status, _, text = s.get("/debug/pprof/trace?seconds=1")
    ok((status, text) == (500, b"Could not enable tracing: tracing is already enabled\n"), "one trace at a time", text)
    c.shutdown(socket.SHUT_WR)
    ok(read_all(c).startswith(b"HTTP/1.1 200 OK"), "who is heard no more, but listens, gets it early")
    c.close()
    c = connect(s, request("/debug/pprof/heap?seconds=60"))
    time.sleep(0.2)
    c.shutdown(socket.SHUT_WR)
    ok(read_all(c).endswith(b"context canceled\n"), "a delta is given up then, as in Go")
    c.close()


def test_keep_alive(s):
    c = http.client.HTTPConnection("127.0.0.1", s.port, timeout=10)
    answers = []
    for i in range(50):
        c.request("HEAD" if i % 3 == 2 else "GET", ["/debug/pprof/", "/debug/pprof/heap", "/debug/pprof/symbol"][i % 3])
        a = c.getresponse()
        body = a.read()
        answers.append(a.status == 200 and bool(body) == (i % 3 != 2))
    ok(all(answers), "50 requests on one connection", answers)
    c.close()


def test_bodies(s):
    name = "compute"
    pc = address_of(s, name)
    status, _, text = s.get("/debug/pprof/symbol", method="POST", body=b"0x1+%#x+0" % pc)
    want = b"num_symbols: 1\n%#x %s\n" % (pc, name.encode())
    ok((status, text) == (200, want), "symbol by POST", text)
    form = b"+".join([b"%#x" % pc] * 1000)
    answer = s.raw(b"POST /debug/pprof/symbol HTTP/1.0\r\nContent-Type: application/x-www-form-urlencoded\r\n"
                   b"Content-Length: %d\r\n\r\n" % len(form) + form)
    ok(answer.count(name.encode()) == 1000, "as a form too", answer[:200])
    ok(s.get("/pprof/symbol?%#x" % pc)[2] == want, "symbol by GET, on gperftools' path")
    start = time.time()
    body = b"+".join([b"%#x" % pc] * 600000)
    body = body[:10 << 20]
    status, _, text = s.get("/debug/pprof/symbol", method="POST", body=body)
    ok(status == 200 and text.count(b"\n") >= 590000, f"{len(body)} bytes of addresses", status, len(text))
    ok(time.time() - start < 20, "in a few seconds", time.time() - start)
    status = s.get("/debug/pprof/symbol", method="POST", body=b"+" * ((10 << 20) + 1))[0]
    ok(status == 413, "more than 10 MB are refused", status)
    chunk = b"%x\r\n%s\r\n" % (100000, b"+" * 100000)
    answer = s.raw(b"POST /debug/pprof/symbol HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk * 110)
    ok(answer.startswith(b"HTTP/1.1 413 "), "in chunks too", answer[:200])
    c = connect(s, b"POST /debug/pprof/symbol HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 3\r\n"
                b"Connection: close\r\n\r\n")
    ok(c.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n", "who waits for it is told to go on")
    c.sendall(b"0x1")
    ok(read_all(c).endswith(b"\r\n\r\nnum_symbols: 1\n"), "and answered")
    c.close()


def test_garbage(s):
    random.seed(1)
    good = [request("/debug/pprof/heap?debug=1"), request("/debug/pprof/nosuch"),
            b"POST /debug/pprof/symbol HTTP/1.1\r\nHost: x\r\nContent-Length: 20\r\n\r\n0x1+0x2+0x3+0x4+0x56"]
    for _ in range(300):
        data = bytearray(random.choice(good))
        for _ in range(random.randrange(1, 6)):
            at = random.randrange(len(data))
            data[at:at + random.randrange(3)] = random.randbytes(random.randrange(4))
        c = connect(s)
        try:
            c.sendall(data)
            if random.random() < 0.5:
                c.shutdown(socket.SHUT_WR)
                read_all(c)
        except OSError:
            pass
        c.close()
    ok(s.get("/debug/pprof/cmdline")[0] == 200, "it outlives 300 damaged requests")


def test_sockets(s):
    pid = s.process.pid
    c = connect(s, b"GET ")
    time.sleep(0.2)
    ours = [fd for fd in fds_of(pid) if fd > 2]
    flags = [open(f"/proc/{pid}/fdinfo/{fd}").read().split("flags:")[1].split()[0] for fd in ours]
    ok(ours and min(ours) >= 200, "sockets have high numbers", ours)
    ok(all(int(f, 8) & 0o2000000 for f in flags), "and are closed on exec", flags)
    c.close()
    children = []
    for _ in range(100):  # also while one comes or goes
        connect(s, b"GET ").close()
        children.append(int(s.tell("fork", answers=True)))
    time.sleep(0.3)
    sockets = [(child, fd) for child in children for fd in fds_of(child) if fd > 2]
    ok(not sockets, "children have none of them", sockets)
    s.tell("close")
    time.sleep(1.5)
    ok(s.get("/debug/pprof/cmdline")[0] == 200, "when the program closes them it listens again", s.said())


def test_kiln_reads(folder, path):
    def top(*args):
        p = subprocess.run([os.environ["KILN"], "-top", *args], env=dict(os.environ, PPROF_TMPDIR=folder), capture_output=True, text=True)
        return p.stdout + p.stderr

    text = top("-seconds=1", "unix:" + path)
    ok("Type: cpu" in text and "Duration: 1" in text, "kiln -top unix:/path is the CPU profile", text)
    text = top(f"unix:{path}:/debug/pprof/threads")
    ok("Type: goroutine" in text and "compute" in text, "kiln -top unix:/path:/debug/pprof/threads is another", text)
    text = top(f"unix:{path}:/debug/pprof/none")
    ok("server response: 404" in text, "one that is not there", text)
    text = top(f"unix:{folder}/nobody")
    ok(f"dial unix {folder}/nobody: connect: no such file or directory" in text, "a socket that is not there", text)


def test_addresses(folder, s):
    result = s.tell("serve :0", answers=True)
    port = s.wait_for(r"(?s).*serving on [^\n]*:(\d+)")
    ok(result == "0" and s.get("/debug/pprof/cmdline", port=port)[0] == 200, "kiln_serve listens on one more")
    ok(s.tell("serve nonsense", answers=True) == "-22", "kiln_serve tells that an address is none")
    path = f"{folder}/socket.{s.process.pid}"
    ok(s.tell(f"serve unix:{folder}/socket.%p", answers=True) == "0", "kiln_serve on a unix socket")
    c = socket.socket(socket.AF_UNIX)
    c.settimeout(10)
    c.connect(path)
    c.sendall(request("/debug/pprof/cmdline"))
    ok(b"200 OK" in read_all(c), "which answers")
    c.close()
    ok(os.stat(path).st_mode & 0o777 == 0o600, "and is the user's alone", oct(os.stat(path).st_mode))
    test_kiln_reads(folder, path)
    with open(f"{folder}/other.sock", "w") as f:
        f.write("not a socket")
    result = s.tell(f"serve unix:{folder}/other.sock", answers=True)
    ok(result == "-98" and os.path.exists(f"{folder}/other.sock"), "a file of that name is left alone", result)


def test_busy(folder, s):
    os.makedirs(folder + "/second")
    os.link(folder + "/served", folder + "/second/served")
    with Served(folder + "/second", f":{s.port}") as other:
        ok(s.port < other.port <= s.port + 10, "if the port is taken it is the next", other.port)
        ok(other.get("/debug/pprof/cmdline")[0] == 200, "which answers")


def test_few(folder):
    """No descriptor is left for those who come: they wait, and so does the agent."""
    with Served(folder, args=["few"]) as s:
        ok(s.get("/debug/pprof/cmdline")[0] == 200, "16 open files are enough")
        s.tell("open")
        c = connect(s, request("/debug/pprof/cmdline"))
        busy = cpu_of(s.process.pid)
        time.sleep(1)
        busy = cpu_of(s.process.pid) - busy
        ok(busy < 0.3, "none are: it does not try all the time", busy)
        s.tell("close")
        c.settimeout(5)
        answer = read_all(c)
        c.close()
        time.sleep(1.5)
        ok(b"200 OK" in answer or s.get("/debug/pprof/cmdline")[0] == 200, "then they are answered", answer)


def cpu_of(pid):
    """Seconds of CPU time of the agent's threads."""
    ticks = 0
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/stat") as f:
            text = f.read()
        if "(kiln)" in text:
            ticks += sum(int(n) for n in text.rsplit(")", 1)[1].split()[11:13])
    return ticks / os.sysconf("SC_CLK_TCK")


def test_daemon(folder):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    env = dict(os.environ, LD_PRELOAD=AGENT, KILN_PPROF_ADDR=f":{port}")
    p = subprocess.Popen([folder + "/served", "daemon"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                         stderr=subprocess.DEVNULL, env=env, cwd=folder)
    p.wait(10)
    time.sleep(1)
    answer = b""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=10) as c:
            c.sendall(request("/debug/pprof/goroutine?debug=2"))
            answer = read_all(c)
    except OSError as e:
        answer = str(e).encode()
    p.stdin.close()
    ok(b"compute" in answer, "a daemon is served on the port that its parent had", answer[:300])


def main():
    with Folder() as folder:
        s = Served(folder)
        test_keep_alive(s)
        test_parallel(s)
        test_full(s)
        test_slow_reader(s)
        test_defaults(s)
        test_leaving(s)
        test_bodies(s)
        test_garbage(s)
        test_addresses(folder, s)
        test_busy(folder, s)
        left = [f for f in os.listdir(folder) if f.startswith("socket.")]
        test_sockets(s)
        ok(len(left) == 1, "the unix socket is there", left)
        s.__exit__()
        left = [f for f in os.listdir(folder) if f.startswith("socket.")]
        ok(not left, "and is gone after the end", left)
        test_few(folder)
        test_daemon(folder)
    done()


main()
