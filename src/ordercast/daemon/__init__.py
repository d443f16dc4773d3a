"""The live driver: real sockets, a real clock and a real disk around a pure engine."""
