# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Users of a daemon, for tests: tokens, certificates, programs with credentials."""

import datetime
import ipaddress
import os
import subprocess
import sys
import time

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


def command(*arguments, **env):
    """The holdfast command, run to its end."""
    return subprocess.run(
        [sys.executable, "-m", "holdfast", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, **env},
    )


def new_token(file, user, *flags):
    result = command("token", "create", user, "--file", file, *flags)
    assert result.returncode == 0, result.stderr
    return result.stdout.strip()


def wait_until(condition, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.05)


class Authority:
    """Signs certificates; files go to `folder`."""

    def __init__(self, folder, name="ca"):
        self.folder = folder
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self.path = folder / f"{name}.pem"
        certificate = self._builder(self.name, self.key, 3600).add_extension(
            x509.BasicConstraints(ca=True, path_length=None), critical=True
        )
        self._write(self.path, certificate.sign(self.key, hashes.SHA256()))

    def _builder(self, subject, key, seconds):
        now = datetime.datetime.utcnow()
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self.name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(hours=1))
            .not_valid_after(now + datetime.timedelta(seconds=seconds))
        )

    @staticmethod
    def _write(path, certificate):
        path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))

    def issue(self, name, hosts=(), seconds=3600):
        """(certificate file, key file) for a common name and hosts."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        builder = self._builder(subject, key, seconds)
        if hosts:
            names = [
                x509.IPAddress(ipaddress.ip_address(host))
                if host[0].isdigit()
                else x509.DNSName(host)
                for host in hosts
            ]
            builder = builder.add_extension(
                x509.SubjectAlternativeName(names), critical=False
            )
        certificate = self.folder / f"{name}.crt"
        self._write(certificate, builder.sign(self.key, hashes.SHA256()))
        path = self.folder / f"{name}.key"
        path.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )
        path.chmod(0o600)
        return certificate, path
