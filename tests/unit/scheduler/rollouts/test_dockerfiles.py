"""Dockerfiles are read as Docker does, or a note says what is not."""

import io
import tarfile
from collections.abc import Mapping

import pytest

from services.scheduler.rollouts.tasks.dockerfiles.placed_files import place, workdir_facts
from services.scheduler.rollouts.tasks.dockerfiles.read_dockerfile import DockerfileFacts, read_dockerfile
from services.scheduler.rollouts.tasks.errors import InvalidTask
from services.scheduler.rollouts.tasks.task_folder import FolderFile, TaskFolder

CONTEXT = {"data.txt": b"data", "b.txt": b"b", "src/a.py": b"a", "src/deep/c.py": b"c", "my data": b"spaced"}


def read(text: str, context: Mapping[str, bytes] = CONTEXT) -> DockerfileFacts:
    files = {path: FolderFile(content) for path, content in context.items()}
    return read_dockerfile("a", f"FROM x\nWORKDIR /app\n{text}", files)


def files_of(facts: DockerfileFacts) -> dict[str, bytes]:
    return {path: file.content for path, file in facts.files.items()}


def tar_of(files: Mapping[str, bytes], form: str) -> bytes:
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode=form) as tar:  # type: ignore[call-overload]  # a form by name
        for path, content in files.items():
            member = tarfile.TarInfo(path)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return written.getvalue()


COPIES = {
    "COPY data.txt .": {"/app/data.txt"},
    "COPY data.txt new": {"/app/new"},
    "COPY data.txt new/": {"/app/new/data.txt"},
    "COPY data.txt /app": {"/app/data.txt"},
    "COPY src lib": {"/app/lib/a.py", "/app/lib/deep/c.py"},
    "COPY src/ /data/": {"/data/a.py", "/data/deep/c.py"},
    "COPY *.txt ./": {"/app/b.txt", "/app/data.txt"},
    "COPY src/*.py src/d* ./": {"/app/a.py", "/app/c.py"},
    "COPY da[s-u]a.tx? x/": {"/app/x/data.txt"},
    'COPY ["my data", "other name"]': {"/app/other name"},
    "COPY --chown=1:1 --chmod=755 data.txt x/y": {"/app/x/y"},
    "COPY ../data.txt /../x": {"/x"},
    "ENV D=/opt/tool\nCOPY data.txt ${D}/$MISSING": {"/opt/tool/data.txt"},
    "WORKDIR sub\nCOPY data.txt .": {"/app/sub/data.txt"},
    "COPY data.txt \\\n  # a comment\n\n  new": {"/app/new"},
}


@pytest.mark.parametrize("text", COPIES)
def test_files_are_copied_to_where_docker_copies_them(text: str) -> None:
    assert set(files_of(read(text))) == COPIES[text]


def test_a_mode_makes_a_program() -> None:
    assert read("COPY --chmod=755 data.txt x").files["/app/x"].is_program
    assert not read("COPY --chmod=0644 data.txt x").files["/app/x"].is_program


def test_stages_give_their_files_only_to_those_who_ask() -> None:
    facts = read(
        "ENV SECRET=1\nCOPY data.txt secret\nCOPY b.txt kept\nRUN npm run out\n"
        "FROM y AS middle\nWORKDIR /mid\nCOPY --from=0 /app/kept here\n"
        "FROM z\nWORKDIR /app\nCOPY --from=middle /mid/here out\nCOPY --from=0 /app/out made\n"
        "COPY --from=other:1 /x x\n"
    )
    assert files_of(facts) == {"/app/out": b"b"}
    assert facts.environment == {}
    assert any(
        "/app/out of the Dockerfile has no effect: what makes it in the stage 0" in n for n in facts.notes
    )
    assert any("it is of other:1" in note for note in facts.notes)


def test_a_stage_may_go_on_with_an_earlier_one() -> None:
    text = "ENV A=1\nARG B=2\nCOPY data.txt .\nFROM base AS end\nCOPY b.txt $B."
    facts = read_dockerfile(
        "a", f"FROM x AS base\nWORKDIR /app\n{text}", {path: FolderFile(c) for path, c in CONTEXT.items()}
    )
    # Arguments end with their stage.
    assert (set(facts.files), facts.environment) == ({"/app/data.txt", "/app/b.txt"}, {"A": "1"})


