"""Certificates of clients and servers: good ones, and ones that nobody should trust."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Final


def openssl(folder: Path, *arguments: str) -> None:
    """Run openssl in a folder."""
    subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)  # noqa: S607 - of the machine


def certificates(folder: Path) -> None:
    """Make an authority, and certificates of it for a server and a client."""
    curve = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    openssl(folder, "req", "-x509", *curve, "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=ca", "-days", "2")
    (folder / "names").write_text("subjectAltName=IP:127.0.0.1\n")
    for name in ("server", "client"):
        openssl(folder, "req", *curve, "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={name}")
        signed = ("-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2", "-extfile", "names")
        openssl(folder, "x509", "-req", "-in", f"{name}.csr", *signed, "-out", f"{name}.pem")


AGES: Final = {"expired": ("20200101000000Z", "20200201000000Z"), "early": ("20400101000000Z", "20410101000000Z")}
AUTHORITY: Final = (
    "[ca]\ndefault_ca=d\n[d]\ndatabase=index\nserial=serial\nnew_certs_dir=.\ndefault_md=sha256\npolicy=p\n"
    "[p]\ncommonName=supplied\n"
)


def bad_certificates(folder: Path) -> None:
    """Make certificates beside the good ones that nobody should trust, for whatever reason their name says."""
    certificates(folder)
    curve = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    for name in ("foreign", "selfmade"):
        subject = ("-subj", f"/CN={name}", "-days", "2")
        openssl(folder, "req", "-x509", *curve, "-keyout", f"{name}.key", "-out", f"{name}.pem", *subject)
    (folder / "of-server").write_text("extendedKeyUsage=serverAuth\n")
    for name, by, said in (("stranger", "foreign", "names"), ("server-only", "ca", "of-server")):
        openssl(folder, "req", *curve, "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={name}")
        signed = ("-CA", f"{by}.pem", "-CAkey", f"{by}.key", "-CAcreateserial", "-days", "2", "-extfile", said)
        openssl(folder, "x509", "-req", "-in", f"{name}.csr", *signed, "-out", f"{name}.pem")
    (folder / "authority").write_text(AUTHORITY)
    (folder / "serial").write_text("77\n")
    (folder / "index").write_text("")
    for name, (begin, end) in AGES.items():
        openssl(folder, "req", *curve, "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={name}")
        dated = ("-cert", "ca.pem", "-keyfile", "ca.key", "-startdate", begin, "-enddate", end, "-extfile", "names")
        at = ("-config", "authority", "-in", f"{name}.csr", "-out", f"{name}.pem")
        openssl(folder, "ca", "-batch", "-notext", *dated, *at)
