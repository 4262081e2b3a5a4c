"""Renderings: values in, text out; nothing here reads files, prints or knows a terminal."""
