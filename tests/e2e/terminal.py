"""The shell at a terminal: prompt, Tab, history, Ctrl-C, pipes. Prints TAP; KILN and DATA as for all tests."""
import os
import pty
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import termios
import time

KILN, DATA = os.environ["KILN"], os.environ["DATA"]
PROMPT = "(pprof) "
SECONDS = 20


class Terminal:
    """A kiln that believes that a person types."""

    def __init__(self, home, profile="worked_a.pb", term="xterm", program=KILN):
        env = dict(os.environ, HOME=home, TERM=term, LC_ALL="C.UTF-8", TZ="UTC")
        env.pop("XDG_STATE_HOME", None)
        if not term:
            del env["TERM"]
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(DATA)
            os.execve(program, [program, profile], env)
        self.seen, self.edits = "", term not in ("", "dumb")

    def expect(self, text):
        """Waits for text; returns all up to it, and forgets it."""
        end = time.time() + SECONDS
        while text not in self.seen:
            left = end - time.time()
            if left <= 0 or not select.select([self.fd], [], [], left)[0]:
                raise AssertionError("waited for %r, saw %r" % (text, self.seen[-600:]))
            try:
                got = os.read(self.fd, 65536).decode("utf-8", "replace")
            except OSError:
                got = ""
            if not got:
                raise AssertionError("ended before %r, saw %r" % (text, self.seen[-600:]))
            self.seen += got
        before, _, self.seen = self.seen.partition(text)
        return before

    def prompt(self):
        """Waits until the shell is ready; returns what it said before."""
        before, end = self.expect(PROMPT), time.time() + SECONDS
        while self.edits and termios.tcgetattr(self.fd)[3] & termios.ICANON and time.time() < end:
            time.sleep(0.005)
        if not self.edits:
            time.sleep(0.1)
        return before

    def type(self, keys):
        os.write(self.fd, keys.encode())

    def run(self, line):
        """What the shell answers to a line."""
        self.type(line + "\r")
        answer = self.prompt()
        return answer[answer.find("\n") + 1:]

    def end(self):
        """Exit status."""
        end = time.time() + SECONDS
        while time.time() < end:
            if select.select([self.fd], [], [], 0.05)[0]:
                try:
                    self.seen += os.read(self.fd, 65536).decode("utf-8", "replace")
                except OSError:
                    pass
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                os.close(self.fd)
                return os.waitstatus_to_exitcode(status)
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        raise AssertionError("does not end, saw %r" % self.seen[-600:])


def start(home, **options):
    t = Terminal(home, **options)
    t.expect("Entering interactive mode")
    t.prompt()
    return t


def prompt_and_quit(home):
    t = start(home)
    assert "rec" in t.run("top")
    t.type("q\r")
    assert t.end() == 0


def large_profiles_are_worked_on_while_one_types(home):
    path = os.path.join(home, "large.folded")
    with open(path, "w") as f:
        for i in range(60000):
            f.write("main;f%d;g%d;h%d %d\n" % (i % 7, i % 300, i % 1009, 1 + i % 5))
    t = start(home, profile=path)
    for line, options in (("focus=g1", ["-focus=g1"]), ("hide=h2", ["-focus=g1", "-hide=h2"]), ("focus=", ["-hide=h2"])):
        t.run(line)
        t.type("list nosuch\t\r")  # completion needs the profile, too
        t.prompt()
        want = subprocess.run([KILN, "-top", "-nodecount=10"] + options + [path], capture_output=True, text=True).stdout
        got = t.run("top").replace("\r\n", "\n")
        assert got.split("flat%")[1] == want.split("flat%")[1], (line, got, want)
    t.run("hide=h3")
    t.type("q\r")
    assert t.end() == 0


def end_of_file_ends_it(home):
    t = start(home)
    t.type("\x04")
    assert t.end() == 0


def ctrl_c_at_the_prompt_ends_it(home):
    t = start(home)
    t.type("top so far\x03")
    t.expect("pprof: Interrupt")
    assert t.end() == 2


def ctrl_c_ends_a_report_only(home):
    t = start(home, profile="many_labels.pb")
    t.type("traces | sh -c 'sleep 30'\r")
    time.sleep(0.3)
    t.type("\x03")
    t.prompt()
    assert "Type: " not in t.run("comments")
    t.type("q\r")
    assert t.end() == 0


