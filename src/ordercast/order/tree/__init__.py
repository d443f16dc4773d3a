"""Order only among those who share groups: messages walk down a tree of the processes concerned."""
