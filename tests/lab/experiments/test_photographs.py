"""Photographs from anywhere, made alike."""

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from associative_lstm.lab.experiments.memory.photographs import (
    EMBEDDED,
    SIDE,
    embedded,
    from_folder,
    load_photographs,
    to_pixels,
    to_vectors,
)
from associative_lstm.lab.files import RunError


def gradient(width: int, height: int, mode: str) -> Image.Image:
    ramp = np.linspace(0, 255, width * height).reshape(height, width).astype(np.uint8)
    return Image.fromarray(ramp).convert(mode)


def test_any_format_size_and_mode(tmp_path: Path) -> None:
    gradient(300, 200, "RGB").save(tmp_path / "colour.jpg")
    gradient(200, 300, "L").save(tmp_path / "grey.png")
    gradient(120, 120, "RGBA").save(tmp_path / "transparent.WEBP")
    gradient(64, 64, "P").save(tmp_path / "palette.gif")
    gradient(1, 1, "RGB").save(tmp_path / "tiny.bmp")
    gradient(2000, 3, "CMYK").save(tmp_path / "sliver.jpeg")
    Image.fromarray(np.full((50, 50), 32768, dtype=np.uint16)).save(tmp_path / "deep.png")
    (tmp_path / "below").mkdir()
    gradient(90, 90, "1").save(tmp_path / "below" / "bilevel.png")
    (tmp_path / "notes.txt").write_text("not an image, and not called one")
    warnings: list[str] = []
    photographs = from_folder(tmp_path, 8, warn=warnings.append)
    assert photographs.pixels.shape == (8, 3, SIDE, SIDE)
    assert photographs.pixels.dtype == torch.float32
    assert photographs.pixels.min() >= 0
    assert photographs.pixels.max() <= 1
    assert photographs.names == sorted(photographs.names)
    assert not warnings
    deep = photographs.pixels[photographs.names.index("deep.png")]
    assert deep.mean().item() == pytest.approx(0.5, abs=0.01)  # scaled, not clipped


def test_transparent_parts_are_white(tmp_path: Path) -> None:
    Image.new("RGBA", (20, 20), (0, 0, 0, 0)).save(tmp_path / "empty.png")
    assert from_folder(tmp_path, 1).pixels.eq(1).all()


def test_unreadable_files_are_named_and_skipped(tmp_path: Path) -> None:
    gradient(50, 50, "RGB").save(tmp_path / "good.png")
    (tmp_path / "broken.jpg").write_bytes(b"\xff\xd8\xff not a photograph")
    (tmp_path / "empty.png").write_bytes(b"")
    whole = tmp_path / "cut.png"
    gradient(50, 50, "RGB").save(whole)
    whole.write_bytes(whole.read_bytes()[:100])
    warnings: list[str] = []
    with pytest.raises(RunError, match=r"2 photographs are needed, .* has 1, and 3 that cannot be read"):
        from_folder(tmp_path, 2, warn=warnings.append)
    assert len(warnings) == 3
    for name in ("broken.jpg", "empty.png", "cut.png"):
        assert any(name in warning for warning in warnings)


def test_too_few_images_and_no_folder_are_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"20 photographs are needed, .* has 0$"):
        load_photographs(20, tmp_path)
    with pytest.raises(RunError, match="is not a folder"):
        load_photographs(20, tmp_path / "missing")
    with pytest.raises(RunError, match="give a folder with --images"):
        load_photographs(10_000)


def test_the_choice_is_random_but_reproducible(tmp_path: Path) -> None:
    for k in range(12):
        gradient(10 + k, 10, "L").save(tmp_path / f"{k:02}.png")
    first, again, other = (from_folder(tmp_path, 5, seed=seed).names for seed in (0, 0, 1))
    assert first == again != other


def test_the_embedded_photographs_are_a_hundred_different_crops_of_licensed_ones() -> None:
    photographs = embedded(100)
    assert len(set(photographs.names)) == 100
    assert len(photographs.pixels.flatten(1).unique(dim=0)) == 100
    assert all(photo.licence for photo in EMBEDDED)
    assert "scikit-image" in photographs.source


def test_an_image_is_half_real_and_half_imaginary() -> None:
    pixels = torch.rand(2, 3, SIDE, SIDE)
    vectors = to_vectors(pixels)
    assert vectors.shape == (2, 36_300)
    assert (
        vectors[0, 18_150] == pixels[0, 1, 55, 0]
    )  # the imaginary half begins in the middle of the green channel
    assert to_pixels(vectors).equal(pixels)
