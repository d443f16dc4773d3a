"""What clients were told, judged by columns: the promises of groups at any size."""
