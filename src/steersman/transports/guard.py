"""Stands between the host and one CLI, and answers for the CLI's whole tree.

A script of its own: `python -I -S guard.py HOST DIRECTORY CWD USER ARGV...`. It inherits the CLI's
stdin, stdout and stderr as 0, 1 and 2 and hands them on untouched; 3 brings commands, 4 takes
reports. The CLI's environment comes in its own, each name behind `ENV_PREFIX`.

    command            what it does                   report
    g  go              starts the CLI                 ready                the directory is there
    s  suspend         stops the tree                 started PID          the CLI runs
    r  resume          lets it run on                 failed STAGE ERRNO   it does not
    t  terminate       SIGTERM                        exited STATUS        the tree is gone
    k  kill, or EOF    SIGKILL until nobody is left   broken WHY           a bug in here

Knows processes and nothing of what they say. Starts in a few milliseconds because it imports
next to nothing; keep it so.
"""

# pathlib and contextlib would double the time of our start.
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
    # `signal` itself imports `enum`: a third of our start.
    import _signal as signal

__all__ = ["ENV_PREFIX", "Row", "descendants", "kill_below", "remove_directory"]

Row = tuple[int, int, int, str]
"""One process: pid, parent's pid, process group, state letter."""

ENV_PREFIX = "STEERSMAN_CHILD_"
CONTROL = 3
STATUS = 4

KILL_PATIENCE = 5.0
"""How long to hunt for processes that will not die before giving up on them."""
SUSPEND_ROUNDS = 200
ROUND = 0.001

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
HOST_DIED = signal.SIGUSR1
"""Nobody else sends it to us, so SIGTERM can be left to the CLI."""


def main() -> None:
    """Run one CLI; never returns."""
    host, directory, cwd, user, *argv = sys.argv[1:]
    guard = Guard(int(host), directory, cwd, user, argv)
    try:
        guard.prepare()
        guard.serve()
    except BaseException as error:  # noqa: BLE001 - whatever it is, the tree must not outlive us
        guard.report(f"broken {type(error).__name__}: {error}")
    finally:
        guard.finish()
        os._exit(0)


class Guard:
    """One CLI and everything below it."""

    def __init__(self, host: int, directory: str, cwd: str, user: str, argv: list[str]) -> None:
        self.host = host
        self.directory = directory
        self.cwd = cwd
        self.user = [int(number) for number in user.split()]
        """Whom the CLI runs as: the numbers of the user, the group, and the further groups."""
        self.argv = argv
        self.cli = 0
        self.status: int | None = None
        self.is_subreaper = False
        self.started = -1
        self.wake = -1

    def prepare(self) -> None:
        """Become a session leader that hears of every death, also the host's."""
        close_inherited()
        os.setsid()
        os.set_inheritable(CONTROL, False)  # noqa: FBT003 - the signature is not ours
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
        """Do as the host says until there is no reason to go on."""
        # The parent-death signal misses a host that died before we asked for it.
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
        # Ours would keep the CLI's pipes open after its end, and its directory in use.
        nowhere = os.open(os.devnull, os.O_RDWR)
        for fd in (0, 1, 2):
            os.dup2(nowhere, fd)
        os.close(nowhere)
        os.chdir("/")

    def report_start(self) -> bool:
        """Tell how the start went; the far end closes by itself when exec succeeds."""
        failure = os.read(self.started, 64)
        os.close(self.started)
        self.started = -1
        self.report(f"failed {failure.decode()}" if failure else f"started {self.cli}")
        return not failure

    def handle_signals(self) -> bool:
        """Take in what the signals said, and whether it means the end."""
        signals = os.read(self.wake, 512)
        reap(self)
        return HOST_DIED in signals or self.status is not None

    def suspend(self) -> None:
        """Stop everybody; a process can fork while its stop is under way, so look again."""
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
        """End the tree, remove what was private, and say so."""
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
            # Below a subreaper every orphan becomes a child, so no child means nobody at all.
            if not has_children and (self.is_subreaper or not left):
                return
            if select.select([self.wake], [], [], ROUND)[0]:
                os.read(self.wake, 512)

    def report(self, line: str) -> None:
        try:
            os.write(STATUS, f"{line}\n".encode())
        except OSError:
            # The host is gone, and with it whoever wanted to know.
            pass


