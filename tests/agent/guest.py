#!/usr/bin/env python3
"""Is the agent a guest that behaves? Each case is run without it and with all of it switched on: what
the program prints, and how it ends, must be the same, and there must be profiles that can be read.
Usage: AGENT=libkiln.so KILN=kiln tests/agent/guest.py [PART OF A NAME...]"""

import concurrent.futures
import glob
import itertools
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
AGENT = os.path.abspath(os.environ['AGENT'])
KILN = os.path.abspath(os.environ['KILN'])
CC = os.environ.get('CC', 'gcc').split()
CXX = os.environ.get('CXX', 'g++').split()
LIBRARIES = '/usr/lib/x86_64-linux-gnu/'
NOBODY = 65534
TIME_LIMIT = 60
PROFILES = ('cpu', 'heap', 'mutex', 'block')

os.umask(0o022)
TMP = tempfile.mkdtemp(prefix='kiln-guest-')
os.chmod(TMP, 0o755)
numbers = itertools.count(1)
running = set()
printing = threading.Lock()
failures = []


def report(name, problems, skip=None, seconds=0):
    with printing:
        n = next(numbers)
        print(f'{"not ok" if problems else "ok"} {n} - {name}' + (f' # SKIP {skip}' if skip else ''))
        if seconds > 10:
            print(f'# that took {seconds:.0f} s')
        for line in '\n'.join(problems).splitlines()[:40]:
            print('#   ' + line)
        sys.stdout.flush()
        if problems:
            failures.append(name)


def settings_for(directory, settings):
    values = {'LD_PRELOAD': AGENT, 'KILN_CPU_RATE': '1000', 'KILN_HEAP_RATE': '4096',
              'KILN_MUTEX_FRACTION': '1', 'KILN_BLOCK_RATE': '1', 'KILN_EXE': '*guest*'}
    for profile in PROFILES:
        values[f'KILN_{profile.upper()}_PROFILE'] = f'{directory}/{profile}'
    values.update(settings)
    return values


def http_get(path, target, seconds=10):
    """Over the agent's own socket; the whole answer, or None."""
    try:
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(seconds)
            s.connect(path)
            s.sendall(f'GET {target} HTTP/1.0\r\n\r\n'.encode())
            answer = b''
            while more := s.recv(1 << 16):
                answer += more
            return answer
    except OSError:
        return None


def kiln(*arguments):
    p = subprocess.run([KILN, *arguments], capture_output=True, text=True, errors='replace',
                       env={**os.environ, 'HOME': TMP}, timeout=TIME_LIMIT)
    return p.returncode, p.stdout + p.stderr


def copy_program(program, to):
    """Not by this process: what another thread starts meanwhile would have the copy open to write, and who writes to a
    program keeps it from being run."""
    subprocess.run(['cp', '-p', program, to], check=True)


class Run:
    """One run of a program: status, output, and what happened beside it."""

    def __init__(self, case, is_guest):
        self.case = case
        self.directory = tempfile.mkdtemp(dir=TMP)
        os.chmod(self.directory, 0o777)
        self.socket = self.directory + '/socket'
        self.answers = []
        env = {k: v for k, v in os.environ.items() if not k.startswith(('KILN', 'LD_PRELOAD'))}
        env.update(case.base_env)
        if is_guest:
            env.update(settings_for(self.directory, case.settings))
            if case.dumps:
                env['KILN_PPROF_ADDR'] = 'unix:' + self.socket
        self.env = {k: v.replace('@DIR', self.directory) for k, v in env.items() if v is not None}
        self.is_guest = is_guest
        self.run()

    def run(self):
        case = self.case
        program = TMP + '/' + case.program
        if case.copies_itself:
            copy_program(program, self.directory + '/guest')
            program = self.directory + '/guest'
        p = subprocess.Popen([*case.command, program, *case.arguments], env=self.env, cwd=self.directory,
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             start_new_session=True, preexec_fn=case.prepare)
        running.add(p)
        try:
            first = p.stdout.readline() if case.is_told_when_ready else b''
            if case.dumps and self.is_guest:
                self.ask_for_dumps(p)
            if case.signals:
                for number in case.signals:
                    time.sleep(case.before_signal)
                    p.send_signal(number)
            out, err = p.communicate(timeout=TIME_LIMIT)
            self.status = p.returncode
        except subprocess.TimeoutExpired:
            os.killpg(p.pid, signal.SIGKILL)
            out, err = p.communicate()
            self.status = 'hangs'
        running.discard(p)
        if os.path.exists(f'/tmp/perf-{p.pid}.map'):
            os.unlink(f'/tmp/perf-{p.pid}.map')  # the case of code that is made at run time
        self.out = (first + out).decode(errors='replace').replace(self.directory, 'DIR')
        self.err = err.decode(errors='replace').replace(self.directory, 'DIR')

    def ask_for_dumps(self, p):
        for i in range(self.case.dumps):
            target = '/debug/pprof/goroutine?debug=%d' % (i % 3)
            self.answers.append(http_get(self.socket, target, 20))
            if p.poll() is not None:
                break
            time.sleep(0.01)

    def file(self, profile):
        return f'{self.directory}/{profile}'


