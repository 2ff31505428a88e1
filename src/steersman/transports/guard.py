"""The guard: a small process between the host and one CLI that ends the CLI's whole process tree.

A script of its own: `python -I -S guard.py HOST DIRECTORY CWD USER ARGV...`. Descriptors 0, 1 and
2 are the CLI's stdin, stdout and stderr, which it passes on; it reads commands from 3 and writes
reports to 4. Variables for the CLI are in its own environment, each name prefixed `ENV_PREFIX`.

    command            what it does                   report
    g  go              starts the CLI                 ready                the directory exists
    s  suspend         SIGSTOP to the tree            started PID          the CLI runs
    r  resume          SIGCONT to the tree            failed STAGE ERRNO   the CLI does not run
    t  terminate       SIGTERM to the tree            suspended            the tree is stopped
    k  kill, or EOF    SIGKILL until none is left     exited STATUS        the tree has ended
                                                      broken WHY           a bug in this script

Knows processes, not what they read or write. Starts in a few milliseconds because it imports next
to nothing; keep it that way.
"""

# Importing pathlib and contextlib would double the startup time.
# ruff: noqa: PTH102, PTH106, PTH110, PTH112, PTH114, PTH123, PTH208, SIM105

from __future__ import annotations

import errno
import os
import select
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from collections.abc import Collection, Iterable
else:
    # `signal` imports `enum`, which takes a third of the startup time.
    import _signal as signal

__all__ = ["ENV_PREFIX", "Row", "descendants", "kill_below", "remove_directory"]

Row = tuple[int, int, int, str]
"""One process: pid, pid of its parent, process group, state letter."""

ENV_PREFIX = "STEERSMAN_CHILD_"
CONTROL = 3
STATUS = 4

KILL_PATIENCE = 5.0
"""Seconds to keep killing processes that do not end before giving up."""
SUSPEND_ROUNDS = 200
ROUND = 0.001
"""Seconds between two looks at the tree."""

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
HOST_DIED = signal.SIGUSR1
"""Sent by the kernel when the host dies. Not SIGTERM, which the guard leaves to the CLI."""


def main() -> None:
    """Run one CLI. Never returns."""
    host, directory, cwd, user, *argv = sys.argv[1:]
    guard = Guard(int(host), directory, cwd, user, argv)
    try:
        guard.prepare()
        guard.serve()
    except BaseException as error:  # noqa: BLE001 - the tree must not outlive the guard
        guard.report(f"broken {type(error).__name__}: {error}")
    finally:
        guard.finish()
        os._exit(0)


class Guard:
    """One CLI and its process tree."""

    def __init__(self, host: int, directory: str, cwd: str, user: str, argv: list[str]) -> None:
        self.host = host
        self.directory = directory
        self.cwd = cwd
        self.user = [int(number) for number in user.split()]
        """Ids to run the CLI as: user, group, supplementary groups. Empty for the current user."""
        self.argv = argv
        self.cli = 0
        self.status: int | None = None
        self.is_subreaper = False
        self.started = -1
        self.wake = -1

    def prepare(self) -> None:
        """Become a session leader that is notified when a child or the host dies."""
        close_inherited()
        os.setsid()
        os.set_inheritable(CONTROL, False)  # noqa: FBT003 - the signature of os
        os.set_inheritable(STATUS, False)  # noqa: FBT003
        self.wake = wake_on_signals()
        prctl(PR_SET_PDEATHSIG, HOST_DIED)
        self.is_subreaper = prctl(PR_SET_CHILD_SUBREAPER, 1)
        if self.directory:
            os.mkdir(self.directory, 0o700)
            if self.user:
                os.chown(self.directory, self.user[0], self.user[1])
        self.report("ready")

    def serve(self) -> None:
        """Run the host's commands until the CLI exits, or the host dies or sends `k`."""
        # The kernel sends no signal for a host that died before `prctl` was called.
        while os.getppid() == self.host:
            waiting = [fd for fd in (CONTROL, self.wake, self.started) if fd >= 0]
            readable, _, _ = select.select(waiting, [], [])
            if self.started in readable and not self.report_start():
                return
            if self.wake in readable and self.handle_signals():
                return
            if CONTROL in readable and not self.run_commands(os.read(CONTROL, 64)):
                return

    def run_commands(self, commands: bytes) -> bool:
        if not commands or b"k" in commands:
            return False
        for command in commands:
            if command == ord("g"):
                self.start()
            elif command == ord("s"):
                self.suspend()
                self.report("suspended")
            elif command == ord("r"):
                self.signal_tree(signal.SIGCONT)
            elif command == ord("t"):
                self.signal_tree(signal.SIGTERM)
                self.signal_tree(signal.SIGCONT)
        return True

    def start(self) -> None:
        self.started, failure = os.pipe()
        self.cli = os.fork()
        if not self.cli:
            become_cli(self.cwd, self.user, self.argv, failure)
        os.close(failure)
        # The guard's copies would keep the CLI's pipes open, and its working directory in use.
        nowhere = os.open(os.devnull, os.O_RDWR)
        for fd in (0, 1, 2):
            os.dup2(nowhere, fd)
        os.close(nowhere)
        os.chdir("/")

    def report_start(self) -> bool:
        """Report and return whether the CLI started. A successful exec closes the pipe."""
        failure = os.read(self.started, 64)
        os.close(self.started)
        self.started = -1
        self.report(f"failed {failure.decode()}" if failure else f"started {self.cli}")
        return not failure

    def handle_signals(self) -> bool:
        """Reap children. Return whether the CLI has exited or the host has died."""
        signals = os.read(self.wake, 512)
        reap(self)
        return HOST_DIED in signals or self.status is not None

    def suspend(self) -> None:
        """Stop the tree. A process may fork before its stop takes effect, so look repeatedly."""
        quiet = 0
        for _ in range(SUSPEND_ROUNDS):
            running = [pid for pid, _, _, state in self.tree() if state not in "TtZX"]
            quiet = 0 if running else quiet + 1
            if quiet > 1:
                return
            for pid in running:
                send_signal(pid, signal.SIGSTOP)
            time.sleep(ROUND)

    def signal_tree(self, number: int) -> None:
        for pid, _, _, _ in self.tree():
            send_signal(pid, number)

    def tree(self) -> list[Row]:
        return below(os.getpid(), {self.cli} if self.cli else set())

    def finish(self) -> None:
        """Kill the tree, remove the private directory, and report the exit."""
        self.kill_tree()
        if self.started >= 0:
            self.report_start()
        if self.directory:
            remove_directory(self.directory)
        self.report(f"exited {-9 if self.status is None else self.status}")

    def kill_tree(self) -> None:
        deadline = time.monotonic() + KILL_PATIENCE
        while time.monotonic() < deadline:
            if self.cli and self.status is None:
                send_signal(self.cli, signal.SIGKILL)
            left = kill_below(os.getpid(), {self.cli} if self.cli else set())
            has_children = reap(self)
            # Orphans below a subreaper become its children, so no child means an empty tree.
            if not has_children and (self.is_subreaper or not left):
                return
            if select.select([self.wake], [], [], ROUND)[0]:
                os.read(self.wake, 512)

    def report(self, line: str) -> None:
        try:
            os.write(STATUS, f"{line}\n".encode())
        except OSError:
            # The host has exited, so there is no reader.
            pass