VALUES = {
    "ENV A=1 B='2 $X' C=\"3 $X\" D=a\\ b": {"A": "1", "B": "2 $X", "C": "3 ", "D": "a b"},
    "ENV A an old value": {"A": "an old value"},
    "ENV A=1\nENV A=2 B=$A": {"A": "2", "B": "1"},
    "ARG X=y\nENV A=${X} B=${X:-d} C=${X:+s} D=${N:-d} E=${N:+s} F=${N-${X}}": {
        "A": "y",
        "B": "y",
        "C": "s",
        "D": "d",
        "E": "",
        "F": "y",
    },
    "ENV A=/x/bin:$PATH": {"A": "/x/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
    'ENV A=\\$X B="\\$X"': {"A": "$X", "B": "$X"},
    "ARG X=1\nENV X=2\nARG X=3\nENV A=$X": {"X": "2", "A": "2"},
}


@pytest.mark.parametrize("text", VALUES)
def test_variables_are_put_in(text: str) -> None:
    assert read(text).environment == VALUES[text]


def test_arguments_before_the_first_stage_are_for_images() -> None:
    facts = read_dockerfile("a", "ARG V=3\nARG W=4\nFROM python:$V\nARG V\nENV A=$V B=$W\n", {})
    assert facts.environment == {"A": "3", "B": ""}
    assert "the image python:3 is not used: the machine's programs are" in facts.notes


def test_heredocs_are_files_and_scripts() -> None:
    facts = read(
        "ENV X=1\nCOPY <<EOF one\nvalue $X\nEOF\nCOPY <<'A' <<-B dir/\n$X\nA\n\tcut\n\tB\n"
        "RUN <<EOF\nmkdir -p out\necho hi > out/f\nEOF\nRUN cat <<EOF > /app/g\nINSTRUCTION\nEOF\n"
        "RUN cat > h << 'EOF'\nimport\nEOF\nRUN echo $(( 1 << A )) > i\n"
    )
    assert files_of(facts) == {"/app/one": b"value 1\n", "/app/dir/A": b"$X\n", "/app/dir/B": b"cut\n"}
    assert [step.command[-1] for step in facts.steps] == [
        "mkdir -p out\n echo hi > out/f",
        "cat <<EOF > /app/g\nINSTRUCTION\nEOF",
        "cat > h << 'EOF'\nimport\nEOF",
    ]


@pytest.mark.parametrize("form", ["w", "w:gz", "w:bz2", "w:xz"])
def test_add_unpacks_an_archive_and_copy_does_not(form: str) -> None:
    context = {"d.tar": tar_of({"x/y": b"z"}, form)}
    assert files_of(read("ADD d.tar /app/in", context)) == {"/app/in/x/y": b"z"}
    assert set(files_of(read("COPY d.tar /app/in/", context))) == {"/app/in/d.tar"}
    assert set(files_of(read("ADD --unpack=false d.tar /app/in/", context))) == {"/app/in/d.tar"}


def test_a_hostile_archive_is_refused() -> None:
    for content in (tar_of({"../x": b""}, "w:gz"), tar_of({"x": b"y" * 10_000}, "w:gz")[:80]):
        with pytest.raises(InvalidTask, match="ADD"):
            read("ADD d.tar.gz .", {"d.tar.gz": content})
    with pytest.raises(InvalidTask, match="more than"):
        read("ADD d.tar.gz .", {"d.tar.gz": tar_of({"x": bytes(70 * 1024**2)}, "w:gz")})


def test_ignored_files_are_not_copied() -> None:
    ignored = b"# a comment\n*.txt\n!data.txt\nsrc\n!src/deep/*.py\n**/z\n/my*\n"
    context = {**CONTEXT, ".dockerignore": ignored, "q/z/f": b"", "z": b""}
    assert set(files_of(read("COPY . .", context))) == {
        "/app/.dockerignore",
        "/app/data.txt",
        "/app/src/deep/c.py",
    }


def test_an_escape_by_directive_and_crlf_are_read() -> None:
    facts = read_dockerfile("a", "# escape=`\r\nFROM x\r\nWORKDIR C:\\x\r\nENV A=`\r\n  # no\r\n1\r\n", {})
    assert (facts.workdir, facts.environment) == ("/C:\\x", {"A": "1"})


RUNS = {
    "apt-get update && mkdir -p /data/x && rm -rf /var/lib/apt/lists/*": (
        "mkdir -p /data/x && rm -rf /var/lib/apt/lists/*",
        ["apt-get update"],
    ),
    "rm -rf /var/lib/apt/lists/*": ("", []),
    "git init repo; cd repo; echo 'a && b' > f": ("git init repo\n cd repo\n echo 'a && b' > f", []),
    "git clone https://example.org/x": ("", ["git clone https://example.org/x"]),
    "ln -s /usr/bin/python3 /usr/bin/python": ("", ["ln -s /usr/bin/python3 /usr/bin/python"]),
    "echo x > /etc/motd": ("", ["echo x > /etc/motd"]),
    "if true; then touch /app/a; fi": ("if true; then touch /app/a; fi", []),
    "for i in 1 2; do apt-get install $i; done": ("", ["for i in 1 2; do apt-get install $i; done"]),
    "cat x | grep y > z": ("cat x | grep y > z", []),
    "curl http://x | sh": ("", ["curl http://x | sh"]),
    "apt-get install gcc && gcc -o /build/a a.c && strip /build/a && make": (
        "gcc -o /build/a a.c && strip /build/a && make",
        ["apt-get install gcc"],
    ),
    "go build -o /usr/bin/a": ("", ["go build -o /usr/bin/a"]),
    "touch $(whoami)": ("", ["touch $(whoami)"]),
    "python3 -m pip install x && python3 gen.py": ("python3 gen.py", []),
    "uv add x && /root/.local/bin/uv run python /app/gen.py": ("python /app/gen.py", []),
    "chmod +x /tmp/set-up.sh && /tmp/set-up.sh && rm /tmp/set-up.sh": (
        "chmod +x /tmp/set-up.sh && /tmp/set-up.sh && rm /tmp/set-up.sh",
        [],
    ),
    "/usr/local/set-up.sh; /opt/conda/bin/conda install x; touch a": (
        "touch a",
        ["/usr/local/set-up.sh", "/opt/conda/bin/conda install x"],
    ),
    "uv run --no-sync gen.py 3": ("python3 gen.py 3", []),
    '["mkdir", "my folder"]': ("mkdir 'my folder'", []),
}


@pytest.mark.parametrize("text", RUNS)
def test_the_parts_of_run_that_need_no_image_are_executed(text: str) -> None:
    facts = read(f"RUN {text}")
    script, left_out = RUNS[text]
    assert [step.command for step in facts.steps] == ([("/bin/sh", "-c", script)] if script else [])
    noted = [note for note in facts.notes if note.startswith("of RUN")]
    assert noted == ([f"of RUN these are not executed: {'; '.join(left_out)}"] if left_out else [])


def test_run_has_the_shell_the_folder_and_the_variables_of_its_place() -> None:
    facts = read('ENV A=1\nARG B=2\nSHELL ["/bin/bash", "-c"]\nRUN touch a\nWORKDIR /late\nENV C=3')
    [step] = facts.steps
    assert step.command == ("/bin/bash", "-c", "touch a")
    assert (step.cwd, step.environment) == ("/app", {"A": "1", "B": "2"})


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("COPY never .", "'never'"),
        ("COPY x", "a source and a target"),
        ("COPY --parents src .", "--parents"),
        ("NONSENSE x", "NONSENSE"),
        ("RUN <<EOF\nx", "no end"),
        ('ENV A="${X:?must be there}"', "must be there"),
        ("ENV A=${X%y}", "is not read"),
        ("SHELL bash", "JSON"),
    ],
)
def test_what_is_not_read_is_refused_by_name(text: str, says: str) -> None:
    with pytest.raises(InvalidTask, match=says):
        read(text)


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("", ("/app", "/app", ())),
        ("COPY data.txt /app/x/y\nWORKDIR /app/src", ("/app", "/app/src", ())),
        ("WORKDIR /home/user\nCOPY data.txt /home/user/x/", ("/home/user", "/home/user", ("/app",))),
        ("COPY data.txt /data/x/y\nCOPY data.txt /var/log/z/", ("/app", "/app", ("/data", "/var/log"))),
        ("COPY data.txt /usr/local/bin/x\nCOPY b.txt /opt/runner/bin/x", ("/app", "/app", ())),
        ("RUN mkdir -p /srv/a /srv/a/b", ("/app", "/app", ("/srv/a",))),
        ("ENV D=/srv/a\nRUN mkdir -p ${D}/b && cd $D && touch c", ("/app", "/app", ("/srv/a",))),
        ("RUN cd $ABSENT && touch c", ("/app", "/app", ())),
        ("WORKDIR /tmp/x\nRUN touch /tmp/y", ("/tmp", "/tmp/x", ("/app",))),
    ],
)
def test_files_lie_in_the_working_folder_or_in_folders_beside_it(
    text: str, places: tuple[str, str, tuple[str, ...]]
) -> None:
    facts = read(text)
    placed = place(facts, facts.workdir)
    assert (placed.workdir, placed.cwd, placed.folders) == places


