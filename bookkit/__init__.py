"""The tool that builds an executable book: text to modules, notebooks, figures and pages."""
