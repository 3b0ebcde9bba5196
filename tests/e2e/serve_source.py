"""Sources and instructions in the pages of kiln serve: of a program that was uploaded, below directories that may be read.

What is shown is held against kiln -http of who has both. Prints TAP. Needs KILN in the environment.
"""
import gzip
import http.client
import json
import os
import random
import re
import subprocess
import urllib.parse

from serve_lib import KILN, TMP, Server, check, cli, done, equal, field
from serve_native import addresses, build_id, content, native, path, run, settle, upload

SOURCE = r"""#include <stdio.h>
static inline __attribute__((always_inline)) unsigned mix(unsigned x)
{
	return x * 2654435761u ^ x >> 13;
}
__attribute__((noinline)) unsigned work(unsigned s)
{
	for (int i = 0; i < 100000; i++)
		s += mix(s + i);
	return s;
}
int main(int argc, char **argv)
{
	printf("%u\n", work(argc));
}
"""
SECRET = "nobody may see this"
TIMES = "&from=2001-01-01T00:00:00Z&to=2100-01-01T00:00:00Z"
os.environ.pop("DEBUGINFOD_URLS", None)


def write(name, text):
    os.makedirs(os.path.dirname(path(name)), exist_ok=True)
    with open(path(name), "w") as f:
        f.write(text)


def build():
    write("made/src/work.c", SOURCE)
    write("tree/src/work.c", SOURCE.replace("argc", "of_the_tree"))
    run("gcc", "-g", "-O1", "-Wl,--build-id=sha1", "-o", path("work"), path("made/src/work.c"))
    run("gcc", "-g", "-O2", "-Wl,--build-id=sha1", "-o", path("other"), path("made/src/work.c"))
    run("objcopy", "--only-keep-debug", "work", "work.debug", cwd=TMP)
    write("secret/passwords", SECRET)
    for name, to in (("tree/out", "../secret/passwords"), ("tree/far", path("secret")), ("tree/src/in.c", "work.c")):
        os.symlink(to, path(name))
    os.mkfifo(path("tree/fifo"))


def profile(**kw):
    return native(which=addresses("work", "^(work|main)$"), **{"file": "/srv/work", "binary": "work", **kw})


def serve(*args, files=("work",), **kw):
    server = Server(*args)
    server.push(profile(**kw), service="work", type="cpu")
    if files:
        upload(server, *files)
    settle(server, "work")
    return server


def ask(server, service="work", **params):
    query = urllib.parse.urlencode({"a": "service=%s&type=cpu%s" % (service, TIMES), **params})
    status, _, body = server.ask("/ui/api/v1/source?" + query)
    return status, json.loads(body)


def listing(server, f="^work$", **kw):
    status, answer = ask(server, f=f, **kw)
    equal(status, 200)
    return answer["functions"]


def texts(functions):
    return [line["text"] for f in functions for line in f["lines"] if line["text"]]


def instructions(functions):
    return [i["text"] for f in functions for line in f["lines"] for i in line["asm"]]


def of_web(f):
    """The same of who has the program and its sources."""
    with open(path("p.pb.gz"), "wb") as out:
        out.write(profile(file=path("work")))
    web = subprocess.Popen([KILN, "-no_browser", "-http=localhost:", "p.pb.gz"], stderr=subprocess.PIPE, text=True, cwd=TMP)
    try:
        port = next(int(m[1]) for m in (re.search(r"http://localhost:(\d+)$", line) for line in web.stderr) if m)
        c = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        c.request("GET", "/ui/api/v1/source?f=" + urllib.parse.quote(f), headers={"Host": "localhost:%d" % port})
        return json.loads(c.getresponse().read())["functions"]
    finally:
        web.kill()
        web.wait()


# ---- checks

def same():
    server = serve("--source-path", path("made"))
    for f in ("^work$", "^mix$", "."):
        got, want = listing(server, f), of_web(f)
        assert instructions(got) and texts(got), got
        for functions in (got, want):
            for x in functions:
                x["function"] = x["function"][1]
                x.pop("binary")
        equal(got, want)
    intel = instructions(listing(server, intel="1"))
    assert intel != instructions(listing(server)) and not any("%" in i for i in intel), intel
    equal(server.ask("/ui/source?a=service%3Dwork" + urllib.parse.quote(TIMES))[0], 200)
    equal(server.stop(), 0)


def without_sources():
    """Lines have numbers, weights and instructions then."""
    server = serve()
    found, = listing(server)
    equal((found["path_found"], found["tried"], texts([found])), (False, ["no directories are given to look in"], []))
    assert sum(line["flat"] for line in found["lines"]) == found["flat"] > 0, found
    assert instructions([found]) and all(line["n"] for line in found["lines"]), found
    # A page may not say where to look.
    equal(texts(listing(server, source_path=path("made") + ":/", trim_path="/")), [])
    equal(server.stop(), 0)


def places():
    own = "main(int argc"
    for where, want in (("made", own), ("tree", None), ("made=tree", "main(int of_the_tree"), ("nowhere", None),
                        ("elsewhere=tree", None), ("", own), ("tree:made", own)):
        where = ":".join("=".join(path(part) for part in place.split("=")) for place in where.split(":"))
        server = serve("--source-path", where)
        got = "\n".join(texts(listing(server, "main")))
        assert want in got if want else not got, (where, got)
        equal(server.stop(), 0)
    # What is there later is shown then: nothing is kept.
    server = serve("--source-path", path("made") + "=" + path("late"))
    equal(texts(listing(server)), [])
    write("late/src/work.c", SOURCE)
    assert texts(listing(server)), "it is there now"
    equal(server.stop(), 0)
    for bad in ("made", path("made") + ":", "=" + path("made"), "x=y"):
        assert "--source-path" in cli("serve", "--data", path("none"), "--source-path", bad, ok=False), bad


