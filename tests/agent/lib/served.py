"""A program under the agent that serves its profiles, and what tests do with it."""
import os, re, shutil, socket, subprocess, sys, tempfile

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
AGENT = os.environ["AGENT"]
KILN = os.environ["KILN"]
count = 0


def ok(passed, name, *notes):
    """Prints one line of TAP."""
    global count
    count += 1
    print(f"{'ok' if passed else 'not ok'} {count} - {name}", flush=True)
    if not passed:
        for note in notes:
            for line in str(note).splitlines():
                print("# " + line[:300])
    return passed


def done():
    print(f"1..{count}")


class Folder:
    def __enter__(self):
        self.path = tempfile.mkdtemp()
        subprocess.run([os.environ.get("CC", "gcc"), "-g", "-O2", "-pthread", "-I" + HERE + "/../../include", "-o",
                        self.path + "/served", HERE + "/served.c", AGENT], check=True)
        return self.path

    def __exit__(self, *_):
        shutil.rmtree(self.path)


class Served:
    """Starts it on a free port, or on `address`; .port and .said are what it told."""

    def __init__(self, folder, address="127.0.0.1:0", args=(), **settings):
        env = dict(os.environ, LD_PRELOAD=AGENT, **settings)
        if address:
            env["KILN_PPROF_ADDR"] = address
        self.said_path = folder + "/said"
        with open(self.said_path, "w") as said:
            self.process = subprocess.Popen([folder + "/served", *args], env=env, stdin=subprocess.PIPE, cwd=folder,
                                            stdout=subprocess.PIPE, stderr=said, text=True)
        self.port = None
        if address and not address.startswith("unix:"):
            self.port = self.wait_for(r"serving on .*:(\d+)")

    def said(self):
        with open(self.said_path) as f:
            return f.read()

    def wait_for(self, pattern, seconds=10):
        import time
        end = time.time() + seconds
        while time.time() < end:
            found = re.search(pattern, self.said())
            if found:
                return int(found.group(1))
            time.sleep(0.02)
        raise SystemExit(f"Bail out! it said: {self.said()!r}")

    def tell(self, line, answers=False):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip() if answers else None

    def raw(self, data, timeout=10, port=None):
        """All that comes back until the other side hangs up; what is still open ends in <open>."""
        with socket.create_connection(("127.0.0.1", port or self.port), timeout=timeout) as s:
            try:
                s.sendall(data)
            except OSError:
                pass
            return read_all(s)

    def get(self, path, timeout=40, method="GET", body=None, port=None):
        """Status, headers, body."""
        head = f"{method} {path} HTTP/1.0\r\nContent-Length: {len(body or b'')}\r\n\r\n".encode()
        answer = self.raw(head + (body or b""), timeout, port)
        first, _, rest = answer.partition(b"\r\n\r\n")
        lines = first.decode().split("\r\n")
        status = int(lines[0].split()[1]) if len(lines[0].split()) > 1 else 0
        return status, dict(l.split(": ", 1) for l in lines[1:]), rest

    def url(self, path):
        return f"http://127.0.0.1:{self.port}{path}"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        """It must end by itself, unharmed."""
        self.process.stdin.close()
        self.status = self.process.wait(10)
        self.process.stdout.close()
        ok(self.status == 0, "the program ended as it would have", self.status, self.said())


def read_all(s):
    data = b""
    try:
        while True:
            some = s.recv(1 << 16)
            if not some:
                return data
            data += some
    except socket.timeout:
        return data + b"<open>"
    except OSError as e:
        return data + f"<{e}>".encode()
