"""The whole of Proctor on one machine: `proctor up` starts these processes and keeps them running.

Imports nothing: `stack_state`, `stop_stack` and `environments` are used where a quick answer matters.
"""