def named(files):
    """A profile of functions f0, f1, ..., each in one of the files."""
    strings = ["", "cpu", "nanoseconds", *files, *("f%d" % i for i in range(len(files)))]
    out = field(1, field(1, 1) + field(2, 2))
    for i in range(len(files)):
        out += field(2, field(1, i + 1) + field(2, 10))
        out += field(4, field(1, i + 1) + field(3, 4096 + i) + field(4, field(1, i + 1) + field(2, 1)))
        out += field(5, field(1, i + 1) + field(2, 3 + len(files) + i) + field(4, 3 + i))
    return out + b"".join(field(6, s.encode()) for s in strings)


def outside():
    """Whoever pushes says how files are called."""
    tree, secret = path("tree"), path("secret/passwords")
    files = [secret, "../secret/passwords", "src/../../secret/passwords", tree + "/../secret/passwords", "/" + secret,
             tree + "//" + secret, "out", tree + "/out", "far/passwords", "/build/tree/out", "/build/tree/../secret/passwords",
             "/etc/passwd", "etc/passwd", "/proc/self/environ", "/proc/self/cwd/../secret/passwords", "/dev/zero", "fifo",
             ".", "..", "/", "", "src", "x" * 5000, "src/work.c/../../../secret/passwords", "\n", "src/work.c\0", "%2e%2e/secret/passwords"]
    server = Server("--source-path", "%s:/mapped=%s" % (tree, tree))
    server.push(named(files + ["/mapped/../secret/passwords"]), service="work", type="cpu")
    server.push(named(["src/in.c"]), service="good", type="cpu")
    status, answer = ask(server, f=".")
    equal((status, texts(answer["functions"])), (200, []))
    assert len(answer["functions"]) > 20, answer
    assert SECRET not in json.dumps(answer) and "root:" not in json.dumps(answer), answer
    assert "of_the_tree" not in json.dumps(answer), answer
    assert texts(listing(server, ".", service="good")), "a link within the tree"
    equal(server.stop(), 0)


def without_code():
    """Of binaries that are not there, are of another build, or have no code: the profile has names of its own."""
    server = serve(file=path("other"))
    query = urllib.parse.urlencode({"service": "work", "type": "cpu"})
    body = gzip.decompress(server.ask("/api/1/merge?" + query)[2])
    equal(server.stop(), 0)
    for args, files, id_, why in (((), (), "", ""), ((), ("work.debug",), "", ""), ((), ("work",), "ab" * 20, ""),
                                  (("--symbolize-local",), (), "", "another build")):
        server = Server(*args)
        server.push(body.replace(build_id("work").encode(), id_.encode() or build_id("work").encode()), service="work", type="cpu")
        upload(server, *files) if files else None
        status, answer = ask(server, f=".")
        equal((status, instructions(answer["functions"])), (200, []))
        assert {"work", "main"} <= {f["function"][1] for f in answer["functions"]}, answer
        assert why in "".join(answer["warnings"]) if why else not answer["warnings"], answer
        equal(server.stop(), 0)


def local():
    server = serve("--symbolize-local", files=(), file=path("work"))
    equal(instructions(listing(server)), instructions(of_web("^work$")))
    equal(server.stop(), 0)


def small():
    server = serve("--max-memory", "64MB", "--source-path", path("made"))
    found = listing(server)
    assert instructions(found) and texts(found), found
    equal(server.stop(), 0)


def hostile():
    """Programs that lie cost instructions, at most."""
    server = serve("--source-path", path("made"), files=())
    full, chance = content("work"), random.Random(3)
    for i in range(12):
        broken = bytearray(full)
        for _ in range(40 + 100 * i):
            broken[chance.randrange(0x1000, len(full))] = chance.randrange(256)
        server.ask("/api/1/debuginfo/" + build_id("work"), "DELETE")
        server.ask("/api/1/debuginfo/%s?name=work" % build_id("work"), "POST", bytes(broken))
        settle(server, "work")
        assert ask(server, f=".")[0] in (200, 404), "404: not even names are left"
    server.ask("/api/1/debuginfo/" + build_id("work"), "DELETE")
    upload(server, "work")
    settle(server, "work")
    assert instructions(listing(server)), "it is whole again"
    equal(server.stop(), 0)


def roles():
    write("tokens", "read,write aaaaaaaaaaaaaaaa1 ann\nwrite aaaaaaaaaaaaaaaa2 agents\n")
    server = Server("--tokens", path("tokens"), "--source-path", path("made"))
    for token, status in (("1", 400), ("2", 403)):
        equal(server.ask("/ui/api/v1/source?f=x", headers={"Authorization": "Bearer aaaaaaaaaaaaaaaa" + token})[0], status)
    equal(server.ask("/ui/api/v1/source?f=x")[0], 401)
    equal(server.stop(), 0)


build()
check("lines and instructions are those of kiln -http", same)
check("without directories there are lines without text", without_sources)
check("directories, and names that are mapped to them", places)
check("nothing outside of the directories is read", outside)
check("without code there are lines", without_code)
check("files of this machine, if they may be used", local)
check("with little memory", small)
check("hostile programs cost instructions at most", hostile)
check("roles", roles)
done()
