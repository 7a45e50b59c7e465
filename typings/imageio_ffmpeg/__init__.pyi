# What this project uses of imageio_ffmpeg, which has no types of its own.

from collections.abc import Generator, Sequence

import numpy as np

# None begins; what is sent then are the frames.
def write_frames(
    path: str,
    size: tuple[int, int],
    *,
    fps: int = 16,
    macro_block_size: int = 16,
    output_params: Sequence[str] | None = None,
) -> Generator[None, np.ndarray | None]: ...
def count_frames_and_secs(path: str) -> tuple[int, float]: ...
