"""What is written so that a crash or a power failure takes nothing back: for the archive and the journals of replicas."""
