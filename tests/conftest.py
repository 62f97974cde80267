"""Property tests judge behaviour, never speed: a busy machine must not fail one."""

from hypothesis import settings

settings.register_profile("book", deadline=None)
settings.load_profile("book")
