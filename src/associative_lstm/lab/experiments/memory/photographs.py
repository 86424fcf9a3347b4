"""Photographs as the paper stores them: 3 x 110 x 110, a vector of which half is real and half imaginary."""

import itertools
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from PIL import Image, ImageOps
from torch import Tensor

from associative_lstm.lab.files import RunError

SIDE = 110
SIZE = 3 * SIDE * SIDE
"""Real numbers of one image, N: 18,150 complex numbers."""

SUFFIXES = {".jpg", ".jpeg", ".png", ".webp", ".bmp", ".gif", ".tif", ".tiff"}


class Photographs(NamedTuple):
    """Images with values in [0, 1], ``(count, 3, 110, 110)`` float32, each with a name; their source and licences."""

    pixels: Tensor
    names: list[str]
    source: str
    licences: dict[str, str]

    def about(self, seed: int) -> dict[str, object]:
        """What a reader of a result needs to know of them."""
        return {"source": self.source, "licences": self.licences, "size": SIZE, "seed": seed}


class Photo(NamedTuple):
    """A freely licensed photograph inside scikit-image, and the side of the squares to cut from it."""

    name: str
    square: int
    licence: str


EMBEDDED = [
    Photo("astronaut", 128, "NASA, public domain"),
    Photo("chelsea", 150, "Stefan van der Walt, CC0"),
    Photo("coffee", 133, "Rachel Michetti, CC0"),
    Photo("rocket", 142, "SpaceX, public domain"),
    Photo("retina", 282, "Mikael Häggström, CC0"),
    Photo("camera", 128, "Lav Varshney, CC0"),
    Photo("hubble_deep_field", 218, "NASA, public domain"),
    Photo("coins", 150, "Brooklyn Museum, no known copyright restrictions"),
    Photo("immunohistochemistry", 170, "CMMI, no known copyright restrictions"),
]


def load_photographs(
    count: int, folder: Path | None = None, *, seed: int = 0, warn: Callable[[str], None] = print
) -> Photographs:
    """So many photographs out of a folder, or out of those embedded in scikit-image.

    >>> photographs = load_photographs(2)
    >>> photographs.pixels.shape, photographs.names
    (torch.Size([2, 3, 110, 110]), ['astronaut, whole', 'chelsea, whole'])
    """
    return embedded(count) if folder is None else from_folder(folder, count, seed=seed, warn=warn)


def from_folder(
    folder: Path, count: int, *, seed: int = 0, warn: Callable[[str], None] = print
) -> Photographs:
    """Draw ``count`` photographs at random out of a folder and those in it; name and skip what cannot be read."""
    if not folder.is_dir():
        raise RunError(f"--images: {folder} is not a folder")
    files = sorted(f for f in folder.rglob("*") if f.suffix.lower() in SUFFIXES and f.is_file())
    chosen: dict[Path, np.ndarray] = {}
    skipped = 0
    for index in np.random.default_rng(seed).permutation(len(files)):
        if len(chosen) == count:
            break
        try:
            chosen[files[index]] = _read(files[index])
        except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
            skipped += 1
            warn(f"skipped {files[index]}, which cannot be read as an image: {error}")
    if len(chosen) < count:
        also = f", and {skipped} that cannot be read" if skipped else ""
        raise RunError(f"--images: {count} photographs are needed, {folder} has {len(chosen)}{also}")
    names = [str(f.relative_to(folder)) for f in sorted(chosen)]
    return Photographs(
        _stack([chosen[f] for f in sorted(chosen)]), names, f"photographs in {folder.name}", {}
    )


def embedded(count: int) -> Photographs:
    """Nine photographs of scikit-image, whole, then squares cut from each in turn, no two overlapping."""
    crops = [(name, crop) for _, (name, crop) in zip(range(count), _embedded_crops(), strict=False)]
    if len(crops) < count:
        raise RunError(
            f"{count} photographs are needed and {len(crops)} are embedded: give a folder with --images"
        )
    source = "crops of freely licensed photographs that come with scikit-image"
    licences = {photo.name: photo.licence for photo in EMBEDDED}
    return Photographs(_stack([crop for _, crop in crops]), [name for name, _ in crops], source, licences)


def to_vectors(pixels: Tensor) -> Tensor:
    """Vectorise images, ``(count, 3, side, side)`` to ``(count, N)``: first half real, second half imaginary."""
    return pixels.flatten(1)


def to_pixels(vectors: Tensor) -> Tensor:
    """Undo `to_vectors`, for square images."""
    side = int((vectors.shape[-1] / 3) ** 0.5)
    return vectors.unflatten(-1, (3, side, side))


def _embedded_crops() -> Iterator[tuple[str, np.ndarray]]:
    from skimage import data  # here, because importing it takes a second

    photos = {photo.name: Image.fromarray(getattr(data, photo.name)()) for photo in EMBEDDED}
    for name, photo in photos.items():
        yield f"{name}, whole", _square(photo)
    squares = [_squares(photos[photo.name], photo) for photo in EMBEDDED]
    for one_of_each in itertools.zip_longest(*squares):
        yield from filter(None, one_of_each)


def _squares(image: Image.Image, photo: Photo) -> Iterator[tuple[str, np.ndarray]]:
    """Cut a photograph into a centred grid of squares, those nearest to its centre first."""
    width, height = image.size
    columns, rows = width // photo.square, height // photo.square
    left, top = (width - columns * photo.square) // 2, (height - rows * photo.square) // 2
    corners = [(left + c * photo.square, top + r * photo.square) for r in range(rows) for c in range(columns)]
    middle = np.array([width - photo.square, height - photo.square]) / 2
    for x, y in sorted(corners, key=lambda corner: float(np.abs(np.array(corner) - middle).max())):
        crop = image.crop((x, y, x + photo.square, y + photo.square))
        yield f"{photo.name}, {photo.square} px at ({x}, {y})", _square(crop)


def _read(file: Path) -> np.ndarray:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # oddities in metadata; what is beyond Pillow's limits is an error
        with Image.open(file) as image:
            return _square(ImageOps.exif_transpose(image))


def _square(image: Image.Image) -> np.ndarray:
    """Centre crop, resize and convert to colour: ``(110, 110, 3)`` in [0, 1]."""
    if image.mode.startswith("I"):  # 16 bits a pixel: Pillow would clip, not scale
        image = Image.fromarray((np.asarray(image, dtype=np.float64) / 257).clip(0, 255).astype(np.uint8))
    if image.has_transparency_data:
        image = image.convert("RGBA")
        image = Image.alpha_composite(Image.new("RGBA", image.size, "white"), image)
    image = ImageOps.fit(image.convert("RGB"), (SIDE, SIDE), Image.Resampling.LANCZOS)
    return np.asarray(image, dtype=np.float32) / 255


def _stack(crops: list[np.ndarray]) -> Tensor:
    return torch.from_numpy(np.stack(crops)).permute(0, 3, 1, 2).contiguous()
