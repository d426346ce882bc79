"""Certificates for tests, made by `openssl` as docs/security.md makes them."""
import subprocess
from pathlib import Path

DAYS = "30"


def openssl(*words, cwd):
    done = subprocess.run(["openssl", *words], cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        raise RuntimeError(f"openssl {' '.join(words)} ended with status {done.returncode}:\n{done.stdout}")


class Authority:
    """An authority, whose certificate is `ca.pem` in a directory, and what it issues there."""

    def __init__(self, directory, name="Test CA"):
        self.directory = Path(directory)
        self.directory.mkdir(parents=True, exist_ok=True)
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", DAYS,
                "-subj", f"/CN={name}", "-keyout", "ca.key", "-out", "ca.pem", cwd=self.directory)
        self.certificate = self.directory / "ca.pem"

    def issue(self, name, *, hosts=()):
        """The files of a certificate and of its key: NAME.pem and NAME.key. `hosts` are the names
        and addresses of a server."""
        alternatives = ",".join(f"{'IP' if host[0].isdigit() else 'DNS'}:{host}" for host in hosts)
        extensions = self.directory / f"{name}.ext"
        extensions.write_text("basicConstraints=CA:FALSE\n" + (f"subjectAltName={alternatives}\n" if hosts else ""))
        openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", f"/CN={name}",
                "-keyout", f"{name}.key", "-out", f"{name}.csr", cwd=self.directory)
        openssl("x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", DAYS,
                "-extfile", extensions.name, "-out", f"{name}.pem", cwd=self.directory)
        (self.directory / f"{name}.key").chmod(0o600)
        return self.directory / f"{name}.pem", self.directory / f"{name}.key"
