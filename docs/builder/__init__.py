"""What the docs site needs beside Sphinx: links, equations, the API pages, notebooks."""