class Case:
    """`cpu`, `heap`: what must be in those profiles' top, or a list of such; `not_cpu`: what must not.
    `comments`: what the CPU profile must say. `says`: what the agent must print, else it is to be
    quiet. `profiles`: those that must be there; None: nothing may be."""

    def __init__(self, name, program, *arguments, cpu=(), not_cpu=(), heap=(), comments=(), traces=(), says=None,
                 profiles=PROFILES, settings={}, base_env={}, signals=(), before_signal=0, dumps=0,
                 command=(), prepare=None, copies_itself=False, is_told_when_ready=False, check=None,
                 unless=None, may_differ=False, may_print=False,
                 needs_symbols=False):
        self.name, self.program, self.arguments = name, program, arguments
        self.cpu, self.not_cpu, self.heap, self.comments, self.says = cpu, not_cpu, heap, comments, says
        self.traces, self.check, self.unless = traces, check, unless
        self.may_differ, self.may_print = may_differ, may_print
        self.profiles, self.settings, self.base_env, self.signals = profiles, settings, base_env, signals
        self.before_signal, self.dumps, self.command, self.prepare = before_signal, dumps, command, prepare
        self.copies_itself, self.needs_symbols = copies_itself, needs_symbols
        self.is_told_when_ready = is_told_when_ready or bool(signals) or bool(dumps)

    def __call__(self):
        if self.unless:
            report(self.name, [], self.unless)
            return
        try:
            start = time.monotonic()
            with concurrent.futures.ThreadPoolExecutor(2) as both:
                base, guest = both.map(lambda g: Run(self, g), (False, True))
            report(self.name, list(self.compare(base, guest)), seconds=time.monotonic() - start)
        except Exception as e:  # the test's own trouble is a failure too
            report(self.name, [repr(e)])

    def compare(self, base, guest):
        if base.status != guest.status:
            yield f'ends with {guest.status} instead of {base.status}'
        if base.out != guest.out and not self.may_print:
            yield f'prints {guest.out!r} instead of {base.out!r}'
        said = [line for line in guest.err.splitlines() if line.startswith('kiln: ')]
        rest = [line for line in guest.err.splitlines() if not line.startswith('kiln: ')]
        if rest != base.err.splitlines() and not self.may_differ:
            yield f'prints {rest} instead of {base.err.splitlines()} on standard error'
        if self.says and not any(re.search(self.says, line) for line in said):
            yield f'does not say {self.says!r} but {said}'
        if said and not self.says:
            yield f'the agent says {said}'
        yield from self.look_at_files(guest)
        if self.check:
            yield from self.check(base, guest)

    def look_at_files(self, guest):
        left = glob.glob(guest.directory + '/.kiln*')
        if left:
            yield f'left behind: {left}'
        if self.profiles is None:
            found = [f for f in os.listdir(guest.directory) if f.startswith(PROFILES)]
            if found:
                yield f'there is {found}'
            return
        for profile in self.profiles:
            yield from self.look_at(guest, profile)

    def look_at(self, guest, profile):
        if not os.path.exists(guest.file(profile)):
            yield f'no {profile} profile, only {sorted(os.listdir(guest.directory))}'
            return
        names = () if self.needs_symbols else ('-symbolize=none',)
        status, top = kiln(*names, '-top', '-nodecount=200', '-nodefraction=0', guest.file(profile))
        if status:
            yield f'{profile}: {top}'
        for pattern in getattr(self, profile, ()):
            if not re.search(pattern, top):
                yield f'{profile} has no {pattern}:\n{top}'
        if profile == 'cpu':
            yield from self.look_at_cpu(guest, top)

    def look_at_cpu(self, guest, top):
        for pattern in self.not_cpu:
            if re.search(pattern, top):
                yield f'cpu has {pattern}:\n{top}'
        for pattern in self.comments:
            comments = kiln('-comments', guest.file('cpu'))[1]
            if not re.search(pattern, comments):
                yield f'no comment {pattern!r}:\n{comments}'
        for pattern in self.traces:
            traces = kiln('-traces', guest.file('cpu'))[1]
            if not re.search(pattern, traces):
                yield f'no stack {pattern!r}:\n{traces[:2000]}'


