"""How dates are written on pages: as in the files, in each language."""
