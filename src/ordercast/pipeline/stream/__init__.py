"""Groups as streams of Spark: source and sink."""
