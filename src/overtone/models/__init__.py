"""Models: what all share, the emulator and its parts, CViT, and their folders on disk."""
