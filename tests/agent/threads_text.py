#!/usr/bin/env python3
"""What people read about threads: debug=1 and debug=2, who created them, the index page."""
import os, re, shutil, socket, subprocess, sys, tempfile, time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))
from served import AGENT, HERE, done, ok


def get(path, target):
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(10)
        s.connect(path)
        s.sendall(f"GET /debug/pprof/{target} HTTP/1.0\r\n\r\n".encode())
        data = b""
        while piece := s.recv(65536):
            data += piece
    return data.split(b"\r\n\r\n", 1)[1].decode()


def thread(dump, name):
    found = re.search(rf'^thread \d+ "{name}".*?(?=^thread |\Z)', dump, re.M | re.S)
    return found.group(0) if found else ""


def check_dump(dump):
    head = r'^thread \d+ "{}" \[{}\d+\.\d\ds CPU\]:\n'
    posix = thread(dump, "posix")
    ok(re.match(head.format("posix", "S, [a-z_]*pause[a-z_]*, "), posix), "debug=2 says what a thread waits for", posix)
    ok(re.search(r'^# labels: {"work":"posix"}$', posix, re.M), "its labels", posix)
    ok(re.search(r"^wait_in_pause\(\.\.\.\)\n\t/\S+/kinds \+0x[0-9a-f]+\nposix_thread\(\.\.\.\)\n", posix, re.M),
       "where it is, with names, files and offsets", posix)
    ok(re.search(r"^created by start\n\t/\S+/kinds \+0x", posix, re.M), "and who created it", posix)
    busy = thread(dump, "busy")
    ok(re.match(head.format("busy", "R, "), busy) and "\nbusy_thread(...)\n" in busy, "one that runs", busy)
    deaf = thread(dump, "deaf")
    ok(re.match(head.format("deaf", "S, not responding, [a-z_ 0-9]+, "), deaf), "one that does not answer", deaf)
    ok("raw_thread(...)" in dump, "one without libc", dump)
    ok(len(re.findall("^thread ", dump, re.M)) == 7 and '"kiln"' not in dump, "none of the agent's", dump)


def check_profiles(path):
    text = get(path, "goroutine?debug=1")
    ok(text.startswith("goroutine profile: total 7\n"), "debug=1 as Go has it", text)
    ok(re.search(r"^2 @( 0x[0-9a-f]+)+\n# labels: {\"work\":\"posix\"}\n#\t0x", text, re.M),
       "threads of equal stacks and labels are one", text)
    text = get(path, "threadcreate?debug=1")
    ok(text.startswith("threadcreate profile: total 7\n"), "threadcreate has all threads", text)
    ok(re.search(r"^4 @|(^1 @[^\n]*\n#\t0x\w+\tstart\+[^\n]*\n#\t0x\w+\tmain\+.*?){4}", text, re.M | re.S),
       "and who created them", text)
    text = get(path, "")
    for name in "goroutine", "threads", "threadcreate":
        ok(f"<td>7</td><td><a href='{name}?debug=1'>" in text, f"the index counts {name}", text)


folder = tempfile.mkdtemp()
try:
    subprocess.run([os.environ.get("CC", "gcc"), "-g", "-O2", "-pthread", f"-I{HERE}/../../include", "-o",
                    f"{folder}/kinds", f"{HERE}/threads_kinds.c", AGENT], check=True)
    program = subprocess.Popen(["./kinds", "written"], cwd=folder,
                               env=dict(os.environ, LD_PRELOAD=AGENT, SLEEP="1", KILN_PPROF_ADDR=f"unix:{folder}/socket"))
    end = time.time() + 10
    while not (os.path.exists(f"{folder}/written") and os.path.getsize(f"{folder}/written")) and time.time() < end:
        time.sleep(0.05)
    check_dump(get(f"{folder}/socket", "threads?debug=2"))
    check_profiles(f"{folder}/socket")
    program.kill()
    program.wait()
finally:
    shutil.rmtree(folder)
done()
