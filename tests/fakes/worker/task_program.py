"""A program that works on tasks as command line agents do: it asks the model at the port that it is given.

It speaks chat completions with what Python brings, executes the fenced commands of the answers, and ends with
what the model calls the end. `endless` asks on without end.
"""

PROGRAM = """
import json, os, re, subprocess, sys, urllib.error, urllib.request
base, instruction, mode = sys.argv[1:4]
system = "You solve a task in a Linux sandbox. Write exactly one command in one fenced block of bash."
messages = [{"role": "system", "content": system}, {"role": "user", "content": instruction}]
print("environment:", json.dumps(dict(os.environ)))
while True:
    body = json.dumps({"model": "whatever", "messages": messages, "stream": mode == "streamed"}).encode()
    headers = {"Authorization": "Bearer " + os.environ["TOKEN"], "Content-Type": "application/json"}
    try:
        asked = urllib.request.Request(base + "/chat/completions", body, headers)
        with urllib.request.urlopen(asked) as said:
            text = said.read().decode()
    except urllib.error.HTTPError as error:
        if mode == "stubborn":
            continue
        sys.exit(error.read().decode())
    if mode == "streamed":
        first = text.split("\\n\\n")[0].removeprefix("data: ")
        answer = json.loads(first)["choices"][0]["delta"]["content"]
    else:
        answer = json.loads(text)["choices"][0]["message"]["content"]
    command = re.search(r"```bash\\n(.*?)\\n```", answer, re.DOTALL)[1]
    if "COMPLETE_TASK" in command and mode not in ("endless", "stubborn"):
        break
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
    messages += [{"role": "assistant", "content": answer}, {"role": "user", "content": done.stdout or "-"}]
print("done")
"""


def program_command(mode: str = "whole") -> list[str]:
    """The command of an agent; its variable TOKEN is to be {token}."""
    return ["python3", "-c", PROGRAM, "{base_url}", "{instruction}", mode]
