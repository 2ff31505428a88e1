"""The guard: a small process between the host and one CLI that ends the CLI's whole process tree.

Descriptors 0, 1 and 2 are the CLI's stdin, stdout and stderr, which it passes on; it reads commands
from 3 and writes reports to 4.

    command            what it does                   report
    g  go              starts the CLI                 ready                the directory exists
    s  suspend         SIGSTOP to the tree            guard PID            the pid of a forked guard
    r  resume          SIGCONT to the tree            started PID          the CLI runs
    t  terminate       SIGTERM to the tree            failed STAGE ERRNO   the CLI does not run
    k  kill, or EOF    SIGKILL until none is left     suspended            the tree is stopped
    d  nine digits     kills in so many ms; the       exited STATUS        the tree has ended
                       next `d` replaces the last     broken WHY           a bug in this script

A guard is forked by `guard_server.py`, the outer process of all guards of a host. Where there is no
such server, the guard is a script of its own: `python -I -S guard.py HOST DIRECTORY CWD USER
ARGV...`, loaded together with `kernel.py`; variables for the CLI are in its environment, each name
prefixed `ENV_PREFIX`. Then it is two processes where the kernel hands orphans to a subreaper: the
inner one is the parent of the CLI and does all of the above, the outer one is the parent of the
inner one. In both cases: if one of the two processes is killed, or one of them together with the
host, the other ends the tree.

Knows processes, not what they read or write. Starts in a few milliseconds because it imports next
to nothing; keep it that way.
"""

# Importing pathlib and contextlib would double the startup time.
# ruff: noqa: PTH102, PTH106, PTH112, PTH114, PTH208, SIM105

from __future__ import annotations

import errno
import os
import select
import sys
import time

