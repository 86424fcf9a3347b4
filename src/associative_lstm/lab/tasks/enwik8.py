"""The enwik8 corpus on disk: found, unpacked once, or downloaded and checked."""

import gzip
import hashlib
import os
import shutil
import tempfile
import urllib.error
import urllib.request
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, cast

ENWIK8_URL = "http://mattmahoney.net/dc/enwik8.zip"
ENWIK8_SHA256 = "2b49720ec4d78c3c9fabaee6e4179a5e997302b3a70029f30f2d582218c024a8"

# What gzip and zipfile raise on files that are not what they seem; the last two for kinds they do not read.
_UNREADABLE = (gzip.BadGzipFile, zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError)

Progress = Callable[[str], None]


def cache_folder() -> Path:
    """Where unpacked and downloaded corpora are kept."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "associative-lstm"


def find_corpus(
    path: str | os.PathLike[str] | None = None, progress: Progress = lambda message: None
) -> Path:
    """The plain file with the corpus's bytes, ready to be memory-mapped.

    ``path`` is a plain file (used as it is), a ``.gz`` or ``.zip`` of one (unpacked into the cache, once), or
    None for enwik8, which is downloaded into the cache and kept if its SHA-256 is right.
    """
    if path is None:
        kept = cache_folder() / "enwik8"
        return kept if kept.is_file() else _download(kept, progress)
    source = Path(path)
    if not source.is_file():
        raise ValueError(f"data: {str(source)!r} is not a file")
    if source.suffix not in (".gz", ".zip"):
        return source
    stat = source.stat()
    identity = hashlib.sha256(f"{source.resolve()}/{stat.st_size}/{stat.st_mtime_ns}".encode())
    kept = cache_folder() / f"{source.stem}-{identity.hexdigest()[:16]}"
    if not kept.is_file():
        progress(f"unpacking {source} to {kept} (once)")
        _unpack(source, kept)
    return kept


def keep_enwik8(path: str | os.PathLike[str], progress: Progress = lambda message: None) -> str | None:
    """None if the file is enwik8, plain or packed; otherwise its absolute path.

    None is how a configuration says enwik8, wherever it is: the run can then go on, or be repeated, on a machine
    where the file lies somewhere else. The cache, where it is looked for, keeps a copy.
    """
    plain, kept = find_corpus(path, progress), cache_folder() / "enwik8"
    with plain.open("rb") as file:
        if hashlib.file_digest(file, "sha256").hexdigest() != ENWIK8_SHA256:
            return str(Path(path).resolve())
    if not kept.is_file():
        with plain.open("rb") as content:
            _keep(content, kept)
    return None


def _unpack(source: Path, kept: Path, sha256: str | None = None) -> None:
    try:
        with _packed(source) as content:
            _keep(content, kept, sha256)
    except _UNREADABLE as error:
        raise ValueError(f"data: {str(source)!r} cannot be unpacked ({error})") from error


@contextmanager
def _packed(source: Path) -> Iterator[IO[bytes]]:
    """The content of a ``.gz``, or of the one file in a ``.zip``."""
    if source.suffix == ".gz":
        with gzip.open(source) as content:
            yield cast("IO[bytes]", content)
        return
    with zipfile.ZipFile(source) as archive:
        names = archive.namelist()
        if len(names) != 1:
            raise ValueError(f"data: {str(source)!r} must hold one file, it holds {len(names)}")
        with archive.open(names[0]) as content:
            yield content


def _keep(content: IO[bytes], kept: Path, sha256: str | None = None) -> None:
    """Copy ``content`` and move the copy to ``kept`` only when it is whole (and has the right hash)."""
    kept.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=kept.parent) as folder:
        temporary, digest = Path(folder) / kept.name, hashlib.sha256()
        with temporary.open("wb") as out:
            while piece := content.read(1 << 20):
                digest.update(piece)
                out.write(piece)
            out.flush()
            os.fsync(out.fileno())
        if sha256 is not None and digest.hexdigest() != sha256:
            found = digest.hexdigest()
            raise ValueError(f"data: the downloaded enwik8 has SHA-256 {found}, expected {sha256}")
        os.replace(temporary, kept)


def _download(kept: Path, progress: Progress) -> Path:
    kept.parent.mkdir(parents=True, exist_ok=True)
    progress(f"downloading {ENWIK8_URL} (36 MB)")
    with tempfile.TemporaryDirectory(dir=kept.parent) as folder:
        packed = Path(folder) / "enwik8.zip"
        try:
            with urllib.request.urlopen(ENWIK8_URL, timeout=60) as response, packed.open("wb") as out:
                shutil.copyfileobj(response, out)
        except (urllib.error.URLError, OSError) as error:
            raise ValueError(
                f"data: {ENWIK8_URL} could not be downloaded ({error}); give the path of enwik8 instead"
            ) from error
        _unpack(packed, kept, ENWIK8_SHA256)
    return kept