# ---- programs

def compile_all():
    """The programs, and those of them that are built in some special way."""
    def compiler(target, source, *flags, by=CC):
        apart = [] if by == ['clang'] else ['-fno-ipa-icf']  # or functions that do the same become one
        return [*by, '-g', '-O2', '-w', '-fno-builtin', *apart, '-D_GNU_SOURCE', '-pthread', '-o', f'{TMP}/{target}',
                f'{HERE}/{source}', *flags]

    jobs = [compiler(name, name + '.c') for name in (
        'guest_fork', 'guest_signal', 'guest_wait', 'guest_stack', 'guest_thread', 'guest_end', 'guest_limits',
        'guest_load', 'guest_errno', 'guest_malloc')]
    jobs += [
        compiler('guest_cxx', 'guest_cxx.cc', '-std=c++20', by=CXX),
        compiler('liba.so', 'guest_library.c', '-DNAME=a', '-fPIC', '-shared'),
        compiler('libb.so', 'guest_library.c', '-DNAME=b', '-fPIC', '-shared'),
        compiler('guest_static', 'guest_end.c', '-static'),
        compiler('guest_static_pie', 'guest_end.c', '-static-pie'),
        compiler('guest_stripped', 'guest_end.c', '-s'),
        compiler('guest_no_frame', 'guest_end.c', '-fomit-frame-pointer'),
        compiler('guest_no_tables', 'guest_end.c', '-fno-asynchronous-unwind-tables', '-fno-unwind-tables'),
        compiler('guest_linked', 'guest_end.c', '-Wl,--no-as-needed', AGENT, '-Wl,-rpath,' + TMP),
    ]
    optional = [
        compiler('guest_asan', 'guest_malloc.c', '-fsanitize=address'),
        compiler('guest_asan_cxx', 'guest_cxx.cc', '-std=c++20', '-fsanitize=address', by=CXX),
        compiler('guest_tsan', 'guest_malloc.c', '-fsanitize=thread'),
        compiler('guest_ubsan', 'guest_malloc.c', '-fsanitize=undefined'),
        compiler('guest_asan_clang', 'guest_malloc.c', '-fsanitize=address', by=['clang']),
        compiler('guest_tsan_clang', 'guest_malloc.c', '-fsanitize=thread', by=['clang']),
        compiler('guest_musl', 'guest_malloc.c', by=['musl-gcc']),
        compiler('guest_archive', 'guest_end.c', '-Wl,-u,kiln_serve', AGENT[:-2] + 'a'),
    ]
    for allocator in ('jemalloc', 'tcmalloc_minimal', 'mimalloc'):
        optional.append(compiler('guest_with_' + allocator, 'guest_malloc.c', f'-l:lib{allocator}.so.*'))
    for allocator in ('jemalloc', 'tcmalloc_minimal'):
        if os.path.exists(f'{LIBRARIES}lib{allocator}.a'):
            optional.append(compiler('guest_static_' + allocator, 'guest_malloc.c', f'-l:lib{allocator}.a',
                                     '-lstdc++', '-lm', '-ldl'))
    for job in optional:
        for i, flag in enumerate(job):
            if flag.endswith('.so.*'):
                found = sorted(glob.glob(LIBRARIES + flag[3:]))
                job[i] = found[0] if found else flag

    def build(job):
        try:
            return subprocess.run(job, capture_output=True, text=True, timeout=TIME_LIMIT)
        except OSError as e:
            return subprocess.CompletedProcess(job, 1, '', str(e))

    os.symlink(AGENT, TMP + '/libkiln.so.0')
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        for job, result in zip(jobs, pool.map(build, jobs)):
            if result.returncode:
                report('compile ' + job[-1], [result.stderr])
        list(pool.map(build, optional))