def tab_completes_a_command(home):
    t = start(home)
    t.type("tre\t\r")
    t.expect("calls%")
    t.prompt()
    t.type("gran\tfil\t\t\t")
    t.expect("filefunctions  files")
    t.type("f\t\r")
    t.prompt()
    t.type("o\r")
    t.expect("granularity               = filefunctions")
    t.type("q\r")


def tab_completes_names(home):
    t = start(home)
    t.type("top a\t\t")
    t.expect("a     main")
    t.type("\x15top -r\t\r")
    t.expect("   ignore=rec\r")
    t.prompt()
    t.type("help sam\t\r")
    t.expect("Or use sample_index=name")
    t.type("q\r")


def tab_completes_files(home):
    t = start(home)
    open(os.path.join(home, "some_long_name"), "w").close()
    t.type("top > %s/some_\t" % home)
    t.expect("long_name")
    t.type("\r")
    t.expect("Generating report in %s/some_long_name" % home)
    t.type("q\r")
    assert t.end() == 0
    assert "flat%" in open(os.path.join(home, "some_long_name")).read()


def history_outlives_the_session(home):
    t = start(home)
    t.run("top 3 -cum")
    t.run("top 3 -cum")
    t.run("comments")
    t.type("q\r")
    assert t.end() == 0
    path = os.path.join(home, ".local/state/kiln/history")
    assert os.stat(path).st_mode & 0o777 == 0o600
    assert open(path).read() == "top 3 -cum\ncomments\nq\n"
    t = start(home)
    t.type("\x1b[A\x1b[A\x1b[A")
    t.expect("top 3 -cum")
    t.type("\r")
    t.expect("flat%")
    t.prompt()
    t.type("\x12com")
    t.expect("comments")
    t.type("\x05\r")
    t.prompt()
    t.type("q\r")
    assert t.end() == 0


def history_is_bounded(home):
    os.makedirs(os.path.join(home, ".local/state/kiln"))
    path = os.path.join(home, ".local/state/kiln/history")
    with open(path, "w") as f:
        f.writelines("focus=%d\n" % i for i in range(5000))
    t = start(home)
    t.type("q\r")
    assert t.end() == 0
    lines = open(path).read().splitlines()
    assert len(lines) == 1001 and lines[0] == "focus=4000", lines[:2]


def pipes(home):
    t = start(home, profile="many_labels.pb")
    assert t.run("top | head -1").startswith("Showing nodes")
    assert t.run("raw | head -2").startswith("PeriodType")
    assert "not found" in t.run("top | no-such-command-here")
    assert "expected a command" in t.run("top |")
    assert t.run("top |wc -l").strip().isdigit()
    # A command that leaves the terminal in a mess.
    t.run("top | sh -c 'stty raw -echo </dev/tty; exit 1'")
    assert "flat%" in t.run("top 1")
    t.type("q\r")
    assert t.end() == 0


def a_bar_inside_a_word_is_no_pipe(home):
    t = start(home)
    assert "focus=rec|main" in t.run("top rec|main")
    t.type("q\r")
    assert t.end() == 0


def plain_terminals(home):
    for term in ("", "dumb"):
        t = start(home, term=term)
        assert "rec" in t.run("top 5")
        t.type("\x04")
        assert t.end() == 0
    t = start(home, term="")
    t.type("\x03")
    t.expect("pprof: Interrupt")
    assert t.end() == 2


def main():
    tests = [f for f in globals().values() if callable(f) and getattr(f, "__code__", None)
             and f.__code__.co_varnames[:1] == ("home",) and f.__name__ != "start"]
    for n, test in enumerate(tests, 1):
        home = tempfile.mkdtemp()
        try:
            test(home)
            print("ok %d - %s" % (n, test.__name__.replace("_", " ")))
        except (AssertionError, OSError) as e:
            print("not ok %d - %s" % (n, test.__name__.replace("_", " ")))
            print("# %s: %s" % (type(e).__name__, e))
        finally:
            shutil.rmtree(home)
        sys.stdout.flush()
    print("1..%d" % len(tests))


main()
