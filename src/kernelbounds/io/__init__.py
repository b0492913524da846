"""Files: tables of numbers that are read, and files that are written whole or not at all.

=================  ==========================================================================
file               idea
=================  ==========================================================================
``files.py``       writing a file whole or not at all; paths in messages
``archive.py``     arrays and a JSON header in one npz file
``csv_table.py``   tables of numbers in CSV files and workbooks, read and written
``csv_file.py``    an open CSV file: its encoding, its separator and its rows
``excel.py``       the sheet of a workbook that has the columns
``sources.py``     rows of files, folders, Parquet, Arrow streams and Dask, in batches
=================  ==========================================================================
"""
