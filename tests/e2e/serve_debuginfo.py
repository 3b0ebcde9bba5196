"""Names that come later: a program is stripped, its profiles have addresses, and debug info is uploaded.

What the server names is held against what the command line says who has the program. Prints TAP. Needs KILN in
the environment.
"""
import gzip
import json
import os
import random
import re
import shlex
import shutil
import struct
import subprocess
import time
import urllib.parse

from serve_lib import KILN, TMP, Server, check, cli, done, equal, raw
from serve_native import addresses, build_id, code_segment, content, native, path, run, settle, upload

HERE = os.path.dirname(os.path.abspath(__file__))
AGENT = next((p for p in (os.path.join(os.path.dirname(KILN), "libkiln.so"), os.path.join(HERE, "../../build/libkiln.so"))
              if os.path.exists(p)), None)
os.environ.pop("DEBUGINFOD_URLS", None)
SOURCE = r"""
#include <cstdio>
#include <ctime>
static inline __attribute__((always_inline)) unsigned mix(unsigned x)
{
	return x * 2654435761u ^ x >> 13;
}
namespace shop {
__attribute__((noinline)) unsigned price(unsigned s)
{
	for (int i = 0; i < 100000; i++)
		s += mix(s + i);
	return s;
}
}
int main(int argc, char **argv)
{
	unsigned s = argc;
	for (clock_t end = clock() + CLOCKS_PER_SEC / 3; clock() < end;)
		s += shop::price(s);
	printf("%u\n", s);
}
"""
ROLES = {"reader": "read", "writer": "write", "boss": "admin,read,write"}
SECRETS = {name: name + "-0123456789abcdef0123" for name in ROLES}


def build():
    """shop.full has everything, shop nothing, shop.debug what was stripped, shop.symtab names only."""
    with open(TMP + "/shop.cc", "w") as f:
        f.write(SOURCE)
    run("g++", "-g", "-O2", "-Wl,--build-id=sha1", "-o", "shop.full", "shop.cc", cwd=TMP)
    run("strip", "-o", "shop", "shop.full", cwd=TMP)
    run("strip", "-g", "-o", "shop.symtab", "shop.full", cwd=TMP)
    run("objcopy", "--only-keep-debug", "shop.full", "shop.debug", cwd=TMP)
    with open(TMP + "/bare.c", "w") as f:
        f.write("void _start(void) { for (;;) ; }\n")
    run("gcc", "-nostdlib", "-static", "-s", "-Wl,--build-id=sha1", "-o", "bare", "bare.c", cwd=TMP)


def merged(server, **params):
    settle(server, params.get("service", "shop"))
    query = urllib.parse.urlencode({"service": "shop", "type": "cpu", **params})
    status, _, body = server.ask("/api/1/merge?" + query)
    assert status == 200, body
    return body


def table(profile, *args, env=None):
    """Rows of -top, with lines."""
    name = "%s/p%d" % (TMP, random.randrange(10 ** 9))
    with open(name, "wb") as f:
        f.write(profile)
    text = subprocess.run([KILN, "-top", "-lines", "-nodefraction=0", "-nodecount=0", *args, name], check=True,
                          capture_output=True, text=True, env=env).stdout
    return [line for line in text.splitlines() if re.match(r" *[0-9.]+m?s|  +0 ", line)]


def local(profile, binary):
    """The same of who has the program; without tools in the PATH kiln reads all that there is."""
    folder = "%s/bin-%s" % (TMP, os.path.basename(binary))
    os.makedirs(folder, exist_ok=True)
    if not os.path.exists(folder + "/shop"):
        os.symlink(path(binary), folder + "/shop")
    return table(profile, env={"PATH": "/nowhere", "PPROF_BINARY_PATH": folder, "HOME": TMP})


def has_names(server):
    return b"shop::price" in merged(server, format="text")


def post(server, body, id_=None, **kw):
    status, _, answer = server.ask("/api/1/debuginfo/" + (id_ or build_id("shop.full")) + "?name=shop", "POST", body, **kw)
    return status, json.loads(answer)


def push(server, **kw):
    got = server.push(native(**kw), service="shop", type="cpu")
    assert isinstance(got, dict), got
    return got["id"]


# ---- checks

