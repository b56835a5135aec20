"""How long a command takes on a small file, beside Python itself: `make bench-startup`."""
