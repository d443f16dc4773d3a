"""What outgrows one process, on Spark. Importing this package imports no PySpark."""
