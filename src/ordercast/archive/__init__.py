"""The archive: what was delivered to groups, views included, on disk, in order, for as long as it is wanted.

Pure: places, entries, frames, branches, lineage, statements, rows. With files and sockets: files, transfer, archiver,
reader.
"""