def missing(program):
    return None if os.path.exists(f'{TMP}/{program}') else 'it cannot be built here'


def without(tool):
    return None if shutil.which(tool) else tool + ' is not installed'


not_root = None if os.geteuid() == 0 else 'only root can do this'


# ---- checks of some cases

def only_files_of_parent(base, guest):
    """Children that fork write nothing."""
    found = sorted(f for f in os.listdir(guest.directory) if f.startswith(PROFILES))
    if found != sorted(PROFILES):
        yield f'there is {found}'


def dumps_are_whole(at_least):
    def check(base, guest):
        while guest.answers and not guest.answers[-1]:
            guest.answers.pop()  # the program had ended
        if not guest.answers or not all(a and b' 200 OK\r\n' in a for a in guest.answers):
            yield f'answers to dumps: {[a and a[:80] for a in guest.answers]}'
        elif not any(int(n) >= at_least for a in guest.answers for n in re.findall(rb'total (\d+)', a)):
            yield f'fewer than {at_least} threads'
    return check


def burns_about_equally(*names):
    """The time of a library that was unloaded is not given to the one that took its place."""
    def check(base, guest):
        top = kiln('-top', '-cum', '-nodecount=200', guest.file('cpu'))[1]
        found = [re.search(r'([\d.]+)%\s+' + name, top) for name in names]
        shares = [float(f.group(1)) if f else 0 for f in found]
        if min(shares) < 25:
            yield f'shares of {names}: {shares}\n{top}'
    return check


def one_file_of_each_copy(base, guest):
    found = sorted(f for f in os.listdir(guest.directory) if f.startswith('cpu'))
    if found != ['cpu']:
        yield f'there is {found}'


# ---- cases

def fork_cases():
    for name in ('child_exits', 'child_leaves', 'grandchild', 'clone'):
        yield Case('fork: ' + name, 'guest_fork', name, cpu=['burn_in_parent'], not_cpu=['burn_in_child'],
                   check=only_files_of_parent)
    yield Case('fork: from threads that allocate', 'guest_fork', 'from_threads', cpu=['burn_in_parent'],
               check=only_files_of_parent)
    for name in ('vfork', 'spawn'):
        yield Case('fork: ' + name, 'guest_fork', name, cpu=['burn_in_parent'])
    for name in ('daemon', 'daemon_by_hand'):
        yield Case('fork: ' + name, 'guest_fork', name, profiles=(), check=lambda base, guest: look_at_child(guest, 'burn_in_child'))
    yield Case('fork: exec', 'guest_fork', 'exec', cpu=['burn_in_child'])
    yield Case('fork: numbers of descriptors', 'guest_fork', 'descriptors')
    yield Case('fork: children that are followed', 'guest_fork', 'child_exits', settings={'KILN_FOLLOW_FORK': '1'},
               cpu=['burn_in_parent'], not_cpu=['burn_in_child'],
               check=lambda base, guest: look_at_followed(guest))


def look_at_child(guest, name):
    """The file is that of a child, under its plain name or with its process id."""
    found = glob.glob(guest.file('cpu') + '*')
    if not any(name in kiln('-top', f)[1] for f in found):
        yield f'{os.listdir(guest.directory)} without {name}'


def look_at_followed(guest):
    found = glob.glob(guest.file('cpu') + '.*')
    if len(found) != 4 or not all('burn_in_child' in kiln('-top', f)[1] for f in found):
        yield f'{sorted(os.listdir(guest.directory))} without burn_in_child'


