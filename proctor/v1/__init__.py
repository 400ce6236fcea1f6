"""Generated from protos/proctor/v1 by `make protos`; never edited."""
