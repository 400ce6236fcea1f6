"""The cause of a failed start is found and reported in short."""

from services.worker.engines.vllm.error_text import is_echo, reason_in_error, reason_in_output, shortened

PRINTED = """\
(EngineCore pid=2) WARNING 11-22 01:10:07 [vllm.py:725] Model Runner V2 requires Triton.
(Worker pid=3) ERROR 11-22 01:10:07 [multiproc_executor.py:953] Traceback (most recent call last):
(Worker pid=3) ERROR 11-22 01:10:07 [multiproc_executor.py:953]   File "a.py", line 1, in load
(Worker pid=3) ERROR 11-22 01:10:07 [multiproc_executor.py:953] RuntimeError: Tensor a (256) is wrong
(EngineCore pid=2) ERROR 11-22 01:10:09 [core.py:1510] Exception: WorkerProc initialization failed due to an \
exception in a background process. See stack trace for root cause.
Process EngineCore:
Exception: WorkerProc initialization failed due to an exception in a background process. See root cause.
""".splitlines()


def test_cause_is_found_behind_the_echoes_of_other_processes() -> None:
    assert reason_in_output(PRINTED) == "Tensor a (256) is wrong"
    assert reason_in_output(PRINTED[4:]) is None
    assert is_echo("Engine core initialization failed. See root cause above. Failed core proc(s): {}")


def test_own_exceptions_of_libraries_count_too() -> None:
    lines = ["safetensors_rust.SafetensorError: header too large", "Process EngineCore:"]
    assert reason_in_output(lines) == "header too large"


def test_what_only_programs_read_is_left_out() -> None:
    reported = (
        "1 validation error for ModelConfig\n"
        "  Value error, The length is too great. [type=value_error, input_value=ArgsKwargs(())]\n"
        "    For further information visit a page"
    )
    assert reason_in_error(reported) == "The length is too great."
    assert reason_in_error("") == ""
    out_of_memory = "[enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't allocate memory"
    assert shortened(out_of_memory) == "DefaultCPUAllocator: can't allocate memory"
    quoted = "Call failed: Worker failed with error 'no header', please check the stack trace above"
    assert shortened(quoted) == "no header"


def test_list_that_follows_is_reported_with_its_beginning() -> None:
    assert reason_in_error("One of these is needed: \n(1) a file\n(2) another") == (
        "One of these is needed: (1) a file (2) another"
    )


def test_long_reason_ends_with_a_whole_sentence_or_is_cut() -> None:
    assert shortened(f"It is unknown. Known are: {'x, ' * 500}") == "It is unknown."
    assert len(shortened("x" * 1000)) == 302
