#!/usr/bin/env python3
"""Tests the files in deploy/: the program understands every key and every command in them.

The unit of systemd is checked by systemd-analyze, if the machine has it. The compose file is read,
and its five nodes start as processes with their settings, on addresses of the loopback interface.
Its own commands make the secret and form the cluster. Containers are not run. Without PyYAML, the
checks of the compose file are skipped. `first_node.py` follows README.md of that folder.

Usage: run.py"""
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE.parent / "support"))

from first_node import first_node  # noqa: E402
from node import clean_environment, free_ports, program  # noqa: E402

DEPLOY = ROOT / "deploy"
CONFIG = DEPLOY / "ombak.conf"
NODES = 5
START_SECONDS_MAX = 60
COMMAND_SECONDS_MAX = 180
# The files name this path of the program, and this one of its configuration.
INSTALLED = "/usr/local/bin/ombak"
INSTALLED_CONFIG = "/etc/ombak/ombak.conf"


class Check:
    """Counts what holds and what does not."""

    passed = failed = skipped = 0

    def __call__(self, what, found, wanted):
        if found == wanted:
            self.passed += 1
        else:
            self.failed += 1
            print(f"FAILED {what}: {found!r} in place of {wanted!r}", flush=True)


def run(words, environment=None, **options):
    env = clean_environment() | (environment or {})
    done = subprocess.run([str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=COMMAND_SECONDS_MAX, env=env, **options)
    return done.returncode, done.stdout.strip()


def secret_in(directory):
    """The environment that names a secret for the configuration."""
    path = directory / "checked.secret"
    path.write_text("a secret for the check of the configuration")
    path.chmod(0o600)
    return {"OMBAK_CLUSTER__SECRET_FILE": str(path)}


def checked_config(environment):
    code, text = run([program(), "config", "check", "--json", "--config", CONFIG], environment)
    return code, json.loads(text.splitlines()[-1])


def configuration(check, directory):
    check("the program understands the configuration", checked_config(secret_in(directory)),
          (0, {"ok": True, "errors": [], "warnings": []}))
    keys = re.findall(r"^([a-z_.]+) = ", CONFIG.read_text(), re.MULTILINE)
    check("the configuration has keys", len(keys) > 10, True)
    for key in keys:
        code, text = run([program(), "config", "describe", key, "--json"])
        check(f"{key} has an effect", (code, json.loads(text).get("effect")), (0, "works"))


def systemd(check, directory):
    unit = (DEPLOY / "systemd" / "ombak.service").read_text()
    commands = re.findall(r"^ExecStart(?:Pre)?=(.*)$", unit, re.MULTILINE)
    check("the unit starts the node", len(commands), 1)
    # systemd looks at the exit code of the main process alone, so the node checks its configuration
    # itself.
    check("a node that needs an operator is not started again", "RestartPreventExitStatus=78" in unit, True)
    bad = directory / "bad.conf"
    bad.write_text("no.such.key = 1\n")
    code, text = run([program(), "start", "--config", bad, "--data", directory / "no-data"])
    check("a node with a wrong configuration exits with that code", (code, "no.such.key" in text), (78, True))
    for command in commands:
        words = shlex.split(command)
        check(f"{command}: the program and the configuration", (words[0], INSTALLED_CONFIG in words), (INSTALLED, True))
        # With --help the program only checks that it knows the command and the options before it.
        code, text = run([program(), *words[1:], "--help"])
        check(f"{command}: the program knows it", (code, "Usage:" in text), (0, True))
    reload = re.findall(r"^ExecReload=(.*)$", unit, re.MULTILINE)
    check("a reload makes the node reopen its log and read its certificates", reload, ["/bin/kill -HUP $MAINPID"])
    if not shutil.which("systemd-analyze"):
        check.skipped += 1
        return
    copy = directory / "ombak.service"
    copy.write_text(unit.replace(INSTALLED, str(program())))
    check("systemd understands the unit", run(["systemd-analyze", "verify", copy]), (0, ""))


class Compose:
    """The compose file, as processes on this machine."""

    def __init__(self, text, directory):
        self.text, self.directory = text, directory
        self.services = text["services"]
        self.nodes = [self.services[f"node-{number}"] for number in range(1, NODES + 1)]
        self.processes = []
        self.ports = dict(zip((8087, 8098, 8099), free_ports(3)))

    def address(self, node):
        return node["networks"]["cluster"]["ipv4_address"]

    def here(self, value, number=None):
        """A value of the file, with the addresses and the paths of this machine."""
        value = re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", value)
        for other, node in enumerate(self.nodes, start=1):
            value = re.sub(rf"{re.escape(self.address(node))}\b", f"127.0.4.{other}", value)
        if number is not None:
            value = value.replace("0.0.0.0", f"127.0.4.{number}")
            value = re.sub(r":(\d+)$", lambda port: f":{self.ports[int(port[1])]}", value)
        return value.replace("/var/lib/ombak-secret", str(self.directory / "secret"))

    def environment(self, number):
        settings = self.nodes[number - 1]["environment"]
        return {name: self.here(str(value), number) for name, value in settings.items()}

    def start(self):
        for number in range(1, NODES + 1):
            data = self.directory / f"node-{number}"
            with open(self.directory / f"node-{number}.out", "wb") as output:
                self.processes.append(subprocess.Popen(
                    [str(program()), "start", "--config", str(CONFIG), "--data", str(data)], stdin=subprocess.DEVNULL,
                    stdout=output, stderr=subprocess.STDOUT, cwd=self.directory,
                    env=clean_environment() | self.environment(number) | {"OMBAK_PLATFORM_BACKUP_DIR": f"{data}-backups"}))

    def form(self):
        service = self.services["form"]
        names = self.directory / "bin"
        names.mkdir(exist_ok=True)
        for name, target in [("ombak", program()), ("ombak-form", DEPLOY / "compose" / "form.sh")]:
            if not (names / name).exists():
                (names / name).symlink_to(target)
        environment = {name: self.here(value) for name, value in service["environment"].items()}
        environment |= {"PATH": f"{names}:{os.environ['PATH']}", "OMBAK_FORM_HTTP_PORT": str(self.ports[8098]),
                        "OMBAK_FORM_PEER_PORT": str(self.ports[8099]), "OMBAK_FORM_SECONDS": str(START_SECONDS_MAX)}
        return run([names / service["command"][0]], environment, cwd=self.directory)

    def stop(self):
        for process in self.processes:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
        return [process.wait(60) for process in self.processes]


def settings_of(check, compose):
    check("each node has its name, address and ports",
          [len({str(of(node)) for node in compose.nodes}) for of in (
              lambda node: node["environment"]["OMBAK_NODENAME"], compose.address, lambda node: node["ports"],
              lambda node: node["volumes"][0])], [NODES] * 4)
    check("the cluster that is formed has all nodes", compose.services["form"]["environment"]["OMBAK_NODES"].split(),
          [compose.address(node) for node in compose.nodes])
    for number, node in enumerate(compose.nodes, start=1):
        check(f"the ports of node {number}", node["ports"],
              [f"127.0.0.1:{10017 + 10 * (number - 1)}:8087", f"127.0.0.1:{10018 + 10 * (number - 1)}:8098"])
        names = [volume.split(":")[0] for volume in node["volumes"]]
        check(f"the volumes of node {number} are declared", [name in compose.text["volumes"] for name in names], [True, True])
        environment = {name: re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", str(value)) for name, value in node["environment"].items()}
        check(f"node {number} understands its settings", checked_config(environment | secret_in(compose.directory)),
              (0, {"ok": True, "errors": [], "warnings": []}))
        code, text = run([program(), "config", "effective", "--json", "--config", CONFIG], environment)
        values = {entry["key"]: (entry["value"], entry["origin"]) for entry in json.loads(text)["config"]}
        for name, value in environment.items():
            if name != "OMBAK_ADMIN_TOKEN":
                key = name.removeprefix("OMBAK_").lower().replace("__", ".")
                check(f"node {number}: {name} sets {key}", values.get(key), (value, "environment"))
        words = node["healthcheck"]["test"]
        check(f"node {number}: the check of its health", (words[0], words[1]), ("CMD", "ombak"))
        code, text = run([program(), *words[2:], "--help"])
        check(f"node {number}: the program knows that check", (code, "Usage:" in text), (0, True))
        for other in list(node["depends_on"]) + list(compose.services["form"]["depends_on"]):
            check(f"{other} is a service", other in compose.services, True)


def cluster(check, compose):
    secret = compose.directory / "secret"
    secret.mkdir()
    command = [compose.here(word) for word in compose.services["secret"]["command"]]
    check("the secret is made", run(command), (0, ""))
    made = (secret / "cluster.secret").read_text()
    check("the secret is long and private", (len(made), oct((secret / "cluster.secret").stat().st_mode & 0o777)), (64, "0o600"))
    check("it is made once", (run(command), (secret / "cluster.secret").read_text()), ((0, ""), made))
    compose.start()
    began = time.monotonic()
    code, text = compose.form()
    print(f"formed in {time.monotonic() - began:.1f} s")
    check("the cluster is formed", (code, "Valid:5 / Leaving:0 / Exiting:0 / Joining:0 / Down:0" in text), (0, True))
    if code != 0:
        print(text)
    code, text = compose.form()
    check("forming it again changes nothing", (code, "Success" in text, "Valid:5" in text), (0, False, True))
    check("the nodes stop", compose.stop(), [0] * NODES)


def main():
    check = Check()
    with tempfile.TemporaryDirectory(prefix="ombak-deploy-") as name:
        directory = Path(name)
        configuration(check, directory)
        systemd(check, directory)
        first_node(check, directory)
        try:
            import yaml
        except ImportError:
            print("the compose file is not checked: there is no PyYAML")
            check.skipped += 1
        else:
            compose = Compose(yaml.safe_load((DEPLOY / "compose" / "compose.yaml").read_text()), directory)
            try:
                settings_of(check, compose)
                cluster(check, compose)
            finally:
                compose.stop()
                if check.failed:
                    for output in sorted(directory.glob("node-*.out")):
                        print(f"--- {output.name}\n{output.read_text(errors='replace')[-2000:]}")
    print(f"{check.passed} passed, {check.failed} failed, {check.skipped} skipped")
    return 1 if check.failed else 0


if __name__ == "__main__":
    sys.exit(main())
