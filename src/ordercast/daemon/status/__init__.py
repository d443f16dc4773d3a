"""What a daemon tells: status, metrics, alarms, advice."""