@pytest.mark.parametrize(
    ("image", "place"),
    [("ghcr.io/laude-institute/t-bench/ubuntu-24-04:1", "/app/data.txt"), ("ubuntu", "/data.txt")],
)
def test_images_of_terminal_bench_begin_in_a_folder(image: str, place: str) -> None:
    facts = read_dockerfile("a", f"FROM {image}\nCOPY data.txt ./\n", {"data.txt": FolderFile(b"data")})
    assert list(facts.files) == [place]


def test_folders_of_the_machine_are_named() -> None:
    facts = read("COPY data.txt /usr/local/bin/x")
    placed = place(facts, facts.workdir)
    assert (dict(placed.workspace), dict(placed.others)) == ({}, {})
    assert (
        "files of the Dockerfile in folders of the machine's own are not there: /usr/local/bin/x"
        in placed.notes
    )
    assert placed.build.unplaced == ("/usr/local/bin/x",)


def test_files_in_the_folder_of_the_tests_are_theirs() -> None:
    facts = read("COPY data.txt /tests/a/data.txt\nRUN echo 1 > /tests/b")
    placed = place(facts, facts.workdir)
    assert ({path: file.content for path, file in placed.tests.items()}, dict(placed.others)) == (
        {"a/data.txt": b"data"},
        {},
    )
    assert placed.build.unplaced == ("/tests/a/data.txt", "/tests")
    assert [note for note in placed.notes if "tests" in note] == [
        "files of the Dockerfile in /tests are there for the tests only: /tests/a/data.txt",
        "what RUN makes there is not there for the tests: /tests",
    ]


