"""Count the work of published steps by closed forms of their shapes: the FLOPs in roofline/published/NAME.toml."""
