import json
import os
import re
import signal
import socket
import subprocess
import time

from serve_lib import KILN, TMP, Server, check, cli, done, equal, names, profile, raw

PROFILE = profile({"work;main": (1, 10)}, time=1559250605 * 1000000000)
POST = b"POST /api/0/profiles?service=s&type=cpu HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(PROFILE)


def file(text):
    path = "%s/config%d.yaml" % (TMP, next(names))
    with open(path, "w") as f:
        f.write(text)
    return path


def refused(*args, env=None, status=2):
    """What it says when it does not start."""
    ran = subprocess.run([KILN, "serve", *args], capture_output=True, text=True, env={**os.environ, **(env or {})}, timeout=60)
    equal((ran.returncode, ran.stdout), (status, ""))
    equal(ran.stderr.count("\n"), 1)
    return ran.stderr


def is_open(port, host="127.0.0.1"):
    try:
        socket.create_connection((host, port), 5).close()
        return True
    except OSError:
        return False


# ---- options

def help_text():
    text = cli("serve", "--help")
    for option in "--data DIR", "--listen ADDRESS", "--config FILE", "--exit-timeout TIME", "--max-memory SIZE":
        assert "\n  " + option in text, option
    assert "(default: localhost:10100)" in text, text
    equal(text, cli("serve", "-h"))
    flags = cli("serve", "--complete").split()
    assert "--data" in flags and all("\n  %s " % f in text for f in flags), flags
    assert "*--data* _DIR_" in cli("serve", "--scdoc")


def wrong_options():
    data = ["--data", TMP + "/x"]
    assert refused().startswith("kiln serve: no folder for the store is given: --data DIR")
    assert "there is no option --lisen" in refused(*data, "--lisen", ":1")
    assert "--listen needs a value" in refused(*data, "--listen")
    assert "--max-memory lots: not a size such as 64MB or 2GB" in refused(*data, "--max-memory", "lots")
    assert "--exit-timeout x: not a time such as" in refused(*data, "--exit-timeout", "x")
    assert 'what is "more"?' in refused(*data, "more")
    assert "--max-series must not be below 0" in refused(*data, "--max-series", "-1")
    assert "KILN_SERVE_DATAA" in refused(*data, env={"KILN_SERVE_DATAA": "x"})
    assert "--listen nowhere" in refused(*data, "--listen", "nowhere", status=1)
    assert not os.path.exists(TMP + "/x"), "made a folder"


def wrong_files():
    path = file("listen: :0\nmax-memroy: 1GB\n")
    equal(refused("--config", path), 'kiln serve: %s: line 2: there is no option "max-memroy"; kiln serve --help lists them; '
          "see kiln serve --help\n" % path)
    path = file("data: [\n")
    assert path + ": line " in refused("--config", path)
    assert "open /nowhere: no such file or directory" in refused("--config", "/nowhere")


def precedence():
    a, b, c = (TMP + "/" + x for x in "abc")
    path = file("data: %s\nlisten: localhost:0\naccess-log: false\n" % a)
    for args, env, want in (([], {}, a), ([], {"KILN_SERVE_DATA": b}, b), (["--data", c], {"KILN_SERVE_DATA": b}, c)):
        s = Server("--config", path, *args, data="", listen="", env=env)
        equal(s.stop(), 0)
        assert "data in %s\"" % want in s.log() and os.path.isdir(want), s.log()
    s = Server(data="", listen="", env={"KILN_SERVE_CONFIG": path})
    assert "data in " + a in s.log(), s.log()
    s.stop()


def profefes_flags():
    s = Server("-addr", "localhost:0", "-badger.dir", TMP + "/badger", "-exit-timeout=1s", "-badger.data-ttl", "120h", data="", listen="")
    equal(s.get("/api/0/version")[0], 200)
    equal(s.stop(), 0)


# ---- where it listens

def addresses():
    s = Server(listen="127.0.0.1:0")
    refusal = refused("--data", TMP + "/other", "--listen", "127.0.0.1:%d" % s.port, status=1)
    equal(refusal, "kiln serve: listen tcp 127.0.0.1:%d: bind: address already in use\n" % s.port)
    assert is_open(s.port) and not is_open(s.port, "127.0.0.2")
    s.stop()
    s = Server("--insecure", listen=":0") if "--insecure" in cli("serve", "--complete") else Server(listen=":0")
    assert is_open(s.port) and is_open(s.port, "127.0.0.2")
    if socket.has_ipv6 and os.path.exists("/proc/net/if_inet6"):
        assert is_open(s.port, "::1")
    s.stop()


# ---- its folder

def one_server_a_folder():
    s = Server()
    meta = s.push(PROFILE, service="s", type="cpu")
    refusal = refused("--data", s.data, "--listen", "localhost:0", status=1)
    assert s.data in refusal, refusal
    equal(s.stop(), 0)
    s = Server(data=s.data)
    equal(raw(s.ask("/api/0/profiles/" + meta["id"])[2]), raw(PROFILE))
    s.process.kill()
    s.wait()
    s = Server(data=s.data)
    equal(s.ask("/api/0/profiles/" + meta["id"])[0], 200)
    equal(s.stop(), 0)


def bad_folder():
    path = file("")
    assert path in refused("--data", path + "/x", "--listen", "localhost:0", status=1)


# ---- the end