def without():
    push(main)
    text = merged(main, format="text").decode()
    assert "[shop]" in text and "price" not in text, text
    status, why = main.get("/api/1/unnamed", service="shop", type="cpu")
    equal(status, 200)
    equal(why["unnamed_share"], 1)
    found, = why["binaries"]
    equal((found["file"], found["build_id"], found["state"]), ("/srv/shop", build_id("shop.full"), "missing"))
    equal((found["addresses"], found["unnamed"]), (len(addresses()),) * 2)
    equal(found["fix"], "kiln debuginfo upload --to http://127.0.0.1:%d /srv/shop" % main.port)
    assert "none of this build id" in found["looked"][0]["result"], found
    assert "--symbolize-local" in found["looked"][1]["result"], found
    assert "DEBUGINFOD_URLS" in found["looked"][2]["result"], found


def wrong():
    full = content("shop.full")
    for body, id_, status, text in (
            (full, "0" * 40, 400, "build id is %s, not 0000" % build_id("shop.full")),
            (full, "xyz", 400, "is no build id"),
            (full, "../../etc", 404, ""),
            (b"", None, 400, "there is none"),
            (b"hello", None, 400, "no ELF file"),
            (full[:3000], None, 400, "no whole ELF"),
            (full[:40], None, 400, "no whole ELF"),
            (gzip.compress(full)[:-20], None, 400, "cut off"),
            (gzip.compress(full)[:100] + b"x" * 100, None, 400, "gzip"),
            (b"\x28\xb5\x2f\xfd" + b"x" * 50, None, 400, "zstd"),
            (b"\x28\xb5\x2f\xfd", None, 400, "zstd"),
            (b"MZ" + b"\0" * 100, None, 400, "no ELF"),
            (content("bare"), build_id("bare"), 400, "not stripped")):
        got, answer = post(main, body, id_)
        assert got == status and text in answer["error"], (got, answer, status, text)
    # Sections: 2^40 of them, if one believes it.
    shoff = struct.unpack_from("<Q", full, 40)[0]
    lie = bytearray(full)
    struct.pack_into("<H", lie, 60, 0)
    struct.pack_into("<Q", lie, shoff + 32, 1 << 40)
    equal(post(main, bytes(lie))[0], 400)
    equal(main.get("/api/1/debuginfo")[1], {"total": 0, "files": []})
    equal(os.listdir(main.data + "/debuginfo"), [])
    equal(main.ask("/api/1/debuginfo/" + build_id("shop.full"))[0], 404)


def large():
    """What is too large, as it is sent or unpacked."""
    server = Server("--max-debuginfo", "100KB")
    bomb = gzip.compress(b"\x7fELF" + bytes(50 << 20))
    assert len(bomb) < 100 << 10
    status, answer = post(server, bomb)
    equal((status, answer["error"][:14]), (413, "max-debuginfo:"))
    status, answer = post(server, bytes(200 << 10))
    equal((status, answer["error"][:14]), (413, "max-debuginfo:"))
    equal(os.listdir(server.data + "/debuginfo"), [])
    equal(server.stop(), 0)
    server = Server("--max-disk", "16MB")
    status, answer = post(server, content("shop.full") + bytes(5 << 20))
    equal((status, answer["error"][:9]), (507, "max-disk:"))
    equal(post(server, content("shop.full") + bytes(3 << 20))[0], 200)
    assert len(os.listdir(server.data + "/debuginfo")) == 1
    equal(server.stop(), 0)


def uploaded():
    out = upload(main, "shop.full")
    assert "shop.full: stored" in out and "1 sent, 0 already there" in out, out
    out = upload(main, "shop.full", "shop.symtab")
    assert "0 sent, 2 already there" in out, out
    got = merged(main)
    equal(table(got), local(native(), "shop.full"))
    assert any("shop::price" in r and "shop.cc:" in r for r in table(got)), table(got)
    assert any("mix" in r and "(inline)" in r for r in table(got)), table(got)
    equal(main.get("/api/1/unnamed", service="shop", type="cpu")[1],
          {"unnamed_share": 0, "total": 0, "binaries": []})