def signal_cases():
    for name in ('own_handler', 'own_action', 'once_only', 'ignored', 'storm', 'wait_for_all', 'wait_for_own', 'read_all'):
        yield Case('signal: ' + name, 'guest_signal', name)
    yield Case('signal: deadly', 'guest_signal', 'deadly', profiles=())
    yield Case('signal: another than SIGPROF', 'guest_signal', 'own_handler', settings={'KILN_SIGNAL': 'RTMIN+5'},
               cpu=['burn'])
    yield Case('signal: sampled in a handler', 'guest_signal', 'in_handler',
               traces=[r'burn_in_handler\n(.*\n)*?.*is_interrupted'])
    yield Case('signal: stopped and continued', 'guest_signal', 'sleeper', before_signal=0.1,
               signals=(signal.SIGSTOP, signal.SIGCONT, signal.SIGSTOP, signal.SIGCONT))
    yield Case('wait: all calls while stacks are asked for', 'guest_wait', 'all_calls', dumps=40,
               check=dumps_are_whole(10))
    yield Case('wait: all calls while CPU is sampled', 'guest_wait', 'all_calls')
    yield Case('wait: all calls while wall time is sampled', 'guest_wait', 'all_calls',
               settings={'KILN_WALL_PROFILE': '@DIR/wall', 'KILN_WALL_RATE': '100'})
    yield Case('wait: interrupted by itself', 'guest_wait', 'interrupted_by_itself', dumps=20)


def stack_cases():
    for name in ('small', 'alternate_4k', 'jumps', 'deep', 'corrupted'):
        yield Case('stack: ' + name, 'guest_stack', name)
    yield Case('stack: alternate_8k', 'guest_stack', 'alternate_8k', cpu=['burn_on_alternate'])
    yield Case('stack: coroutines', 'guest_stack', 'coroutines', cpu=['burn_in_coroutine', 'run_coroutine'])
    yield Case('stack: jit', 'guest_stack', 'jit', cpu=['loop_with_frame', 'loop_without_frame'],
               traces=[r'loop_with_frame\n.*calls_code\n'])


def thread_cases():
    for name in ('cancelled', 'exit_threads', 'destructors', 'storm', 'main_exits', 'others_work', 'exit_from_thread', 'counted'):
        yield Case('thread: ' + name, 'guest_thread', name)
    yield Case('thread: C11', 'guest_thread', 'c11', cpu=['burn_c11'])
    yield Case('thread: 10,000 of them', 'guest_thread', 'live', dumps=3, check=dumps_are_whole(10000))
    for name in ('exceptions', 'cancelled', 'operators', 'locks', 'nothing'):
        yield Case('C++: ' + name, 'guest_cxx', name)
    yield Case('C++: terminates', 'guest_cxx', 'terminates', profiles=())
    for name in ('memory', 'locks', 'robust', 'calls', 'forks', 'samples'):
        yield Case('errno: ' + name, 'guest_errno', name, settings={'KILN_HEAP_RATE': '1'})


def end_cases():
    burnt = {'cpu': ['burn_to_the_end'], 'heap': ['burn_to_the_end']}
    for name in ('returns', 'exits', 'leaves', 'leaves_c99', 'quick', 'child_aborts', 'exits_in_exit', 'forks_at_exit',
                 'asks_for_term'):
        yield Case('end: ' + name, 'guest_end', name, **burnt)
    for name in ('aborts', 'crashes', 'asserts', 'by_system_call'):
        yield Case('end: ' + name, 'guest_end', name, profiles=())
    for program in ('is_killed', 'is_killed_busy'):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            yield Case(f'end: {program} by {number.name}', 'guest_end', program, signals=(number,), **burnt)
    yield Case('end: handles_term', 'guest_end', 'handles_term', signals=(signal.SIGTERM,), **burnt)
    yield Case('end: ignores_term', 'guest_end', 'ignores_term', signals=(signal.SIGTERM,), **burnt)
    yield Case('end: is_killed by SIGKILL', 'guest_end', 'is_killed', signals=(signal.SIGKILL,), before_signal=2.5,
               settings={'KILN_EVERY': '1'}, **burnt)
    yield Case('end: two signals at once', 'guest_end', 'is_killed', signals=(signal.SIGTERM, signal.SIGTERM),
               **burnt)


