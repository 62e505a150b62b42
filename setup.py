"""The packages of the distribution, and a source distribution that is the same each time; pyproject.toml says the rest.

models/ and profiles/ lie at the top of the repository, where a reader looks for them, and install as roofline.models
and roofline.profiles: setuptools finds packages, but not under another name.
"""

import gzip
import io
import os
import tarfile
from pathlib import Path

from setuptools import find_packages, setup
from setuptools.command.sdist import sdist


class SameEachTime(sdist):
    """Writes the archive with the time of SOURCE_DATE_EPOCH [s], as setuptools writes a wheel, and without an owner."""

    def make_archive(self, *arguments, **options):
        """Write it, and again with the time of the epoch."""
        path = super().make_archive(*arguments, **options)
        if epoch := os.environ.get("SOURCE_DATE_EPOCH"):
            _set_times(Path(path), int(epoch))
        return path


def _set_times(path: Path, epoch: int) -> None:
    with tarfile.open(path) as archive:
        members = [(member, archive.extractfile(member).read() if member.isfile() else b"") for member in archive]
    with (
        path.open("wb") as raw,
        gzip.GzipFile("", "wb", fileobj=raw, mtime=epoch) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        for member, content in members:
            member.mtime, member.uid, member.gid, member.uname, member.gname = epoch, 0, 0, "", ""
            member.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
            member.pax_headers = {}
            archive.addfile(member, io.BytesIO(content))


inside = find_packages(include=["roofline", "roofline.*"])
beside = find_packages(include=["models", "models.*", "profiles"])

setup(packages=[*inside, *(f"roofline.{name}" for name in beside)], cmdclass={"sdist": SameEachTime})
