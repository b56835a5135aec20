"""How fast `asr report` is on files of any size, beside peers: `make bench-asr`."""