def fleet():
    rows = main.get("/api/1/top", service="shop", type="cpu")[1]["rows"]
    names = {r["function"] for r in rows}
    assert {"mix", "shop::price", "main"} <= names and "[shop]" not in names, rows
    assert all(r["file"].endswith("shop.cc") for r in rows if r["function"] in ("mix", "shop::price")), rows
    top = {r["function"]: r for r in rows}
    for flat in (0, 1):
        line, = main.get("/api/1/series", service="shop", type="cpu", function="shop::price", flat=flat)[1]["lines"]
        equal(line["points"][0][1], top["shop::price"]["flat" if flat else "cum"])
    line, = main.get("/api/1/series", service="shop", type="cpu", function="[shop]")[1]["lines"]
    equal(line["points"][0][1], 0)


def as_pushed():
    body = native(time_ns=10 ** 18)
    id_ = main.push(body, service="plain", type="cpu")["id"]
    for api in (0, 1):
        equal(raw(main.ask("/api/%d/profiles/%s" % (api, id_))[2]), raw(body))
    text = main.ask("/api/1/profiles/%s?format=text" % id_)[2].decode()
    assert "shop::price" in text, text


def other_addresses():
    """Those that come later have names, too."""
    id_ = main.push(native(which=addresses()[:1]), service="later", type="cpu")["id"]
    assert "[shop]" not in "".join(table(merged(main, service="later"))), table(merged(main, service="later"))
    two = main.push(native(which=[addresses()[0] + 1]), service="later", type="cpu")["id"]
    body = main.ask("/api/0/profiles/%s+%s" % (id_, two))[2]
    assert "[shop]" not in "".join(table(body)), table(body)


def many():
    """Of a large program, which is kiln."""
    binary = path(KILN)
    _, vaddr, size = code_segment(binary)
    body = native(binary=binary, which=sorted(random.Random(5).sample(range(vaddr, vaddr + size), 3000)))
    main.push(body, service="many", type="cpu")
    assert "[shop]" in "".join(table(merged(main, service="many")))
    upload(main, binary)
    rows = table(merged(main, service="many"))
    assert len(rows) > 1000, len(rows)
    equal(rows, local(body, binary))
    main.ask("/api/1/debuginfo/" + build_id(binary), "DELETE")


def restarted():
    global main
    listed = main.get("/api/1/debuginfo")[1]["files"]
    equal(main.stop(), 0)
    main = Server(data=main.data)
    equal(table(merged(main)), local(native(), "shop.full"))
    again = main.get("/api/1/debuginfo")[1]["files"]
    for files in (listed, again):
        files[0].pop("used")
    equal(again, listed)
    equal((again[0]["name"], again[0]["origin"], again[0]["bytes"]), ("shop.full", "upload", len(content("shop.full"))))
    equal(again[0]["has"], ["code", "symbols", "exports", "debug_info", "lines"])


def better():
    """Less is replaced by more, and not the other way round; whatever it is packed by."""
    server = Server()
    push(server)
    status, answer = post(server, content("shop.symtab"))
    equal((status, answer["result"]), (200, "stored"))
    rows = table(merged(server))
    assert any("shop::price" in r for r in rows) and not any("shop.cc" in r for r in rows), rows
    status, answer = post(server, gzip.compress(content("shop.full")))
    equal((status, answer["result"]), (200, "replaced"))
    equal(table(merged(server)), local(native(), "shop.full"))
    status, answer = post(server, content("shop.symtab"))
    equal((status, answer["result"]), (200, "already there"))
    equal(len(os.listdir(server.data + "/debuginfo")), 1)
    status, _, answer = server.ask("/api/1/debuginfo/" + build_id("shop.full"), "DELETE")
    equal((status, json.loads(answer)["result"]), (200, "deleted"))
    assert not has_names(server)
    equal(os.listdir(server.data + "/debuginfo"), [])
    equal(server.stop(), 0)


def debug_file():
    """A file that has only debug information does not say where its code was in the file."""
    server = Server()
    push(server)
    upload(server, "shop.debug")
    equal(table(merged(server)), local(native(), "shop.full"))
    id_ = build_id("shop.full")
    status, _, body = server.ask("/buildid/%s/debuginfo" % id_)
    equal((status, body == content("shop.debug")), (200, True))
    equal(server.ask("/buildid/%s/executable" % id_)[0], 404)
    equal(server.ask("/buildid/%s/source/etc/passwd" % id_)[0], 404)
    equal(server.ask("/buildid/%s/debuginfo" % ("0" * 40))[0], 404)
    equal(server.stop(), 0)


