"""The first node of a cluster, as deploy/README.md installs and starts it.

The commands of its section about systemd run one after another, below a directory that stands for
the machine's root. What needs a machine of its own has a stand-in: the build, the user, and the
service manager, which starts the process that the unit names."""
import os
import re
import shlex
import shutil
import signal
import subprocess
import time

from node import ROOT, clean_environment, free_ports, program

README = ROOT / "deploy" / "README.md"
SECONDS_MAX = 60
# The places of the machine that the commands and the files name.
PLACES = re.compile(r"/(?=(?:usr/local/bin|etc|var/lib)(?:/|\b))")

# Leaves the options -o and -g out of the arguments of a script.
WITHOUT_OWNERS = """for word; do
    shift
    case "$word" in
        -o | -g) skip=yes ;;
        *) test -n "${skip:-}" || set -- "$@" "$word"; skip= ;;
    esac
done
"""


def commands():
    """Returns (command, lines of its output) of each command of the section."""
    section = README.read_text().split("## systemd")[1].split("\n## ")[0]
    found = []
    for block in re.findall(r"```console\n(.*?)```", section, re.DOTALL):
        for line in block.splitlines():
            if line.startswith("$ "):
                found.append((line[2:], []))
            else:
                found[-1][1].append(line)
    return found


class FirstNode:
    """A machine on which the commands run."""

    def __init__(self, check, directory):
        self.check, self.root, self.source = check, directory / "machine", directory / "source"
        self.process = None
        for place in ("usr/local/bin", "etc/systemd/system", "var/lib", "stand-ins"):
            (self.root / place).mkdir(parents=True)
        self.source.mkdir()
        (self.source / "deploy").symlink_to(ROOT / "deploy")
        # Nobody else owns files here, and commands run as the user of the test.
        self.stand_in("sudo", 'shift 2\nexec "$@"')
        self.stand_in("install", f'{WITHOUT_OWNERS}exec {shutil.which("install")} "$@"')
        self.ports = free_ports(3)

    def stand_in(self, name, script):
        path = self.root / "stand-ins" / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

    def here(self, text):
        """A text with the places of this machine."""
        return PLACES.sub(f"{self.root}/", text)

    def environment(self):
        path = f"{self.root}/stand-ins:{self.root}/usr/local/bin:{os.environ['PATH']}"
        return clean_environment() | {"PATH": path}

    def run(self, command):
        words = shlex.split(command)
        if words[0] == "make":
            built = self.source / "target" / words[1] / "ombak"
            built.parent.mkdir(parents=True)
            built.symlink_to(program())
        elif words[0] == "systemctl":
            self.start()
        elif words[0] != "useradd":
            done = subprocess.run(["sh", "-c", self.here(command)], cwd=self.source, env=self.environment(),
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=SECONDS_MAX)
            self.check(f"{command}: {done.stdout}", done.returncode, 0)
            if words[0] == "install" and words[-1] == "/etc/ombak/ombak.conf":
                self.configure()
            return done.stdout
        return ""

    def configure(self):
        """The configuration of this machine: its own places and ports."""
        path = self.root / "etc/ombak/ombak.conf"
        text = self.here(path.read_text())
        for port, free in zip((8087, 8098, 8099), self.ports):
            text = text.replace(f":{port}\n", f":{free}\n")
        path.write_text(text)

    def start(self):
        """Does what the unit says, and waits until the node says that it is ready."""
        unit = self.here((self.root / "etc/systemd/system/ombak.service").read_text())
        before, starts = (re.findall(rf"^{key}=(.*)$", unit, re.MULTILINE) for key in ("ExecStartPre", "ExecStart"))
        for command in before:
            done = subprocess.run(shlex.split(command), env=self.environment(), stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True, timeout=SECONDS_MAX)
            self.check(f"{command}: {done.stdout}", done.returncode, 0)
        output = self.root / "journal"
        with open(output, "wb") as journal:
            self.process = subprocess.Popen(shlex.split(starts[0]), cwd="/", env=self.environment(), stdin=subprocess.DEVNULL,
                                            stdout=journal, stderr=subprocess.STDOUT)
        give_up_at = time.monotonic() + SECONDS_MAX
        while " is ready: " not in output.read_text(errors="replace") and self.process.poll() is None:
            if time.monotonic() > give_up_at:
                break
            time.sleep(0.05)
        self.check(f"the first node is ready: {output.read_text(errors='replace')[-2000:]}", self.process.poll(), None)

    def stop(self):
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.process and self.process.wait(SECONDS_MAX)


def without_a_secret(check, machine):
    """A node whose secret is missing does not start, and says how to make it."""
    secret = machine.root / "var/lib/ombak/cluster.secret"
    aside = secret.read_text()
    secret.unlink()
    command = [machine.root / "usr/local/bin/ombak", "start", "--config", machine.root / "etc/ombak/ombak.conf"]
    done = subprocess.run(command, env=machine.environment(), cwd="/", stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, timeout=SECONDS_MAX)
    check("a start without the secret is refused", done.returncode, 78)
    line = done.stdout.strip().splitlines()[-1]
    made = subprocess.run(["sh", "-c", line.split("of the node: ")[-1]], timeout=SECONDS_MAX)
    check("it says how to make it", (made.returncode, secret.exists()), (0, True))
    check("the secret is private", oct(secret.stat().st_mode & 0o777) if secret.exists() else None, "0o600")
    secret.write_text(aside)


def first_node(check, directory):
    machine = FirstNode(check, directory)
    try:
        for command, expected in commands():
            said = machine.run(command).splitlines()
            for line in expected:
                if line != "...":
                    check(f"{command} prints {line!r}", line in said, True)
        check("the node stops", machine.stop(), 0)
        without_a_secret(check, machine)
    finally:
        machine.stop()
