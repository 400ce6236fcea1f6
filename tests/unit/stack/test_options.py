"""Which folder, cache and addresses a stack gets."""

from pathlib import Path

from proctor.stack.defaults import default_cache_dir, default_state_dir, project_dir
from proctor.stack.options import StackOptions, options_from_environment


def test_the_state_folder_that_is_asked_for_is_taken(tmp_path: Path) -> None:
    assert default_state_dir({"PROCTOR_STATE_DIR": "/somewhere/else"}, tmp_path) == Path("/somewhere/else")


def test_a_relative_state_folder_becomes_absolute(tmp_path: Path) -> None:
    assert default_state_dir({"PROCTOR_STATE_DIR": "here"}, tmp_path).is_absolute()


def test_the_state_lies_in_the_project_from_any_folder_of_it(tmp_path: Path) -> None:
    (tmp_path / "project" / ".git").mkdir(parents=True)
    deep = tmp_path / "project" / "src" / "deep"
    deep.mkdir(parents=True)
    assert default_state_dir({}, deep) == tmp_path / "project" / ".proctor"


def test_a_folder_that_has_a_stack_already_is_preferred(tmp_path: Path) -> None:
    (tmp_path / ".proctor").mkdir()
    (tmp_path / "inner" / ".git").mkdir(parents=True)
    assert project_dir(tmp_path / "inner") == tmp_path


def test_the_cache_follows_the_setting_then_the_user(tmp_path: Path) -> None:
    assert default_cache_dir({"PROCTOR_CACHE_DIR": str(tmp_path)}) == tmp_path
    assert default_cache_dir({"XDG_CACHE_HOME": str(tmp_path)}) == tmp_path / "proctor"
    assert default_cache_dir({}) == Path.home() / ".cache" / "proctor"


def test_addresses_of_the_gateway_come_from_the_environment() -> None:
    options = options_from_environment(
        {"PROCTOR_STATE_DIR": "/x", "PROCTOR_GATEWAY_HTTP_ADDRESS": "127.0.0.1:9"}
    )
    assert options.gateway_http_address == "127.0.0.1:9"
    assert options.gateway_grpc_address == StackOptions(Path("/x")).gateway_grpc_address