def debuginfod():
    """kiln as gdb would ask, and another server."""
    with open(path("p.pb.gz"), "wb") as f:
        f.write(native())
    got = subprocess.run([KILN, "-top", "-lines", "-nodefraction=0", path("shop"), path("p.pb.gz")], capture_output=True,
                         text=True, env={"PATH": "/nowhere", "HOME": TMP, "DEBUGINFOD_URLS": main.url,
                                         "DEBUGINFOD_CACHE_PATH": TMP + "/cache"}).stdout
    assert "shop::price" in got and "shop.cc:" in got, got
    got = subprocess.run(["gdb", "-nx", "-batch", "-iex", "set debuginfod enabled on", "-ex", "info line shop::price", path("shop")],
                         capture_output=True, text=True, env={**os.environ, "DEBUGINFOD_URLS": main.url,
                                                              "DEBUGINFOD_CACHE_PATH": TMP + "/cache2"}).stdout
    assert "of \"shop.cc\" starts at" in got, got
    other = Server(env={"DEBUGINFOD_URLS": main.url + "/ http://127.0.0.1:1"})
    push(other)
    until = time.time() + 20
    while not has_names(other) and time.time() < until:
        time.sleep(.05)
    equal(table(merged(other)), local(native(), "shop.full"))
    equal(other.get("/api/1/debuginfo")[1]["files"][0]["origin"], "debuginfod")
    # Of what nobody has: why.
    other.push(native(id_="12" * 20), service="nobody", type="cpu")
    other.get("/api/1/unnamed", service="nobody", type="cpu")
    while other.get("/api/1/unnamed", service="nobody", type="cpu")[1]["binaries"][0]["state"] == "pending":
        time.sleep(.05)
    found, = other.get("/api/1/unnamed", service="nobody", type="cpu")[1]["binaries"]
    equal(found["state"], "missing")
    assert "404 Not Found" in found["looked"][2]["result"] and "refused" in found["looked"][2]["result"], found
    equal(other.stop(), 0)
    deaf = Server("--debuginfod=false", env={"DEBUGINFOD_URLS": main.url})
    push(deaf)
    assert not has_names(deaf)
    equal(deaf.stop(), 0)


def local_files():
    server = Server("--symbolize-local")
    push(server, file=path("shop.full"))
    equal(table(merged(server)), local(native(), "shop.full"))
    # A file of another build is not it.
    server.push(native(file=path("shop.full"), id_="ab" * 20), service="other", type="cpu")
    assert b"price" not in merged(server, service="other", format="text")
    found, = server.get("/api/1/unnamed", service="other", type="cpu")[1]["binaries"]
    assert "of another build" in found["looked"][1]["result"], found
    equal(server.stop(), 0)


def hostile():
    """DWARF that lies costs names, at most."""
    server = Server()
    push(server)
    full = content("shop.full")
    sections = re.findall(r"(\.debug_\w+) +PROGBITS +\w+ (\w+) (\w+)", run("readelf", "-SW", path("shop.full")))
    assert len(sections) > 3, sections
    chance = random.Random(7)
    for _ in range(4):
        broken = bytearray(full)
        for _, offset, size in sections:
            for _ in range(60):
                broken[int(offset, 16) + chance.randrange(int(size, 16))] = chance.randrange(256)
        server.ask("/api/1/debuginfo/" + build_id("shop.full"), "DELETE")
        equal(post(server, bytes(broken))[0], 200)
        merged(server)
        equal(server.get("/api/1/unnamed", service="shop", type="cpu")[0], 200)
    # The places in mappings, too.
    for id_, file in (("", ""), ("zz" * 20, "/srv/shop"), ("00", "[vdso]"), ("ab" * 200, "x")):
        server.push(native(id_=id_, file=file), service="odd", type="cpu")
    equal(server.get("/api/1/unnamed", service="odd", type="cpu")[0], 200)
    equal(server.stop(), 0)


def upgraded():
    """The program that the server is may have been replaced, or be gone."""
    program = path("kiln-old")
    shutil.copy(KILN, program)
    server = Server(program=program)
    os.remove(program)
    push(server)
    upload(server, "shop.full")
    equal(table(merged(server)), local(native(), "shop.full"))
    equal(server.stop(), 0)


