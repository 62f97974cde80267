"""A small, honest agent kernel, built chapter by chapter in *The Agent Loop*.

Import the modules, as in ``from agentkit.loop import run_agent``.  Each is generated from the chapter of the
same name.
"""