from steersman.transports.kernel import (
    PR_SET_CHILD_SUBREAPER,
    PR_SET_PDEATHSIG,
    Row,
    below,
    kill_below,
    kill_group,
    prctl,
    send_signal,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
else:
    # `signal` imports `enum`, which takes a third of the startup time.
    import _signal as signal

__all__ = [
    "CONTROL",
    "ENV_PREFIX",
    "HOST",
    "KILL_PATIENCE",
    "PARENT_DIED",
    "ROUND",
    "STATUS",
    "Guard",
    "close_above",
    "release_pipes",
    "remove_directory",
    "wake_on_signals",
]

ENV_PREFIX = "STEERSMAN_CHILD_"
CONTROL = 3
STATUS = 4
HOST = 5
"""In a forked guard: a descriptor that becomes readable when the host has exited."""

KILL_PATIENCE = 5.0
"""Seconds to keep killing processes that do not end before giving up."""
SUSPEND_ROUNDS = 200
ROUND = 0.001
"""Seconds between two looks at the tree."""

PARENT_LOOK = 0.5
"""Seconds between two looks at the parent, where no signal reports its death."""

DEADLINE_SIZE = 10
"""The length of the command `d`, with its digits."""

PARENT_DIED = signal.SIGUSR1
"""Sent by the kernel when the parent dies. Not SIGTERM, which the guard leaves to the CLI."""


def main() -> None:
    """Run one CLI. Never returns."""
    host, directory, cwd, user, *argv = sys.argv[1:]
    guard = Guard(directory, cwd, user, argv, cli_environment())
    guard.parent = int(host)
    try:
        close_above(STATUS)
        guard.prepare()
        if not guard.is_subreaper or guard.split():
            guard.report("ready")
            guard.serve()
        elif guard.watch():
            os._exit(0)
    except BaseException as error:  # noqa: BLE001 - the tree must not outlive the guard
        guard.report(f"broken {type(error).__name__}: {error}")
    finally:
        guard.finish()
        os._exit(0)


class Guard:
    """One CLI and its process tree."""

    def __init__(
        self, directory: str, cwd: str, user: str, argv: list[str], env: dict[str, str]
    ) -> None:
        self.parent = 0
        """The host, or in the inner process the outer one; 0 in a forked guard."""
        self.directory = directory
        self.cwd = cwd
        self.user = [int(number) for number in user.split()]
        """Ids to run the CLI as: user, group, supplementary groups. Empty for the current user."""
        self.argv = argv
        self.env = env
        self.child = 0
        """The CLI, or in the outer process the inner one."""
        self.status: int | None = None
        """The exit status of `child`."""
        self.is_outer = False
        self.is_subreaper = False
        self.started = -1
        self.wake = -1
        self.unread = b""
        """The beginning of a command whose end has not been read."""
        self.deadline: float | None = None
        """When the tree is killed, whatever the host does."""

    def run(self) -> None:
        """Run one CLI, in a process that was forked for it. Never returns."""
        try:
            self.prepare()
            if self.directory:
                self.report(f"guard {os.getpid()}\nready")
            self.serve()
        except BaseException as error:  # noqa: BLE001 - as in `main`
            self.report(f"broken {type(error).__name__}: {error}")
        finally:
            self.finish()
            os._exit(0)

    def prepare(self) -> None:
        """Make the directory, and become a process that ends the tree when its host dies."""
        os.set_inheritable(CONTROL, False)  # noqa: FBT003 - the signature of os
        os.set_inheritable(STATUS, False)  # noqa: FBT003
        self.detach()
        if self.directory:
            os.mkdir(self.directory, 0o700)
            if self.user:
                os.chown(self.directory, self.user[0], self.user[1])

    def detach(self) -> None:
        """Become a session leader that is notified when a child or the parent dies."""
        os.setsid()
        self.wake = wake_on_signals()
        prctl(PR_SET_PDEATHSIG, PARENT_DIED)
        self.is_subreaper = prctl(PR_SET_CHILD_SUBREAPER, 1)

    def split(self) -> bool:
        """Start the inner process. Return whether this is it."""
        outer = os.getpid()
        try:
            self.child = os.fork()
        except OSError as error:
            self.report(f"failed fork {error.errno or errno.EAGAIN}")
            return False
        if self.child:
            self.is_outer = True
            os.close(CONTROL)
            release_pipes()
            return False
        self.parent = outer
        os.close(self.wake)
        self.detach()
        return True

    def watch(self) -> bool:
        """Wait until the inner process or the host ends. Return whether the tree has ended too."""
        while self.child and os.getppid() == self.parent:
            select.select([self.wake], [], [])
            if self.handle_signals():
                break
        # Another status, or none: it was killed, or a copy of the host keeps its commands open.
        return self.status == 0

    def serve(self) -> None:
        """Run the host's commands until the CLI exits, or the parent dies or the host sends `k`."""
        host = -1 if self.parent else HOST
        # The kernel sends no signal for a parent that died before `prctl` was called.
        while not self.parent or os.getppid() == self.parent:
            waiting = [fd for fd in (CONTROL, self.wake, self.started, host) if fd >= 0]
            left = None if self.deadline is None else max(self.deadline - time.monotonic(), 0.0)
            # Where no signal reports the host's death, and a copy of it may have the commands open.
            is_long = left is None or left > PARENT_LOOK
            wait = PARENT_LOOK if is_long and not self.is_subreaper else left
            readable, _, _ = select.select(waiting, [], [], wait)
            if left == 0.0 or host in readable:
                return
            if self.started in readable and not self.report_start():
                return
            if self.wake in readable and self.handle_signals():
                return
            if CONTROL in readable and not self.run_commands(os.read(CONTROL, 64)):
                return

    def run_commands(self, commands: bytes) -> bool:
        if not commands or b"k" in commands:
            return False
        commands = self.unread + commands
        while commands:
            size = DEADLINE_SIZE if commands[:1] == b"d" else 1
            if len(commands) < size:
                break
            command, commands = commands[:size], commands[size:]
            if not self.run_command(command):
                return False
        self.unread = commands
        return True

    def run_command(self, command: bytes) -> bool:
        """Run one command. Return False if the CLI could not be started."""
        if command == b"g":
            return self.start()
        if command == b"s":
            self.suspend()
            self.report("suspended")
        elif command == b"r":
            self.signal_tree(signal.SIGCONT)
        elif command == b"t":
            self.signal_tree(signal.SIGTERM)
            self.signal_tree(signal.SIGCONT)
        elif command[:1] == b"d":
            self.deadline = time.monotonic() + int(command[1:]) / 1000
        return True

    def start(self) -> bool:
        """Fork the process that becomes the CLI. Report and return False if that fails."""
        started, failure = os.pipe()
        try:
            self.child = os.fork()
        except OSError as error:
            # Closed: nothing would ever be written, and `finish` must not wait for it.
            os.close(started)
            os.close(failure)
            self.report(f"failed fork {error.errno or errno.EAGAIN}")
            return False
        if not self.child:
            become_cli(self, failure)
        os.close(failure)
        self.started = started
        release_pipes()
        return True

    def report_start(self) -> bool:
        """Report and return whether the CLI started. A successful exec closes the pipe."""
        failure = os.read(self.started, 64)
        os.close(self.started)
        self.started = -1
        own = "" if self.parent else f"guard {os.getpid()}\n"
        self.report(f"failed {failure.decode()}" if failure else f"{own}started {self.child}")
        return not failure

    def handle_signals(self) -> bool:
        """Reap children. Return whether `child` has exited or the parent has died."""
        signals = os.read(self.wake, 512)
        reap(self)
        # A forked guard continues without its server, and watches the host itself.
        has_lost = PARENT_DIED in signals and self.parent != 0
        return has_lost or self.status is not None

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
        return below(os.getpid(), {self.child} if self.child else set())

    def finish(self) -> None:
        """Kill the tree, remove the private directory, and report the exit."""
        self.kill_tree()
        if self.started >= 0:
            self.report_start()
        if self.directory:
            remove_directory(self.directory)
        # When the inner process dies, the kernel kills the CLI.
        is_known = self.status is not None and not self.is_outer
        self.report(f"exited {self.status if is_known else -9}")

    def kill_tree(self) -> None:
        if self.child and not self.is_subreaper:
            # A tool of its own group whose parent dies first is no longer below this process, so
            # all are stopped before one is killed. Tools of a CLI that has exited are in its group.
            self.suspend()
            kill_below(os.getpid(), {self.child})
            kill_group(self.child)
        deadline = time.monotonic() + KILL_PATIENCE
        while time.monotonic() < deadline:
            if self.child and self.status is None:
                send_signal(self.child, signal.SIGKILL)
            left = kill_below(os.getpid(), {self.child} if self.child else set())
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


def become_cli(of: Guard, failure: int) -> None:
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
        if of.user:
            os.setgroups(of.user[1:])
            os.setgid(of.user[1])
            os.setuid(of.user[0])
            # The kernel clears the parent-death signal when the user changes.
            prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        stage = "cwd"
        if of.cwd:
            os.chdir(of.cwd)
        stage = "exec"
        os.execvpe(of.argv[0], of.argv, of.env)  # noqa: S606 - no shell is wanted
    except OSError as error:
        os.write(failure, f"{stage} {error.errno or errno.EIO}".encode())
    finally:
        os._exit(127)


def release_pipes() -> None:
    """Let go of the CLI's pipes, which a copy would keep open, and of its working directory."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(nowhere, fd)
    os.close(nowhere)
    os.chdir("/")


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
    """Return a pipe that becomes readable on SIGCHLD and on the parent's death.

    Signals that ask a program to exit are ignored: the host and the CLI handle them.
    """
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    inherited = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    if inherited >= 0:
        os.close(inherited)
    signal.signal(signal.SIGCHLD, ignore)
    signal.signal(PARENT_DIED, ignore)
    return reader


def ignore(_number: int, _frame: object) -> None:
    """Do nothing. A signal is written to the pipe only if it has a handler."""


def close_above(last: int) -> None:
    """Close the descriptors above `last`, which others left inheritable."""
    try:
        inherited = [int(name) for name in os.listdir("/dev/fd")]
    except OSError:
        inherited = list(range(256))
    for fd in inherited:
        if fd > last:
            try:
                os.close(fd)
            except OSError:
                # The descriptor of the listing itself is already closed.
                continue


def reap(guard: Guard) -> bool:
    """Wait for all exited children, keep `child`'s status, and return whether some are left."""
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return False
        if not pid:
            return True
        if pid == guard.child:
            guard.status = os.waitstatus_to_exitcode(status)


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