def advice():
    """People copy the command; who pushed wrote part of it."""
    server = Server()
    for number, file in enumerate(("/srv/a b", "/srv/$(touch x);'`", "-rf", "/srv/x\ny")):
        server.push(native(file=file, id_="%040x" % number), service="odd", type="cpu")
    found = {b["file"]: b for b in server.get("/api/1/unnamed", service="odd", type="cpu")[1]["binaries"]}
    equal(len(found), 4)
    for file, b in found.items():
        words = shlex.split(b["fix"])
        equal(words, ["kiln", "debuginfo", "upload", "--to", server.url, "./" * file.startswith("-") + file])
    # Where no upload helps, none is advised.
    server.push(native(file="[vdso]"), service="kernel", type="cpu")
    b, = server.get("/api/1/unnamed", service="kernel", type="cpu")[1]["binaries"]
    equal((b["state"], b["fix"]), ("no file", None))
    run("objcopy", "--strip-all", "--keep-section=.debug*", "shop.full", "shop.dwarf", cwd=TMP)
    server.push(native(which=[code_segment("shop.full")[1]]), service="shop", type="cpu")
    upload(server, "shop.dwarf")
    settle(server, "shop")
    b, = server.get("/api/1/unnamed", service="shop", type="cpu")[1]["binaries"]
    equal((b["state"], b["fix"]), ("not covered", None))
    equal(server.stop(), 0)


def roles():
    with open(path("tokens"), "w") as f:
        f.write("".join("%s %s %s\n" % (roles, SECRETS[name], name) for name, roles in ROLES.items()))
    server = Server("--tokens", path("tokens"))
    for name in ("reader", "writer"):
        with open(path(name), "w") as f:
            f.write(SECRETS[name] + "\n")
    full = content("shop.full")
    equal(post(server, full)[0], 401)
    equal(post(server, full, headers={"Authorization": "Bearer " + SECRETS["reader"]})[0], 403)
    said = upload(server, "shop.full", ok=False)
    assert "401" in said, said
    said = cli("debuginfo", "upload", "--to", server.url, "--token-file", path("reader"), path("shop.full"), ok=False)
    assert "403" in said and "role write" in said, said
    both = subprocess.run([KILN, "debuginfo", "upload", "--to", server.url, path("shop.full")], capture_output=True, text=True,
                          env={**os.environ, "KILN_TOKEN": SECRETS["boss"]})
    equal((both.returncode, "stored" in both.stdout), (0, True))
    target = "/api/1/debuginfo/" + build_id("shop.full")
    equal(server.ask(target, "DELETE", headers={"Authorization": "Bearer " + SECRETS["writer"]})[0], 403)
    equal(server.ask(target, headers={"Authorization": "Bearer " + SECRETS["reader"]})[0], 200)
    equal(server.ask("/buildid/%s/debuginfo" % build_id("shop.full"))[0], 401)
    equal(server.ask(target, "DELETE", headers={"Authorization": "Bearer " + SECRETS["boss"]})[0], 200)
    equal(server.stop(), 0)


def expiry():
    server = Server("--keep-debuginfo", "1s")
    push(server)
    upload(server, "shop.full")
    post(server, content("kiln-like"), build_id("kiln-like"))
    until = time.time() + 15
    while server.get("/api/1/debuginfo")[1]["total"] > 1 and time.time() < until:
        time.sleep(.1)
    files = server.get("/api/1/debuginfo")[1]["files"]
    equal([f["build_id"] for f in files], [build_id("shop.full")])
    equal(server.get("/api/1/stats")[1]["debuginfo"]["dropped"], 1)
    assert has_names(server)
    metrics = server.ask("/metrics")[2].decode()
    for line in ("kiln_debuginfo_files 1", "kiln_debuginfo_dropped_total 1", "kiln_names_named_addresses %d" % len(addresses())):
        assert "\n" + line + "\n" in metrics, (line, metrics)
    equal(server.stop(), 0)
    assert "no profile needs it any more" in server.log(), server.log()