def become_cli(cwd: str, user: list[int], argv: list[str], failure: int) -> None:
    """Execute the CLI in the forked child, or write to `failure` why not. Never returns."""
    stage = "exec"
    try:
        guard = os.getppid()
        os.setpgid(0, 0)
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != guard:
            os._exit(127)
        restore_signals()
        stage = "user"
        if user:
            os.setgroups(user[1:])
            os.setgid(user[1])
            os.setuid(user[0])
            # The kernel clears the parent-death signal when the user changes.
            prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        stage = "cwd"
        if cwd:
            os.chdir(cwd)
        stage = "exec"
        os.execvpe(argv[0], argv, cli_environment())  # noqa: S606 - no shell is wanted
    except OSError as error:
        os.write(failure, f"{stage} {error.errno or errno.EIO}".encode())
    finally:
        os._exit(127)


def cli_environment() -> dict[str, str]:
    size = len(ENV_PREFIX)
    return {name[size:]: value for name, value in os.environ.items() if name.startswith(ENV_PREFIX)}


def restore_signals() -> None:
    signal.set_wakeup_fd(-1)
    for number in signal.valid_signals():
        if number not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])


def wake_on_signals() -> int:
    """Return a pipe that becomes readable on SIGCHLD and on the host's death.

    Signals that ask a program to exit are ignored: the host and the CLI handle them.
    """
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, ignore)
    signal.signal(HOST_DIED, ignore)
    return reader


def ignore(_number: int, _frame: object) -> None:
    """Do nothing. A signal is written to the pipe only if it has a handler."""


def close_inherited() -> None:
    """Close the descriptors that other libraries of the host left inheritable."""
    try:
        inherited = [int(name) for name in os.listdir("/dev/fd")]
    except OSError:
        inherited = list(range(256))
    for fd in inherited:
        if fd > STATUS:
            try:
                os.close(fd)
            except OSError:
                # The descriptor of the listing itself is already closed.
                continue


def prctl(option: int, value: int) -> bool:
    """Call Linux's `prctl`. Return False if that fails, or on another system."""
    if sys.platform != "linux":
        return False
    for call in (call_by_dlsym, call_by_ctypes):
        try:
            return call("prctl", (option, value, 0, 0, 0)) == 0
        except (ImportError, OSError, AttributeError):
            continue
    return False


def call_by_dlsym(name: str, arguments: tuple[int, ...]) -> int:
    """Call a C function through `_ctypes`, which takes a fifth of the import time of `ctypes`."""
    import _ctypes  # noqa: PLC0415 - only on Linux

    library = _ctypes.dlopen(None, 0)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    return int(_ctypes.call_cdeclfunction(_ctypes.dlsym(library, name), arguments))


