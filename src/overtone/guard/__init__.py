"""What keeps users' files, memory and terminals safe: folders and locks, names, limits."""
