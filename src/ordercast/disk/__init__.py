"""What is written so that neither a crash nor a power failure takes it back: for archives and journals of replicas."""