@pytest.mark.parametrize("folder", ["/logs/in", "/solution", "/oracle/a", "/etc/a"])
def test_folders_beside_those_of_the_tests_are_given(folder: str) -> None:
    facts = read(f"COPY data.txt {folder}/data.txt")
    placed = place(facts, facts.workdir)
    assert [f"/{path}" for path in placed.others] == [f"{folder}/data.txt"]
    assert placed.build.unplaced == ()


@pytest.mark.parametrize("folder", ["/logs/verifier", "/logs/agent/a", "/logs/artifacts", "/logs"])
def test_folders_that_hide_those_of_an_image_are_not(folder: str) -> None:
    facts = read(f"COPY data.txt {folder}/data.txt")
    assert place(facts, facts.workdir).build.unplaced == (f"{folder}/data.txt",)


WORKDIRS = {
    "FROM x\nCOPY absent .\nWORKDIR /test\nRUN pip install a\nWORKDIR bed": "/test/bed",
    "ARG D=/a\nFROM x\nARG D\nENV E=$D/b\nWORKDIR ${E}": "/a/b",
    "FROM golang:1.26": "/go",
    "FROM x\nWORKDIR ${E:?none}": "/",
    "FROM x\nWORKDIR /usr/src/app": "/",
    "RUN true": "/",
    "FRUM x": "/",
    "": "/",
}