def half_a_request(s):
    c = socket.create_connection(("127.0.0.1", s.port), 60)
    c.sendall(POST + PROFILE[:10])
    while s.get("/debug/vars")[1]["kiln"]["connections"] < 2:
        time.sleep(0.01)
    time.sleep(0.1)
    return c


def stops_listening(s):
    for _ in range(500):
        if not is_open(s.port):
            return
        time.sleep(0.01)
    raise AssertionError("it still listens")


def running_requests_end():
    s = Server("--exit-timeout", "60s")
    c = half_a_request(s)
    idle = socket.create_connection(("127.0.0.1", s.port), 60)
    s.process.send_signal(signal.SIGTERM)
    stops_listening(s)
    c.sendall(PROFILE[10:])
    answer = c.makefile("rb").read()
    assert answer.startswith(b"HTTP/1.1 200 OK\r\n") and b"\r\nConnection: close\r\n" in answer, answer
    equal(s.wait(), 0)
    idle.close()
    s = Server(data=s.data)
    equal(len(s.get("/api/0/profiles", service="s", **{"from": "2019-01-01T00:00:00", "to": "2020-01-01T00:00:00"})[1]["body"]), 1)
    s.stop()


def others_do_not_hold_it_up():
    s = Server("--exit-timeout", "100ms")
    c = half_a_request(s)
    equal(s.stop(), 0)
    equal(c.makefile("rb").read()[:12] in (b"", b"HTTP/1.1 503"), True)


def signals():
    for how in signal.SIGINT, signal.SIGTERM:
        s = Server()
        equal(s.stop(how), 0)
        assert "stops on" in s.log()


def tells_systemd():
    for name in TMP + "/notify", "\0kiln-test-%d" % os.getpid():
        hears = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        hears.settimeout(60)
        hears.bind(name)
        s = Server(env={"NOTIFY_SOCKET": name.replace("\0", "@")})
        equal(hears.recv(1000), b"READY=1\nSTATUS=Listening at localhost:%d" % s.port)
        s.process.send_signal(signal.SIGTERM)
        equal(hears.recv(1000), b"STOPPING=1")
        equal(s.wait(), 0)
        hears.close()
    s = Server(env={"NOTIFY_SOCKET": "/nowhere/notify"})
    equal(s.stop(), 0)


# ---- what it says

def access_log():
    s = Server()
    s.ask("/api/0/version")
    s.ask("/api/0/x%0a%22?a=b%00c")
    s.ask("/api/0/profiles", "DELETE")
    s.stop()
    lines = [x for x in s.lines if " method=" in x]
    equal(len(lines), 3)
    lines.sort(key=lambda x: ["uri=/api/0/version", "uri=/api/0/x", "uri=/api/0/profiles"].index(x.split("%")[0].split()[2]))
    stamp = r"ts=\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z "
    assert re.match(stamp + r"method=GET uri=/api/0/version code=200 .*rtime=\d+\.\d+", lines[0]), lines[0]
    assert "method=GET uri=/api/0/x%0a%22?a=b%00c code=404 " in lines[1], lines[1]
    assert "method=DELETE uri=/api/0/profiles code=405 " in lines[2], lines[2]
    s = Server("--access-log=false")
    s.ask("/api/0/version")
    s.stop()
    assert "method=" not in s.log(), s.log()


def variables():
    s = Server()
    s.push(PROFILE, service="s", type="cpu")
    status, got = s.get("/debug/vars")
    equal((status, got["cmdline"][1], type(got["memstats"]["Sys"])), (200, "serve", int))
    equal((got["kiln"]["profiles"], got["kiln"]["services"], got["kiln"]["puts"]), (1, 1, 1))
    s.stop()


def own_profiles():
    s = Server()
    has_agent = os.path.exists(os.path.join(os.path.dirname(KILN), "libkiln.so"))
    status, headers, body = s.ask("/debug/pprof/heap")
    if not has_agent:
        equal(status, 501)
        assert b"libkiln.so" in body
        s.stop()
        return
    equal(status, 200)
    assert "inuse_space" in raw(body)
    assert b"<html>" in s.ask("/debug/pprof/")[2] and b"heap" in s.ask("/debug/pprof")[2]
    assert "cpu/nanoseconds" in raw(s.ask("/debug/pprof/profile?seconds=1")[2])
    equal(s.ask("/debug/pprof/cmdline")[2].split(b"\0")[1], b"serve")
    assert s.ask("/debug/pprof/symbol", "POST", b"0x1")[2].startswith(b"num_symbols: 1\n")
    status, headers, body = s.ask("/debug/pprof/nosuch")
    equal((status, headers.get("x-go-pprof")), (404, "1"))
    s.stop()
    s = Server("--self-profile=false")
    equal(s.ask("/debug/pprof/heap")[0], 501)
    s.stop()


for name, run in (
        ("--help, completion and the manual have the options", help_text), ("options that make no sense are refused", wrong_options),
        ("so are files, with the line", wrong_files), ("flags go before the environment, that before the file", precedence),
        ("profefe's flags are understood", profefes_flags), ("it listens where it is told to", addresses),
        ("a folder has one server, and is kept", one_server_a_folder), ("a folder that cannot be is named", bad_folder),
        ("SIGTERM lets running requests end", running_requests_end), ("but not for ever", others_do_not_hold_it_up),
        ("signals end it", signals), ("systemd is told", tells_systemd), ("there is a line for each request", access_log),
        ("/debug/vars", variables), ("/debug/pprof/ has its own profiles", own_profiles)):
    check(name, run)
done()