def limit_cases():
    here = {'cpu': ['burn_here']}
    for name in ('closes_all', 'few_files', 'small_main_stack'):
        yield Case('limit: ' + name, 'guest_limits', name, **here)
    yield Case('limit: without_stdio', 'guest_limits', 'without_stdio', **here)
    yield Case('limit: started without_stdio', 'guest_limits', 'starts_without_stdio',
               prepare=lambda: [os.close(fd) for fd in range(3)], **here)
    yield Case('limit: changes_directory', 'guest_limits', 'changes_directory',
               settings={'KILN_CPU_PROFILE': 'cpu', 'KILN_HEAP_PROFILE': './heap'}, **here)
    yield Case('limit: few_signals', 'guest_limits', 'few_signals', comments=['no timer of their own'], **here)
    yield Case('limit: little_memory', 'guest_limits', 'little_memory')
    yield Case('limit: little_file_space', 'guest_limits', 'little_file_space', profiles=None,
               says='cannot write')
    yield Case('limit: denied_before', 'guest_limits', 'denied_before', comments=['no timer of their own .EPERM'],
               settings={'KILN_PPROF_ADDR': ':0'}, says='socket|listen|serve', **here)
    yield Case('limit: denied_later', 'guest_limits', 'denied_later', comments=['no timer of their own .EPERM'], **here)
    yield Case('limit: removes_itself', 'guest_limits', 'removes_itself', copies_itself=True, **here)
    yield Case('limit: nowhere to write', 'guest_limits', 'burn_only', profiles=None, says='cannot write',
               settings={f'KILN_{p.upper()}_PROFILE': '/no/such/directory/' + p for p in PROFILES})
    for name in ('without_proc', 'changes_user'):
        yield Case('limit: ' + name, 'guest_limits', name, unless=not_root, **here)
    # The agent itself finds no files any more.
    yield Case('limit: changes_root', 'guest_limits', 'changes_root', unless=not_root, needs_symbols=True, **here)
    yield Case('limit: other_ids', 'guest_limits', 'other_ids', unless=not_root, profiles=(),
               check=lambda base, guest: look_at_child(guest, 'burn_here'))


def load_cases():
    yield Case('load: in turns', 'guest_load', 'in_turns', TMP, heap=['allocate_in_a', 'allocate_in_b'],
               check=burns_about_equally('burn_in_a', 'burn_in_b'))
    yield Case('load: storm', 'guest_load', 'storm', TMP)
    yield Case('load: apart', 'guest_load', 'apart', TMP, cpu=['burn_in_a'])
    yield Case('load: errors', 'guest_load', 'errors', TMP)
    yield Case('load: the agent itself', 'guest_load', 'agent_late', TMP, cpu=['agent_late'],
               settings={'LD_PRELOAD': None, 'GUEST_LATE': AGENT}, says='comes before the agent')


def build_cases():
    yield Case('build: stripped', 'guest_stripped', 'returns', cpu=['guest_stripped'])
    yield Case('build: no frame pointers', 'guest_no_frame', 'returns',
               traces=[r'burn\n.*burn_to_the_end\n.*returns\n(.*\n)?.*main\n'])
    yield Case('build: no unwind tables', 'guest_no_tables', 'returns', cpu=['burn'])
    yield Case('build: linked with the agent', 'guest_linked', 'returns', cpu=['burn_to_the_end'],
               settings={'LD_PRELOAD': None})
    yield Case('build: linked and preloaded', 'guest_linked', 'returns', cpu=['burn_to_the_end'])
    yield Case('build: static', 'guest_static', 'returns', profiles=None)
    yield Case('build: musl', 'guest_musl', profiles=None, unless=missing('guest_musl'))
    for name, other in (('asan', 'AddressSanitizer'), ('asan_cxx', 'AddressSanitizer'),
                        ('asan_clang', 'AddressSanitizer'), ('tsan', 'ThreadSanitizer'),
                        ('tsan_clang', 'ThreadSanitizer')):
        arguments = ('operators',) if name == 'asan_cxx' else ()
        yield Case('build: ' + name, 'guest_' + name, *arguments, profiles=None, says=other, unless=missing('guest_' + name),
                   base_env={'ASAN_OPTIONS': 'allocator_may_return_null=1:detect_leaks=0'}, may_differ=name == 'asan_cxx')
    yield Case('build: ubsan', 'guest_ubsan', heap=['keep'], unless=missing('guest_ubsan'))