@pytest.mark.parametrize("text", WORKDIRS)
def test_of_an_image_that_is_named_only_where_it_starts_is_read(text: str) -> None:
    folder = TaskFolder("a", {"Dockerfile": FolderFile(text.encode())})
    facts = workdir_facts(folder, "Dockerfile")
    assert facts == DockerfileFacts(workdir=WORKDIRS[text])


INSTALLED = {
    "pip install a 'b[c]>=2,<3'": ("a", "b[c]>=2,<3"),
    "apt-get update && pip3 install --no-cache-dir --break-system-packages a==1 \\\n  b": ("a==1", "b"),
    "python3 -m pip install -q -U --index-url https://example.org/simple a": ("a",),
    "PIP_NO_INPUT=1 /opt/venv/bin/pip --timeout 9 install a || true": ("a",),
    "uv pip install --system a >/dev/null 2>&1": ("a",),
    "/root/.local/bin/uv add a==1 b": ("a==1", "b"),
    "pip install a${V}": ("a==3",),
    "cd src && pip install --requirement=../wants.txt": ("one==1", "two; python_version > '3'"),
    "pip install -r wants.txt a": ("a", "one==1", "two; python_version > '3'"),
    '["pip", "install", "a"]': ("a",),
}
NOT_INSTALLED = (
    *("pip install -e .", "pip install ./tool", "pip install git+https://example.org/x", "pip install a.whl"),
    *("pip install -r absent.txt", "pip install --target /x a", "pip download a", "npm install a"),
    *("pip uninstall -y a", "pip install 'a"),
)
WANTS = (
    b"# wanted\n-i https://example.org\none==1 --hash=sha256:00\ntwo; python_version > '3'  # and\n./tool\n"
)


@pytest.mark.parametrize("run", INSTALLED)
def test_packages_that_pip_installs_are_named(run: str) -> None:
    facts = read(f"ENV V===3\nCOPY wants.txt .\nRUN mkdir src\nRUN {run}", {"wants.txt": WANTS})
    assert facts.packages == INSTALLED[run]
    assert not any("pip" in note for note in facts.notes)


@pytest.mark.parametrize("run", NOT_INSTALLED)
def test_what_is_no_package_of_an_index_is_not_executed(run: str) -> None:
    facts = read(f"RUN {run}")
    assert facts.packages == ()
    assert any("not executed" in note for note in facts.notes)


def test_packages_of_another_stage_are_its_own() -> None:
    assert read("RUN pip install a\nFROM y\nRUN pip install b").packages == ("b",)


def test_the_images_of_a_build_are_named() -> None:
    facts = read(
        "ARG V=3\nFROM y:$V AS base\nFROM base\nCOPY --from=base /a /b\nCOPY --from=z:1 /c /d\n"
        "RUN --mount=type=bind,from=w,target=/w true\nADD https://example.org/x /x\n"
    )
    assert facts.build.images == ("x", "y:", "z:1", "w")
    assert facts.build.fetches


@pytest.mark.parametrize(
    ("run", "command"),
    [
        ('["/bin/bash", "-c", "echo a > b"]', ("/bin/bash", "-c", "echo a > b")),
        ('["sh", "-ec", "mkdir a && mkdir b"]', ("sh", "-ec", "mkdir a && mkdir b")),
        ("--mount=type=cache,target=/var/cache mkdir a", ("/bin/sh", "-c", "mkdir a")),
    ],
)
def test_steps_in_the_words_of_a_shell_and_beside_a_cache_are_executed(
    run: str, command: tuple[str, ...]
) -> None:
    assert read(f"RUN {run}\n").steps[-1].command == command


def test_a_step_that_reads_a_mounted_file_is_not_executed() -> None:
    facts = read("RUN --mount=type=bind,source=a,target=/a cp /a /app/a\n")
    assert not any("cp" in step.command[-1] for step in facts.steps)