def become_cli(cwd: str, user: list[int], argv: list[str], failure: int) -> None:
    """In the forked child: turn into the CLI, or say why not; never returns."""
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
            # The kernel forgets it when the user changes.
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
    """Leave the usual goodbyes to the host and the CLI; hear of deaths through a pipe."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, ignore)
    signal.signal(HOST_DIED, ignore)
    return reader


def ignore(_number: int, _frame: object) -> None:
    """Have a handler, so that the signal is written to the pipe."""


def close_inherited() -> None:
    """Close what the host's other libraries let us inherit."""
    try:
        inherited = [int(name) for name in os.listdir("/dev/fd")]
    except OSError:
        inherited = list(range(256))
    for fd in inherited:
        if fd > STATUS:
            try:
                os.close(fd)
            except OSError:
                # The listing's own descriptor is gone already.
                continue


def prctl(option: int, value: int) -> bool:
    """Ask the Linux kernel; elsewhere, or without ctypes, the answer is no."""
    if sys.platform != "linux":
        return False
    for call in (call_by_dlsym, call_by_ctypes):
        try:
            return call("prctl", (option, value, 0, 0, 0)) == 0
        except (ImportError, OSError, AttributeError):
            continue
    return False


def call_by_dlsym(name: str, arguments: tuple[int, ...]) -> int:
    """Call a function of the C library by what `ctypes` stands on: that alone is a fifth of it."""
    import _ctypes  # noqa: PLC0415 - only where it is of use

    library = _ctypes.dlopen(None, 0)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    return int(_ctypes.call_cdeclfunction(_ctypes.dlsym(library, name), arguments))


def call_by_ctypes(name: str, arguments: tuple[int, ...]) -> int:
    """The same for an interpreter that has other foundations."""
    import ctypes  # noqa: PLC0415 - as above

    return int(getattr(ctypes.CDLL(None), name)(*arguments))


def reap(guard: Guard) -> bool:
    """Bury the dead, keep the CLI's status, and say whether children are left."""
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
        # It is gone, or it is somebody else's now.
        pass


def kill_below(root: int, groups: Collection[int] = ()) -> list[Row]:
    """SIGKILL once to everyone below `root`; those who were still there."""
    left = below(root, groups)
    # A group dies in one stroke, so that forking inside it cannot outrun us.
    for group in {row[2] for row in left} - {0, 1, root, os.getpgid(0)}:
        try:
            os.killpg(group, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            continue
    for pid, _, _, _ in left:
        send_signal(pid, signal.SIGKILL)
    return [row for row in left if row[3] not in "ZX"]


def below(root: int, groups: Collection[int] = ()) -> list[Row]:
    """Everyone below `root`, by the best means this system has."""
    rows = rows_by_children(root)
    if rows is None:
        rows = rows_by_proc()
    if rows is None:
        rows = rows_by_ps()
    return descendants(rows, root, groups)


def descendants(rows: Iterable[Row], root: int, groups: Collection[int] = ()) -> list[Row]:
    """The rows below `root`, and those that share a process group with one of them.

    `groups` are known from before: an orphan is no longer below anyone, but stays in its group.
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
    """Walk down Linux's lists of children: costs as much as the tree is large."""
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
        # Gone while we looked; its children are someone else's now and are found there.
        pass
    return children


def rows_by_proc() -> list[Row] | None:
    """Every process of a Linux whose kernel keeps no lists of children."""
    try:
        pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        return None
    rows = [row for pid in pids if (row := row_of(pid)) is not None]
    return rows or None


def row_of(pid: int) -> Row | None:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            # The second field is the program's name, in parentheses, and may hold anything.
            state, parent, group = file.read().rpartition(b")")[2].split()[:3]
    except (OSError, ValueError):
        return None
    return pid, int(parent), int(group), state.decode()


def rows_by_ps() -> list[Row]:
    """Every process, as POSIX tells it: macOS and the BSDs."""
    reader, writer = os.pipe()
    try:
        pid = os.posix_spawnp(
            "ps",
            ["ps", "-axo", "pid=,ppid=,pgid=,stat="],
            {"PATH": "/bin:/usr/bin", "LC_ALL": "C"},
            file_actions=[(os.POSIX_SPAWN_DUP2, writer, 1)],
        )
    except OSError:
        # Without it we know only the CLI itself.
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
    """Remove `path` and all it holds, as far as possible."""
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
        # Somebody was faster, or keeps it in use.
        pass


if __name__ == "__main__":
    main()
