"""The command line: talks to a gateway by `proctor.client`, and to the local stack if there is one."""
