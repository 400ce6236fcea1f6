"""Generated from protos/proctor/keda by `make protos`; never edited."""
