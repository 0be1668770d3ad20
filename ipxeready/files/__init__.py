"""The public directory over HTTP: a listing for people and programs, the files for firmware."""