def call_by_ctypes(name: str, arguments: tuple[int, ...]) -> int:
    """Call a C function through `ctypes`, for interpreters without `_ctypes.dlsym`."""
    import ctypes  # noqa: PLC0415 - as above

    return int(getattr(ctypes.CDLL(None), name)(*arguments))


def reap(guard: Guard) -> bool:
    """Wait for all exited children, keep the CLI's status, and return whether children are left."""
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return False
        if not pid:
            return True
        if pid == guard.cli:
            guard.status = os.waitstatus_to_exitcode(status)


def send_signal(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        # The process has exited, or the pid belongs to another user now.
        pass


def kill_below(root: int, groups: Collection[int] = ()) -> list[Row]:
    """Send SIGKILL once to every process below `root`. Return those that were still running."""
    left = below(root, groups)
    # A group is killed in one call, so that processes that keep forking cannot escape.
    for group in {row[2] for row in left} - {0, 1, root, os.getpgid(0)}:
        try:
            os.killpg(group, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            continue
    for pid, _, _, _ in left:
        send_signal(pid, signal.SIGKILL)
    return [row for row in left if row[3] not in "ZX"]


def below(root: int, groups: Collection[int] = ()) -> list[Row]:
    """Return the processes below `root`, by the fastest means this system has."""
    rows = rows_by_children(root)
    if rows is None:
        rows = rows_by_proc()
    if rows is None:
        rows = rows_by_ps()
    return descendants(rows, root, groups)


def descendants(rows: Iterable[Row], root: int, groups: Collection[int] = ()) -> list[Row]:
    """Return the rows below `root`, and those that share a process group with one of them.

    `groups` holds further groups: an orphan is no longer below `root`, but stays in its group.
    """
    rest = list(rows)
    family: dict[int, Row] = {}
    known = {root}
    related = set(groups)
    while True:
        found = [row for row in rest if row[1] in known or row[2] in related]
        found = [row for row in found if row[0] not in known]
        if not found:
            return list(family.values())
        family.update((row[0], row) for row in found)
        known.update(row[0] for row in found)
        related.update(row[2] for row in found if row[2] not in (0, 1, root))


def rows_by_children(root: int) -> list[Row] | None:
    """Return the tree from Linux's lists of children. Costs as much as the tree is large."""
    if not os.path.exists(f"/proc/{root}/task/{root}/children"):
        return None
    rows: list[Row] = []
    waiting = [root]
    while waiting:
        pid = waiting.pop()
        row = row_of(pid)
        if row is not None:
            rows.append(row)
        waiting.extend(children_of(pid))
    return rows


def children_of(pid: int) -> list[int]:
    children: list[int] = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children", "rb") as file:
                children += [int(child) for child in file.read().split()]
    except OSError:
        # The process exited meanwhile. Its children have a new parent and are found there.
        pass
    return children


def rows_by_proc() -> list[Row] | None:
    """Return every process, for a Linux kernel that keeps no lists of children."""
    try:
        pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        return None
    rows = [row for pid in pids if (row := row_of(pid)) is not None]
    return rows or None


def row_of(pid: int) -> Row | None:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            # The second field is the program's name in parentheses, and may hold any character.
            state, parent, group = file.read().rpartition(b")")[2].split()[:3]
    except (OSError, ValueError):
        return None
    return pid, int(parent), int(group), state.decode()


def rows_by_ps() -> list[Row]:
    """Return every process, as POSIX `ps` lists it: for macOS and the BSDs."""
    reader, writer = os.pipe()
    try:
        pid = os.posix_spawnp(
            "ps",
            ["ps", "-axo", "pid=,ppid=,pgid=,stat="],
            {"PATH": "/bin:/usr/bin", "LC_ALL": "C"},
            file_actions=[(os.POSIX_SPAWN_DUP2, writer, 1)],
        )
    except OSError:
        # Without `ps` only the CLI itself is known.
        os.close(reader)
        return []
    finally:
        os.close(writer)
    with open(reader, "rb") as file:
        text = file.read().decode()
    os.waitpid(pid, 0)
    return [row for row in rows_of_ps(text) if row[0] != pid]


def rows_of_ps(text: str) -> list[Row]:
    fields = [line.split() for line in text.splitlines()]
    return [
        (int(pid), int(parent), int(group), state[0])
        for pid, parent, group, state in (found for found in fields if len(found) == 4)  # noqa: PLR2004
    ]


def remove_directory(path: str) -> None:
    """Remove `path` and everything in it, as far as possible."""
    for folder, folders, files in os.walk(path, topdown=False):
        for name in files + folders:
            place = folder + "/" + name
            try:
                is_folder = os.path.isdir(place) and not os.path.islink(place)
                (os.rmdir if is_folder else os.unlink)(place)
            except OSError:
                continue
    try:
        os.rmdir(path)
    except OSError:
        # The directory was removed meanwhile, or is in use.
        pass


if __name__ == "__main__":
    main()
