"""Reports with rows: one declaration of sections and columns gives the table, wide, narrow and in a pipe, the page, the
names and the CSV.

columns   what a report consists of: sections, columns, and how each cell follows from a row
draw      the only module that makes tables for a console
emit      the options of a verb with such a report, and its output
"""
