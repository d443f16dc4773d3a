"""How daemons agree on one order. Every engine has the methods of `engine.Engine`. Pure."""
