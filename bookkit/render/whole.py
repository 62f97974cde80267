"""stub"""

from pathlib import Path


def build(book, pages, kind):
    raise NotImplementedError