def allocator_cases():
    yield Case('malloc: glibc', 'guest_malloc', heap=['keep'])
    for pattern in ('jemalloc.so.2', 'tcmalloc.so.4', 'tcmalloc_minimal.so.4', 'mimalloc.so.2'):
        path = f'{LIBRARIES}lib{pattern}'
        skip = None if os.path.exists(path) else 'it is not installed'
        yield Case(f'malloc: {pattern} after the agent', 'guest_malloc', heap=['keep'], unless=skip,
                   base_env={'LD_PRELOAD': path}, settings={'LD_PRELOAD': f'{AGENT}:{path}'})
        yield Case(f'malloc: {pattern} before the agent', 'guest_malloc', unless=skip, check=allocator_is_named,
                   says='comes before the agent',
                   base_env={'LD_PRELOAD': path}, settings={'LD_PRELOAD': f'{path}:{AGENT}'})
    for name in ('jemalloc', 'tcmalloc_minimal', 'mimalloc'):
        program = 'guest_with_' + name
        yield Case(f'malloc: linked with {name}', program, heap=['keep'], unless=missing(program))
    for name in ('jemalloc', 'tcmalloc_minimal'):
        program = 'guest_static_' + name
        yield Case(f'malloc: {name} in the program', program, unless=missing(program), check=allocator_is_named,
                   says='comes before the agent')


def off_cases():
    nothing = {f'KILN_{p.upper()}_{what}': None for p in PROFILES for what in ('PROFILE', 'RATE', 'FRACTION')}
    jemalloc = LIBRARIES + 'libjemalloc.so.2'
    yield Case('off: nothing is said or written', 'guest_malloc', settings=nothing, profiles=None)
    yield Case('off: nor about another allocator', 'guest_malloc', profiles=None, base_env={'LD_PRELOAD': jemalloc},
               settings={**nothing, 'LD_PRELOAD': f'{jemalloc}:{AGENT}'},
               unless=None if os.path.exists(jemalloc) else 'it is not installed')


def allocator_is_named(base, guest):
    """Not seen, and so it is said."""
    comments = kiln('-comments', guest.file('heap'))[1]
    if 'comes before the agent' not in comments:
        yield f'nothing about the allocator: {comments}'


def company_cases():
    again = TMP + '/another_kiln.so'
    shutil.copy(AGENT, again)
    yield Case('company: the agent twice', 'guest_end', 'returns', cpu=['burn_to_the_end'], check=one_file_of_each_copy,
               settings={'LD_PRELOAD': f'{AGENT}:{again}'})
    yield Case('company: the agent linked in and preloaded', 'guest_archive', 'returns', check=one_file_of_each_copy,
               cpu=['burn_to_the_end'], heap=['burn_to_the_end'], unless=missing('guest_archive'))
    profiler = LIBRARIES + 'libprofiler.so.0'
    yield Case('company: gperftools', 'guest_end', 'returns', cpu=['burn_to_the_end'],
               unless=None if os.path.exists(profiler) else 'it is not installed', may_differ=True,
               base_env={'LD_PRELOAD': profiler, 'CPUPROFILE': '@DIR/gperftools'},
               settings={'LD_PRELOAD': f'{AGENT}:{profiler}'})
    yield Case('company: strace', 'guest_fork', 'child_exits', command=('strace', '-f', '-o', '/dev/null'),
               cpu=['burn_in_parent'], unless=without('strace'))
    yield Case('company: gdb', 'guest_thread', 'exit_threads', command=(
        'gdb', '-q', '-batch', '-nx', '-iex', 'set debuginfod enabled off', '-ex', 'handle SIGPROF nostop noprint pass',
        '-ex', 'run', '-ex', 'print $_exitcode', '--args'), unless=without('gdb'), check=gdb_saw_the_end,
        may_differ=True, may_print=True, settings={'KILN_EXE': 'guest_thread'})
    # It cannot deliver a signal to a stack that is about to grow, so no CPU profile there.
    yield Case('company: valgrind', 'guest_end', 'returns', command=('valgrind', '-q'), unless=without('valgrind'),
               profiles=('heap',), may_differ=True, settings={'KILN_EXE': None, 'KILN_CPU_PROFILE': None})