def commands():
    folder = path("folder/sub")
    os.makedirs(folder)
    os.symlink(path("shop.full"), folder + "/link")
    for name in ("shop.full", "bare", "shop.cc"):
        with open(folder + "/" + name, "wb") as f:
            f.write(content(name))
    server = Server()
    out = cli("debuginfo", "upload", "--to", server.url + "/", path("folder"))
    assert "1 sent, 0 already there, 2 passed over, 0 failed" in out, out
    out = cli("debuginfo", "list", "--to", server.url)
    assert re.match(r"%s +%d  upload  \S+  shop.full  code,symbols" % (build_id("shop.full"), len(content("shop.full"))), out), out
    equal(json.loads(cli("debuginfo", "list", "--json", "--to", server.url))["total"], 1)
    id_ = build_id("shop.full")
    equal(cli("debuginfo", "delete", "--to", server.url, id_), id_ + ": deleted\n")
    equal(server.get("/api/1/debuginfo")[1]["total"], 0)
    for args, status, text in ((("delete", "--to", server.url, id_), 1, id_ + ": the server answers 404 Not Found: there is no"),
                               (("delete", "--to", server.url, "../top"), 1, "it is no build id"), (("delete",), 2, "no build id is given"),
                               (("upload", "--to", server.url, path("shop.cc")), 1, "shop.cc: unrecognized binary"),
                               (("upload", "--to", server.url, path("bare")), 1, "it is stripped"),
                               (("upload", "--to", server.url, path("nothing")), 1, "no such file"),
                               (("upload", "--to", "http://127.0.0.1:1", path("shop.full")), 1, "connection refused"),
                               (("upload",), 2, "no file is given"), ((), 2, "upload, list or delete"),
                               (("send",), 2, "there is no \"send\""), (("list", "x"), 2, "takes no files"),
                               (("upload", "--nope", "x"), 2, "no option --nope")):
        got = subprocess.run([KILN, "debuginfo", *args], capture_output=True, text=True)
        assert got.returncode == status and text in got.stderr, (args, got)
    assert "usage: kiln debuginfo upload" in cli("debuginfo", "--help")
    equal(server.stop(), 0)


def agent():
    """A stripped program under the agent, which pushes."""
    server = Server()
    subprocess.run([path("shop")], check=True, capture_output=True,
                   env={**os.environ, "LD_PRELOAD": AGENT, "KILN_PUSH_URL": server.url, "KILN_SERVICE": "shop"})
    text = merged(server, format="text").decode()
    assert "[shop]" in text and "price" not in text, text
    found = server.get("/api/1/unnamed", service="shop", type="cpu")[1]["binaries"]
    equal([b["build_id"] for b in found if b["file"] == path("shop")], [build_id("shop.full")])
    # One that was not stripped comes with its linker's names.
    subprocess.run([path("shop.symtab")], check=True, capture_output=True,
                   env={**os.environ, "LD_PRELOAD": AGENT, "KILN_PUSH_URL": server.url, "KILN_SERVICE": "own"})
    functions = {r["function"] for r in server.get("/api/1/top", service="own", type="cpu")[1]["rows"]}
    assert "shop::price" in functions and not any(f.startswith("_Z") for f in functions), functions
    assert b"shop::price" in merged(server, service="own", format="text")
    line, = server.get("/api/1/series", service="own", type="cpu", function="shop::price")[1]["lines"]
    assert sum(p[1] for p in line["points"]) > 0, line
    upload(server, "shop.full")
    rows = table(merged(server))
    assert any("shop::price" in r and "shop.cc:" in r for r in rows), rows
    assert any(" main " in r for r in rows), rows
    equal(server.stop(), 0)


build()
run("g++", "-g", "-O1", "-Wl,--build-id=sha1", "-o", "kiln-like", "shop.cc", cwd=TMP)
main = Server()
check("addresses without names say why", without)
check("what is wrong is refused with a reason", wrong)
check("what is too large is refused", large)
check("an upload names what is there, as the program itself would", uploaded)
check("fleet's top and series have the names", fleet)
check("a profile comes back as it was pushed", as_pushed)
check("addresses that are pushed later have names", other_addresses)
check("thousands of addresses", many)
check("names are there after a restart", restarted)
check("more replaces less, and can be dropped", better)
check("debug files without code will do", debug_file)
check("the server is a debuginfod server, and asks others", debuginfod)
check("local files, if they may be used and are of the build", local_files)
check("hostile debug info costs names at most", hostile)
check("a server whose program was replaced still has names", upgraded)
check("the command that would help is one, and helps", advice)
check("roles", roles)
check("what nothing needs is dropped", expiry)
check("the command", commands)
if AGENT:
    check("a stripped program under the agent", agent)
else:
    check("a stripped program under the agent # SKIP no agent is built with sanitizers", lambda: None)
equal(main.stop(), 0)
done()
