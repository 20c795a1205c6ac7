"""One module per kind of upstream: `--model NAME:ARGUMENT` is `upstreams/NAME.py`."""