def gdb_saw_the_end(base, guest):
    if 'exited normally' not in guest.out:
        yield guest.out


# ---- those that are no comparison of two runs

def setuid_is_inert():
    name = 'build: setuid'
    if not_root:
        report(name, [], not_root)
        return
    problems = []
    for program, preload in (('guest_end', AGENT), ('guest_linked', None)):
        directory = tempfile.mkdtemp(dir=TMP)
        os.chmod(directory, 0o777)
        copy = f'{directory}/guest_setuid'
        copy_program(f'{TMP}/{program}', copy)
        os.chmod(copy, 0o4755)
        env = settings_for(directory, {'KILN_PPROF_ADDR': f'unix:{directory}/socket'})
        if not preload:
            del env['LD_PRELOAD']
        p = subprocess.run([copy, 'returns'], env=env, user=NOBODY, group=NOBODY, extra_groups=[],
                           capture_output=True, text=True, timeout=TIME_LIMIT)
        if p.returncode != 5 or p.stdout != 'exit handler\n':
            problems.append(f'{program}: {p}')
        if os.listdir(directory) != ['guest_setuid']:
            problems.append(f'{program}: there is {os.listdir(directory)}')
        if [line for line in p.stderr.splitlines() if not line.startswith('ERROR: ld.so')]:
            problems.append(f'{program}: {p.stderr}')
    report(name, problems)


def record_says(program, what):
    """kiln record of a program that cannot be profiled: it says so, and runs it or not."""
    def run():
        directory = tempfile.mkdtemp(dir=TMP)
        env = {**os.environ, 'HOME': TMP}
        p = subprocess.run([KILN, 'record', '--cpu', f'{directory}/cpu', '--', f'{TMP}/{program}', 'returns'],
                           env=env, capture_output=True, text=True, timeout=TIME_LIMIT)
        problems = [] if re.search(what, p.stderr) else [f'{p}']
        if os.listdir(directory):
            problems.append(f'there is {os.listdir(directory)}')
        report(f'record: {program}', problems, missing(program))
    return run


def main():
    if os.environ.get('BUILD', 'release') in ('asan', 'tsan'):
        print('1..0 # SKIP a library with a sanitizer is no guest')
        return
    compile_all()
    cases = [case for group in (fork_cases, signal_cases, stack_cases, thread_cases, end_cases, limit_cases, load_cases,
                                build_cases, allocator_cases, off_cases, company_cases) for case in group()]
    named = [(case.name, case) for case in cases]
    named += [('build: setuid', setuid_is_inert), ('record: guest_static', record_says('guest_static', 'static')),
              ('record: guest_static_pie', record_says('guest_static_pie', 'static'))]
    wanted = sys.argv[1:]
    chosen = [run for name, run in named if not wanted or any(w in name for w in wanted)]
    with concurrent.futures.ThreadPoolExecutor(int(os.environ.get('GUEST_JOBS', '6'))) as pool:
        list(pool.map(lambda run: run(), chosen))
    print(f'1..{next(numbers) - 1}')


def stop(number, frame):
    """Nothing is left behind, also if this is stopped."""
    for p in list(running):
        os.killpg(p.pid, signal.SIGKILL)
    shutil.rmtree(TMP, ignore_errors=True)
    os._exit(128 + number)


signal.signal(signal.SIGTERM, stop)
signal.signal(signal.SIGINT, stop)
try:
    main()
finally:
    if not os.environ.get('KEEP'):
        shutil.rmtree(TMP, ignore_errors=True)
sys.exit(1 if failures else 0)
